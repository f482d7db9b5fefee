// Package textstore keeps the texts of past requests, and finds the tokens that followed the last
// tokens of another text there: drafts that need no network (compare SuffixDecoding, arXiv
// 2411.04975, and REST, arXiv 2311.08252).
//
// A store has a few segments of sorted texts, each about twice as long as the next newer one. A new
// text is a segment of its own; neighbours are merged in the background. When the store is too
// large, the oldest segment is dropped.
//
// Segments are files, written whole. Texts that are in none yet are in a log, to which Add appends.
// So a crash loses nothing except a text that was being added.
package textstore

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/filelock"
)

const (
	// MatchMost is the length in tokens beyond which matches are not distinguished.
	MatchMost = 32

	// NextMost is how many tokens after a match are returned.
	NextMost = 64

	// DefaultTokens is how many tokens a store keeps by default: about 80 MB of memory and of disk.
	DefaultTokens = 10_000_000

	// A segment of at least so many tokens is a file, and in a small store also one of largestShare.
	// The others are in the log.
	fileTokens = 1 << 16

	// Segments are not merged to more than this share of the store: little is lost when the oldest is dropped.
	largestShare = 8

	// tokenWords is the size of a token in words of 4 bytes: the token, and its place in the order.
	// The sizes of stores and segments are compared in words, since the tokens before a text take some
	// too.
	tokenWords = 2
	TokenBytes = 4 * tokenWords // of a token, in memory and on a disk
)

// Store keeps texts. Its methods may be called by several goroutines.
type Store struct {
	dir   string // empty: it is not kept
	words int    // at most
	lock  *filelock.Lock

	segments atomic.Pointer[[]*segment] // the oldest first

	mu     sync.Mutex
	idle   sync.Cond
	log    *os.File
	queue  []text
	number int64 // of the next text
	busy   bool  // the worker runs
	closed bool
	err    error // of the worker
}

// text is a text that is in no segment yet.
type text struct {
	number  int64
	tokens  []int32
	context int
}

// Open opens the store in a folder, which it makes and locks; an empty name is a store in memory
// alone. tokens is how many it keeps, 0 means DefaultTokens. The tokens before a text that are kept with it count half.
func Open(dir string, tokens int) (*Store, error) {
	if tokens < 0 {
		return nil, fmt.Errorf("memory: %d tokens: want 1 or more, or 0 for %d", tokens, DefaultTokens)
	}
	tokens = cmp.Or(tokens, DefaultTokens)
	s := &Store{dir: dir, words: tokenWords * min(tokens, math.MaxInt/tokenWords)}
	s.idle.L = &s.mu
	s.segments.Store(new([]*segment))
	if dir == "" {
		return s, nil
	}
	err := os.MkdirAll(dir, 0o700) // private: the texts of requests
	if err == nil {
		s.lock, err = filelock.Take(filepath.Join(dir, "lock"))
	}
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("memory: folder %s is used by %s: end it, or name another folder", dir, held.Holder())
	}
	if err != nil {
		return nil, fmt.Errorf("memory: folder %s: %w: name a folder on a local disk that can be written", dir, err)
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.lock.Release())
	}
	return s, nil
}

