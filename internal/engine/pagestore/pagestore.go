// Package pagestore keeps blocks of a cache's pages in files. A block is found by its key: a hash of the tokens from
// the beginning of the text to the block's end, and of everything else that its contents depend on.
//
// A file gets its name once it is complete and on disk, and its checksum is verified when it is read. So after a crash
// at any moment a block is as it was written, or not there. The folder has a size limit: beyond it,
// the least recently used files are removed.
package pagestore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/filelock"
)

// Key is the name of a block.
type Key [sha256.Size]byte

// Root returns the key of a text without tokens. The parts identify what blocks depend on besides the text.
func Root(parts ...string) Key {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return Key(h.Sum(nil))
}

// Next returns the key of the next block, which adds tokens to the text.
func (k Key) Next(tokens []int32) Key {
	b := slices.Clone(k[:])
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	return sha256.Sum256(b)
}

// A file is magic, the key, the block's number of bytes, the block, and the CRC-32C of everything before it.
const (
	magic      = "grovekv1"
	headerSize = len(magic) + len(Key{}) + 8
	ending     = ".kv"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header returns the beginning of the file of a block of size bytes.
func (k Key) header(size int64) []byte {
	return binary.LittleEndian.AppendUint64(append([]byte(magic), k[:]...), uint64(size))
}

// Store is a folder of blocks. Its methods may be called from any number of goroutines.
type Store struct {
	dir   string
	limit int64
	lock  *filelock.Lock

	mu    sync.Mutex
	files map[Key]*file
	bytes int64 // of all files
	stats Stats // its counts
}

// Stats describe what a store holds and what it has done.
type Stats struct {
	Blocks int   // in the folder
	Bytes  int64 // of their files

	Written int64 // blocks
	Read    int64 // intact blocks
	Refused int64 // damaged blocks, such as those with a wrong checksum; they were removed
}

// Stats returns the store's figures. Those of a nil store are 0.
func (s *Store) Stats() Stats {
	if s == nil {
		return Stats{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.stats
	now.Blocks = len(s.files)
	now.Bytes = s.bytes
	return now
}

type file struct {
	size int64
	used time.Time
}

// Open opens a folder for blocks of at most limit bytes in total, and makes it if there is none.
// Only one process at a time may have it open.
func Open(dir string, limit int64) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil { // private: blocks reveal the text
		return nil, err
	}
	lock, err := filelock.Take(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, limit: limit, lock: lock, files: map[Key]*file{}}
	if err := s.list(); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evict(s.limit)
	return s, nil
}

// list finds the blocks in the folder, and removes files that killed writers have left.
func (s *Store) list() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, whole := strings.CutSuffix(e.Name(), ending)
		info, err := e.Info()
		switch b, wrong := hex.DecodeString(name); {
		case strings.Contains(e.Name(), ending+".tmp-"):
			if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		case whole && wrong == nil && len(b) == len(Key{}) && err == nil:
			used := slices.MinFunc([]time.Time{info.ModTime(), time.Now()}, time.Time.Compare) // a clock may have been wrong
			s.files[Key(b)] = &file{info.Size(), used}
			s.bytes += info.Size()
		}
	}
	return nil
}

// Close releases the folder. On a nil store it does nothing.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	return s.lock.Release()
}

func (s *Store) path(k Key) string { return filepath.Join(s.dir, hex.EncodeToString(k[:])+ending) }

// Known returns how many of the first blocks of a chain are there.
func (s *Store) Known(chain []Key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, k := range chain {
		if s.files[k] == nil {
			return n
		}
	}
	return len(chain)
}

// Use records that a chain was used. Of its blocks the last are evicted first, since the others do not need them.
func (s *Store) Use(chain []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i, k := range chain {
		if f := s.files[k]; f != nil {
			f.used = now.Add(-time.Duration(i) * time.Microsecond)
			_ = os.Chtimes(s.path(k), f.used, f.used) // if it fails, the order is lost when the process ends
		}
	}
}

// Write stores a block of size bytes, which fill writes. When Write returns without an error the block is on disk.
func (s *Store) Write(k Key, size int64, fill func(io.Writer) error) error {
	whole := func(w io.Writer) error {
		sum := crc32.New(castagnoli)
		both := io.MultiWriter(w, sum)
		if _, err := both.Write(k.header(size)); err != nil {
			return err
		}
		if err := atomicfile.Exactly(both, size, fill); err != nil {
			return err
		}
		_, err := w.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
		return err
	}
	err := atomicfile.Write(s.path(k), whole)
	if errors.Is(err, syscall.ENOSPC) { // the disk has less space than the limit allows
		s.mu.Lock()
		s.evict(s.bytes - size)
		s.mu.Unlock()
		err = atomicfile.Write(s.path(k), whole)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(k)
	f := &file{int64(headerSize) + size + crc32.Size, time.Now()}
	s.files[k] = f
	s.bytes += f.size
	s.stats.Written++
	s.evict(s.limit)
	return nil
}

// Read passes a block of size bytes to take, which reads all of it. An error means that the block is missing or
// damaged: the result of take must not be used. A damaged file is removed.
func (s *Store) Read(k Key, size int64, take func(io.Reader) error) error {
	f, err := os.Open(s.path(k))
	if err == nil {
		err = readBlock(f, k, size, take)
		f.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.stats.Read++
		return nil
	}
	if f != nil || errors.Is(err, fs.ErrNotExist) { // otherwise it may be there: too many files may be open
		s.stats.Refused++
		s.remove(k)
	}
	return fmt.Errorf("%s: %w: it is left out", s.path(k), err)
}

var errDamaged = errors.New("the block is not as it was written")

func readBlock(f *os.File, k Key, size int64, take func(io.Reader) error) error {
	sum := crc32.New(castagnoli)
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f, header); err != nil || !bytes.Equal(header, k.header(size)) {
		return errDamaged
	}
	_, _ = sum.Write(header)
	in := &summed{io.LimitReader(f, size), sum}
	if err := take(in); err != nil {
		return err
	}
	end := make([]byte, crc32.Size+1)
	n, err := io.ReadFull(f, end)
	if n != crc32.Size || !errors.Is(err, io.ErrUnexpectedEOF) || binary.LittleEndian.Uint32(end) != sum.Sum32() {
		return errDamaged
	}
	return nil
}

// summed computes the checksum of what is read.
type summed struct {
	r   io.Reader
	sum hash.Hash32
}

func (s *summed) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	_, _ = s.sum.Write(b[:n])
	return n, err
}

// evict removes the least recently used blocks until the rest takes at most most bytes.
func (s *Store) evict(most int64) {
	if s.bytes <= most {
		return
	}
	sooner := func(a, b Key) int { return s.files[a].used.Compare(s.files[b].used) }
	for _, k := range slices.SortedFunc(maps.Keys(s.files), sooner) {
		if s.bytes <= most {
			return
		}
		s.remove(k)
	}
}

func (s *Store) remove(k Key) {
	_ = os.Remove(s.path(k)) // if it fails, the next Open finds the block again
	s.forget(k)
}

func (s *Store) forget(k Key) {
	if f := s.files[k]; f != nil {
		s.bytes -= f.size
		delete(s.files, k)
	}
}
