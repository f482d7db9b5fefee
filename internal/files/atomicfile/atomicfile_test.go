package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

func content(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		c, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(f.Name() + "=" + string(c) + ";")
	}
	return b.String()
}

// The target has the old content or the new one; nothing else remains, not even after a panic.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	for _, s := range []string{"first", "", strings.Repeat("long", 1<<19)} {
		if err := atomicfile.Write(path, text(s)); err != nil || content(t, dir) != "f="+s+";" {
			t.Fatalf("writing %d bytes: %v", len(s), err)
		}
	}
	if err := atomicfile.Write(path, text("kept")); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	fails := func(w io.Writer) error {
		if got := content(t, dir); !strings.HasPrefix(got, "f=kept;") {
			t.Errorf("while writing: %s", got)
		}
		return errors.Join(text("part")(w), boom)
	}
	if err := atomicfile.Write(path, fails); !errors.Is(err, boom) {
		t.Error(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = atomicfile.Write(path, func(io.Writer) error { panic("boom") })
	}()
	if got := content(t, dir); got != "f=kept;" {
		t.Error(got)
	}
	if err := atomicfile.Write(dir, text("x")); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Error(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "none", "f"), text("x")); err == nil {
		t.Error("a folder came into being")
	}
}

// A reader of the old content does not prevent writing the new one, even on Windows, where an open
// file keeps its name.
func TestWriteOverReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	text := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { f.Close() })
	if err := atomicfile.Write(path, text); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Dir(path)); got != "f=new;" {
		t.Error(got)
	}
}

func TestExactly(t *testing.T) {
	for n := range int64(5) {
		var b strings.Builder
		err := atomicfile.Exactly(&b, 3, func(w io.Writer) error {
			for range n {
				if _, err := w.Write([]byte{'x'}); err != nil {
					return err
				}
			}
			return nil
		})
		if (err == nil) != (n == 3) || b.Len() > 3 {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// What killed writers left goes, and nothing else.
func TestRemoveUnfinished(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f", "f.tmp-ABCDEFGH", "f.tmp-", "g.tmp-ABCDEFGH", "f.tmp", "ff.tmp-A"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.RemoveUnfinished(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir); got != "f=;f.tmp=;ff.tmp-A=;g.tmp-ABCDEFGH=;" {
		t.Error(got)
	}
	if err := atomicfile.RemoveUnfinished(filepath.Join(dir, "none", "f")); err == nil {
		t.Error("there is no such folder")
	}
}