// load reads the segments and the log.
func (s *Store) load() error {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	var all []*segment
	for _, f := range files {
		path := filepath.Join(s.dir, f.Name())
		switch {
		case strings.Contains(f.Name(), suffix+"."): // a writer was killed
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("memory: %w", err)
			}
		case strings.HasSuffix(f.Name(), suffix):
			p, err := readSegment(path)
			if err != nil {
				return err
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *segment) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var list []*segment
	for _, p := range all {
		switch n := len(list); {
		case n == 0 || p.from >= list[n-1].to:
			list = append(list, p)
		case p.to <= list[n-1].to: // it was merged into that one
			if err := os.Remove(p.path(s.dir)); err != nil {
				return fmt.Errorf("memory: %w", err)
			}
		default:
			return fmt.Errorf("memory: %s and %s have the same texts: remove one of them", list[n-1].path(s.dir), p.path(s.dir))
		}
	}
	if n := len(list); n > 0 {
		s.number = list[n-1].to
	}
	s.segments.Store(&list)
	return s.readLog()
}

// logPath returns the file of the texts that are in no segment's file.
func (s *Store) logPath() string { return filepath.Join(s.dir, "log") }

// readLog takes in the texts of the log, up to the first that is not whole.
func (s *Store) readLog() error {
	if err := atomicfile.RemoveUnfinished(s.logPath()); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	f, err := os.OpenFile(s.logPath(), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	s.log = f
	r, good := bufio.NewReader(f), int64(0)
	for {
		t, n, err := readText(r)
		if err != nil {
			break // a text that was being added, or the end
		}
		good += int64(n)
		if t.number >= s.number {
			s.number = t.number + 1
			s.segments.Store(new(append(slices.Clone(*s.segments.Load()), newSegment(t.number, t.tokens, t.context))))
		}
	}
	if err := f.Truncate(good); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	_, err = f.Seek(good, io.SeekStart)
	return err
}

// append appends a text in the log's format: number, length of the context, length, tokens, and a checksum of these.
func (t *text) append(b []byte) []byte {
	from := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.number))
	b = binary.LittleEndian.AppendUint32(b, uint32(t.context))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(t.tokens)))
	for _, token := range t.tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(token))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], checksums))
}

// readText reads a text of the log and returns its size there.
func readText(r io.Reader) (t text, size int, err error) {
	const head = 16
	b := make([]byte, head)
	if _, err := io.ReadFull(r, b); err != nil {
		return t, 0, err
	}
	n := binary.LittleEndian.Uint32(b[12:])
	t.number, t.context = int64(binary.LittleEndian.Uint64(b)), int(binary.LittleEndian.Uint32(b[8:]))
	if n > textMost || t.context > int(n) || t.number < 0 {
		return t, 0, errors.New("damaged")
	}
	b = append(b, make([]byte, 4*n+4)...)
	if _, err := io.ReadFull(r, b[head:]); err != nil {
		return t, 0, err
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, checksums) != binary.LittleEndian.Uint32(b[len(body):]) {
		return t, 0, errors.New("damaged")
	}
	for at := head; at < len(body); at += 4 {
		t.tokens = append(t.tokens, int32(binary.LittleEndian.Uint32(body[at:])))
	}
	return t, len(b), nil
}

// textMost is the longest text that is kept whole; only the end of longer ones is kept.
const textMost = 1 << 20

// Add keeps a text. context are the tokens before it, of which the last MatchMost are kept to be
// matched. Add returns when the text is in the log; it can be found a little later. Its error may be that earlier texts
// are in the log alone, as on a full disk: they become a file with a later one.
func (s *Store) Add(context, tokens []int32) error {
	tokens = tokens[max(0, len(tokens)-textMost+MatchMost):]
	context = context[max(0, len(context)-MatchMost):]
	if len(tokens) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("memory: Add to a store that is closed")
	}
	t := text{s.number, slices.Concat(context, tokens), len(context)}
	s.number++
	if s.log != nil {
		if n, err := s.log.Write(t.append(nil)); err != nil {
			return fmt.Errorf("memory: %w", errors.Join(err, s.takeBack(n)))
		}
	}
	s.queue = append(s.queue, t)
	if !s.busy {
		s.busy = true
		go s.work()
	}
	return s.err
}

// takeBack drops the last n bytes of the log, a part of a text: texts after it would never be read.
func (s *Store) takeBack(n int) error {
	end, err := s.log.Seek(int64(-n), io.SeekEnd)
	if err == nil {
		err = s.log.Truncate(end)
	}
	return err
}

