package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/grovellm/grove/internal/hub/catalog"
)

// A folder that may not be read, such as lost+found on a volume, is left out with a note. The models next to it stay.
func TestFolderThatMayNotBeRead(t *testing.T) {
	f := write(t)
	closed := filepath.Join(f.dir, "lost+found")
	err := errors.Join(os.Mkdir(closed, 0), os.Chmod(f.dir, 0o755), os.Chmod(filepath.Dir(f.dir), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // root may read it
		const nobody, same = 65534, -1
		if err := syscall.Setresuid(same, nobody, same); err != nil {
			t.Skip(err)
		}
		defer func() {
			if err := syscall.Setresuid(same, 0, same); err != nil {
				panic(err) // the rest would run as another user
			}
		}()
	}
	list, notes, err := catalog.Find(f.dir)
	if err != nil || len(list) != len(f.models) || len(notes) != 1 || !strings.Contains(notes[0], closed+" is left out") {
		t.Errorf("%v, %q, %v: want %d models and a note", list, notes, err, len(f.models))
	}
}
