package bpe

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/internal/inside/lower"
	_ "github.com/grovellm/grove/tokenizer" // sets lower.FindSplitter
)

// Counter counts the words of a corpus.
type Counter struct {
	pre     string
	cut     func(string) int
	threads int
	words   map[string]int64
}

// NewCounter returns a counter whose words are those within which a tokenizer with pre-tokenizer
// o.Pre merges.
func NewCounter(o Options) (*Counter, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	cut, err := lower.FindSplitter(o.Pre)
	if err != nil {
		return nil, err
	}
	return &Counter{pre: o.Pre, cut: cut, threads: o.Threads, words: map[string]int64{}}, nil
}

// countChunk is the size of the text that a worker takes at a time.
const countChunk = 1 << 20

// Add counts the words of documents, weight times each. No word spans two documents.
func (c *Counter) Add(docs []string, weight int) error {
	if weight < 1 || weight > 1<<20 {
		return fmt.Errorf("weight %d: want 1 to %d", weight, 1<<20)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	take := func() []string {
		mu.Lock()
		defer mu.Unlock()
		from, size := next, 0
		for next < len(docs) && size < countChunk {
			size += len(docs[next])
			next++
		}
		return docs[from:next]
	}
	parts := make([]map[string]int64, c.threads)
	for i := range parts {
		wg.Go(func() {
			m := map[string]int64{}
			for part := take(); len(part) > 0; part = take() {
				for _, text := range part {
					count(m, text, c.cut)
				}
			}
			parts[i] = m
		})
	}
	wg.Wait()
	for _, m := range parts {
		for w, n := range m {
			if _, known := c.words[w]; !known {
				w = strings.Clone(w) // allows the document to be freed
			}
			c.words[w] += n * int64(weight)
		}
	}
	return nil
}

func count(m map[string]int64, text string, cut func(string) int) {
	for len(text) > 0 {
		n := cut(text)
		m[text[:n]]++
		text = text[n:]
	}
}

// sorted lists the words in an order independent of a map's.
func (c *Counter) sorted() []string {
	words := make([]string, 0, len(c.words))
	for w := range c.words {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

// Options defines what to learn. The zero value is grove's own vocabulary.
type Options struct {
	Size    int      // the number of tokens, including special ones; 0: 16384
	Pre     string   // how text is split into words, by llama.cpp's name; "": qwen2
	Special []string // control tokens, put at the end of the id space; nil: Special()
	Threads int      // for counting words; 0: GOMAXPROCS
}

const maxSize = 1 << 20

func (o *Options) fill() error {
	o.Size = cmp.Or(o.Size, 16384)
	if o.Pre == "" {
		o.Pre = "qwen2"
	}
	if o.Special == nil {
		o.Special = Special()
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if least := 256 + len(o.Special); o.Size < least || o.Size > maxSize {
		return fmt.Errorf("vocabulary size %d: want %d (all bytes and the special tokens) to %d", o.Size, least,
			maxSize)
	}
	for i, s := range o.Special {
		if len(s) < 2 || slices.Contains(o.Special[:i], s) {
			return fmt.Errorf("special token %q: want a text of two bytes or more, named once", s)
		}
	}
	return nil
}
