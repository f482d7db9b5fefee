package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// NewFile refuses a path that a command must not write to: a folder, or an existing file, unless forced.
func NewFile(path string, force bool) error {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return Usagef("%s is a folder: name a file in it", path)
	case err == nil && !force:
		return fmt.Errorf("%s already exists: choose another name, or replace it with --force", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: there is no folder %s: create it, or choose another name", path, filepath.Dir(path))
	}
	return nil
}

// OutFolder makes the folder of --out, if there is one, before measuring what will be written there.
func OutFolder(path string) error {
	if path == "" {
		return nil
	}
	if err := atomicfile.TryFolder(path); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