// work makes segments of texts until there are none.
func (s *Store) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		t := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		err := s.take(newSegment(t.number, t.tokens, t.context))
		s.mu.Lock()
		s.err = nil
		if err != nil {
			s.err = fmt.Errorf("memory: %w", err)
		}
	}
	s.busy = false
	s.idle.Broadcast()
}

// take puts a segment after the others, merges neighbours of about the same size, and drops the
// oldest while there are too many tokens. Only the worker calls it.
func (s *Store) take(p *segment) (err error) {
	list := append(slices.Clone(*s.segments.Load()), p)
	apart := slices.Clone(list)
	inLog, file := 0, s.fileWords()
	for _, q := range list {
		if !q.filed {
			inLog += q.words()
		}
	}
	gone := []*segment{p}
	for n := len(list); n > 1; n = len(list) {
		a, b := list[n-2], list[n-1]
		similar := a.words() <= 2*b.words() && a.words()+b.words() <= max(s.words/largestShare, file)
		if !similar && (inLog < file || a.filed) { // the log's texts become one file
			break
		}
		p = merge(a, b)
		list = append(list[:n-2], p)
		gone = append(gone, a)
	}
	p.filed = p.words() >= file
	if p.filed && s.dir != "" {
		err = p.write(s.dir)
		p.filed = err == nil
		if p.filed {
			err = s.cutLog(p.to)
		} else { // the texts stay in the log, and become a file with the next one
			list, gone = apart, nil
		}
	}
	total := 0
	for _, q := range list {
		total += q.words()
	}
	for len(list) > 1 && total > s.words {
		total -= list[0].words()
		gone = append(gone, list[0])
		list = list[1:]
	}
	s.segments.Store(&list)
	for _, q := range gone {
		if q.filed && q != p && s.dir != "" {
			err = errors.Join(err, os.Remove(q.path(s.dir)))
		}
	}
	return err
}

// fileWords returns the least size of a segment that is a file.
func (s *Store) fileWords() int { return min(tokenWords*fileTokens, s.words/largestShare) }

// cutLog keeps only the texts from a number on in the log: those that the worker has not seen.
func (s *Store) cutLog(from int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.log.Close() // some systems cannot replace an open file
	err := atomicfile.Write(s.logPath(), func(w io.Writer) error {
		for _, t := range s.queue {
			if _, err := w.Write(t.append(nil)); t.number < from || err != nil {
				return errors.Join(err, fmt.Errorf("text %d: want %d or more", t.number, from))
			}
		}
		return nil
	})
	log, failed := os.OpenFile(s.logPath(), os.O_WRONLY|os.O_APPEND, 0o666)
	if failed == nil {
		s.log = log
	}
	return errors.Join(err, failed)
}

// Matches appends to dst the places that match the end of text in the most tokens, in least tokens or
// more: the longest matches first, of equal ones the newest first, and at most most.
func (s *Store) Matches(dst []draft.Match, text []int32, least, most int) []draft.Match {
	list, from := *s.segments.Load(), len(dst)
	for i := len(list) - 1; i >= 0; i-- {
		dst = list[i].match(dst, text, max(least, 1), most)
	}
	slices.SortStableFunc(dst[from:], func(a, b draft.Match) int { return cmp.Compare(b.Length, a.Length) })
	return dst[:min(len(dst), from+most)]
}

// Tokens returns how many tokens can be found.
func (s *Store) Tokens() (n int) {
	for _, p := range *s.segments.Load() {
		n += len(p.order)
	}
	return n
}

// Bytes returns the memory that the texts take.
func (s *Store) Bytes() (n int) {
	for _, p := range *s.segments.Load() {
		n += 4 * p.words()
	}
	return n
}

// Wait returns when all added texts can be found, with the error, if any, that prevents texts from being added.
func (s *Store) Wait() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy {
		s.idle.Wait()
	}
	return s.err
}

// Close waits for texts that are being added, and releases the folder.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	err := s.Wait()
	if s.log != nil {
		err = errors.Join(err, s.log.Close(), s.lock.Release())
	}
	return err
}
