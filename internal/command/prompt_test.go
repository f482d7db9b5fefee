package command

import (
	"os"
	"path/filepath"
	"testing"
)

// A byte order mark at the beginning of a file is no part of its text.
func TestByteOrderMark(t *testing.T) {
	name := filepath.Join(t.TempDir(), "prompt.txt")
	for written, want := range map[string]string{"\ufeffa \ufeff b\r\n": "a \ufeff b\r\n", "\ufeff": "", "a": "a"} {
		if err := os.WriteFile(name, []byte(written), 0o666); err != nil {
			t.Fatal(err)
		}
		if text, err := ReadText(name); err != nil || text != want {
			t.Errorf("%q is read as %q, %v", written, text, err)
		}
	}
}
