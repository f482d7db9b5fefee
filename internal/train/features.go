package train

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/grovellm/grove/internal/nn"
)

// Features keeps a target's results for texts on disk, for the next head of the target over the
// same texts, another run, and held-out text. A file has the rows that one layer outputs for one
// text, as F32 with a checksum: reading gives the same bits as computing. A file left half written
// by a kill is computed again.
type Features struct {
	dir         string
	used, limit int64
	note        func(string) // called once when a file could not be written; none is written after it
	failed      bool
}

// OpenFeatures opens a folder of features, which may take limit bytes. If it is full, the files that
// have gone unread longest are removed until a quarter is free. note is told why no more are kept.
func OpenFeatures(dir string, limit int64, note func(string)) (*Features, error) {
	f := &Features{dir: dir, limit: limit, note: note}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	return f, f.trim(limit, limit*3/4)
}

// trim counts the bytes of all files. If there are more than most, it removes the files that have gone unread longest,
// until at most keep bytes are left.
func (f *Features) trim(most, keep int64) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	f.used = 0
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // another command may have removed it
			files = append(files, info)
			f.used += info.Size()
		}
	}
	if f.used <= most {
		return nil
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		if f.used <= keep {
			break
		}
		if err := os.Remove(filepath.Join(f.dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f.used -= info.Size()
	}
	return nil
}

// path returns the file of a text and a layer of a target.
func (f *Features) path(target string, text []int32, layer int) string {
	b := binary.LittleEndian.AppendUint32([]byte(target), uint32(layer))
	for _, t := range text {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	sum := sha256.Sum256(b)
	return filepath.Join(f.dir, fmt.Sprintf("%x", sum[:16]))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// read fills rows from a file, and reports whether it existed and was complete.
func (f *Features) read(path string, rows nn.Mat) bool {
	b, err := os.ReadFile(path)
	end := 4 * rows.Rows * rows.Cols
	if err != nil {
		return false
	}
	if len(b) != end+4 || crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		if os.Remove(path) == nil {
			f.used -= int64(len(b))
		}
		return false
	}
	for i := range rows.Rows {
		if _, err := binary.Decode(b[4*i*rows.Cols:], binary.LittleEndian, rows.Row(i)); err != nil {
			return false
		}
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the time only determines which files are removed first
	return true
}

// write saves rows to a file, if there is room and it does not exist yet.
func (f *Features) write(path string, rows nn.Mat) {
	size := int64(4*rows.Rows*rows.Cols + 4)
	if f.failed || f.used+size > f.limit {
		return
	}
	if _, err := os.Stat(path); err == nil {
		return
	}
	b := make([]byte, 0, size)
	for i := range rows.Rows {
		b, _ = binary.Append(b, binary.LittleEndian, rows.Row(i)) // writing floats does not fail
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if err := os.WriteFile(path, b, 0o666); err != nil {
		f.failed = true
		_ = errors.Join(os.Remove(path), f.trim(0, f.used/2)) // a full disk has no room for checkpoints and the head
		f.note(fmt.Sprintf("what the target computes is not kept any more, and half of it is removed: %v", err))
		return
	}
	f.used += size
}
