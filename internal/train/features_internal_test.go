package train

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/internal/nn"
)

// A file that cannot be written, as on a full disk, leaves nothing behind, and half of the others go: checkpoints and
// the head need room too.
func TestFeaturesLeaveRoom(t *testing.T) {
	notes := 0
	f, err := OpenFeatures(t.TempDir(), 1<<20, func(string) { notes++ })
	if err != nil {
		t.Fatal(err)
	}
	rows := nn.NewMat(3, 8)
	for layer := range 8 {
		f.write(f.path("target", []int32{1, 2, 3}, layer), rows)
	}
	before := f.used
	broken := f.path("target", []int32{1, 2, 3}, 8)
	if err := os.Symlink(filepath.Join(f.dir, "missing", "file"), broken); err != nil {
		t.Skip(err)
	}
	f.write(broken, rows)
	if _, err := os.Lstat(broken); err == nil || notes != 1 {
		t.Errorf("the failed file is still there, or there are %d notes instead of one", notes)
	}
	left := 0
	for layer := range 8 {
		if f.read(f.path("target", []int32{1, 2, 3}, layer), rows) {
			left++
		}
	}
	if left != 4 || f.used != before/2 {
		t.Errorf("%d of 8 files are left, and %d of %d bytes: want half", left, f.used, before)
	}
}
