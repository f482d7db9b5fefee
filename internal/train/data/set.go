package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/grovellm/grove/tokenizer"
)

// Set is a source as tokens: its documents one after the other, each closed by the end-of-text
// token. It may be read from any number of goroutines.
type Set struct {
	Name   string
	Weight float64 // share of a mix's rows, relative to the other sets'
	Bytes  int64   // of text
	Docs   int

	wide bool   // four bytes a token, else two
	data []byte // little endian
	key  [32]byte
}

// Len is the number of tokens.
func (s *Set) Len() int {
	if s.wide {
		return len(s.data) / 4
	}
	return len(s.data) / 2
}

// At returns a token.
func (s *Set) At(i int) int32 {
	if s.wide {
		return int32(binary.LittleEndian.Uint32(s.data[4*i:]))
	}
	return int32(binary.LittleEndian.Uint16(s.data[2*i:]))
}

// Read fills dst with the tokens from at on; the end is followed by the beginning.
func (s *Set) Read(dst []int32, at int) {
	n := s.Len()
	for i := range dst {
		if at == n {
			at = 0
		}
		dst[i] = s.At(at)
		at++
	}
}

// HoldOut splits off the last sixteenth of the set, to measure on.
func (s *Set) HoldOut() (train, held *Set) {
	size := 2
	if s.wide {
		size = 4
	}
	at := (s.Len() - s.Len()/16) * size
	a, b := *s, *s
	a.data, b.data = s.data[:at], s.data[at:]
	a.key[0] = s.key[0] + 1
	b.key[0] = s.key[0] + 1
	b.key[1] = s.key[1] + 1 // they are sets of their own
	return &a, &b
}

// Windows is the number of rows of length tokens (each with one more, the last one's target) that
// the set holds side by side; Window reads one of them. Together they score every token but the
// set's first, and a rest too short for a row.
func (s *Set) Windows(length int) int { return max(0, (s.Len()-1)/length) }

// Window reads the i-th row into dst, whose length is one more than the row's.
func (s *Set) Window(i int, dst []int32) { s.Read(dst, i*(len(dst)-1)) }

// LoadOptions says how Load works.
type LoadOptions struct {
	Cache   string // folder to keep tokens in between runs; "": nowhere
	Threads int    // 0: GOMAXPROCS
}

// Load reads and tokenises a source. With a cache the tokens of the same text and tokenizer are
// made once.
func Load(ctx context.Context, s Source, tok *tokenizer.Tokenizer, o LoadOptions) (*Set, Report, error) {
	docs, report, err := s.Documents()
	if err != nil {
		return nil, report, err
	}
	set, err := FromDocuments(ctx, s.Name, docs, tok, o)
	if err != nil {
		return nil, report, fmt.Errorf("source %s: %w", s.Name, err)
	}
	set.Weight = s.Weight
	return set, report, nil
}

// FromDocuments tokenises documents that are not from files: text that a model generated, say. The
// set's weight is 1.
func FromDocuments(ctx context.Context, name string, docs []Document, tok *tokenizer.Tokenizer, o LoadOptions) (*Set,
	error) {
	key := setKey(docs, tok)
	path := ""
	if o.Cache != "" {
		path = filepath.Join(o.Cache, cacheName(name, key))
		if set, err := readCache(path, key); err != nil {
			return nil, err
		} else if set != nil {
			set.Name, set.Weight = name, 1
			return set, nil
		}
	}
	set, err := tokenise(ctx, docs, tok, o)
	if err != nil {
		return nil, err
	}
	set.Name = name
	set.Weight = 1
	set.key = key
	if path == "" {
		return set, nil
	}
	if err := os.MkdirAll(o.Cache, 0o777); err != nil {
		return nil, err
	}
	return set, set.writeCache(path)
}

// FromTokens is a set of documents that are tokens already; the end-of-text token closes those that
// it does not. Its weight is 1.
func FromTokens(name string, docs [][]int32, tok *tokenizer.Tokenizer) *Set {
	set := &Set{Name: name, Weight: 1, Docs: len(docs), wide: tok.VocabSize() > 1<<16}
	for _, doc := range docs {
		if n := len(doc); tok.EOS() >= 0 && (n == 0 || doc[n-1] != tok.EOS()) {
			doc = append(doc[:n:n], tok.EOS())
		}
		set.data = append(set.data, set.encode(doc)...)
	}
	set.key = sha256.Sum256(set.data)
	return set
}

// tokenise encodes documents in parallel.
func tokenise(ctx context.Context, docs []Document, tok *tokenizer.Tokenizer, o LoadOptions) (*Set, error) {
	eos := tok.EOS()
	if eos < 0 {
		return nil, fmt.Errorf("the tokenizer has no end-of-text token to put between documents")
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	set := &Set{Docs: len(docs), wide: tok.VocabSize() > 1<<16}
	for i := range docs {
		set.Bytes += int64(docs[i].Bytes())
	}
	parts := make([][]byte, len(docs))
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range o.Threads {
		wg.Go(func() {
			var ids []int32
			for {
				i := int(next.Add(1)) - 1
				if i >= len(docs) || ctx.Err() != nil || failed.Load() != nil {
					return
				}
				var err error
				if ids, err = Encode(ids[:0], &docs[i], tok); err != nil {
					failed.Store(&err)
					return
				}
				parts[i] = set.encode(append(ids, eos))
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	set.data = make([]byte, 0, size)
	for _, p := range parts {
		set.data = append(set.data, p...)
	}
	return set, nil
}

func (s *Set) encode(ids []int32) []byte {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		if s.wide {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		} else {
			b = binary.LittleEndian.AppendUint16(b, uint16(id))
		}
	}
	return b
}

// Encode appends a document's tokens to dst: its text as text, its control tokens as themselves.
func Encode(dst []int32, d *Document, tok *tokenizer.Tokenizer) ([]int32, error) {
	for _, p := range d.Parts {
		if !p.Control {
			dst = append(dst, tok.Encode(p.Text, tokenizer.EncodeOptions{})...)
			continue
		}
		id, ok := tok.Find(p.Text)
		if !ok || !tok.IsSpecial(id) {
			return nil, fmt.Errorf("%s: the tokenizer has no control token %s, which the template names", d.Name,
				p.Text)
		}
		dst = append(dst, id)
	}
	return dst, nil
}
