// Prefixes in files, for prompts that begin alike after the program is started again.

package engine

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

const (
	// blockPages is the number of pages in a file. Longer blocks lose more rows at the end of a text;
	// shorter ones make more files.
	blockPages = 4
	blockRows  = blockPages * nn.PageRows

	// mostSaves is how many texts may wait to be written. Further texts are not written: the next turn
	// of the conversation contains them too.
	mostSaves = 4
)

// disk keeps prefixes in a store.
type disk struct {
	store  *pagestore.Store
	model  string // distinguishes its rows from other models'
	report func(error)

	reading sync.Mutex // held while prefixes are read: requests that begin alike read them once

	mu      sync.Mutex
	changed sync.Cond
	waiting []save // to be written
	writing bool   // the goroutine writes one
	closed  bool
	ended   chan struct{} // closed when the goroutine has ended
	hurry   atomic.Bool   // tells the goroutine to stop writing early
}

// save is a text to be written.
type save struct {
	tenant string
	text   []int32
	cache  *nn.Cache // a fork
	rows   *nn.Cache // the drafter's, of the text in read; nil: none
	read   []int32
	of     string // Request.Rows
}

func (s *save) free() {
	s.cache.Free()
	if s.rows != nil {
		s.rows.Free()
	}
}

func newDisk(store *pagestore.Store, model string, report func(error)) *disk {
	d := &disk{store: store, model: model, report: report, ended: make(chan struct{})}
	d.changed.L = &d.mu
	go d.work()
	return d
}

// closeTime is the longest that close waits: a server that is asked to end is killed soon after.
var closeTime = 10 * time.Second

// close waits until the kept prefixes are written, as far as closeTime allows.
func (d *disk) close() {
	defer time.AfterFunc(closeTime, d.release).Stop()
	d.mu.Lock()
	d.closed = true
	d.changed.Broadcast()
	d.mu.Unlock()
	<-d.ended
}

// release frees the memory of texts that are not written yet. Blocks already written stay.
func (d *disk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.waiting {
		s.free()
	}
	d.waiting = nil
	d.hurry.Store(true)
	for d.writing {
		d.changed.Wait()
	}
	d.hurry.Store(false)
}

// chain returns the keys of the whole blocks of a text.
func (d *disk) chain(tenant string, text []int32) []pagestore.Key {
	return chainOf(pagestore.Root(d.model, tenant), text, 0)
}

// chainOfRows returns the keys of a drafter's blocks, whose last rows also depend on the token after the block.
func (d *disk) chainOfRows(tenant, of string, mem *nn.Pages, text []int32) []pagestore.Key {
	return chainOf(pagestore.Root(d.model, tenant, of, mem.Layout()), text, 1)
}

func chainOf(k pagestore.Key, text []int32, behind int) []pagestore.Key {
	chain := make([]pagestore.Key, max(len(text)-behind, 0)/blockRows)
	for i := range chain {
		k = k.Next(text[i*blockRows : (i+1)*blockRows+behind])
		chain[i] = k
	}
	return chain
}

// ending returns the key of the file that a model with recurrent layers needs, besides the whole blocks, to go on after
// the given number of pages of a text. It has the pages after the blocks, and the states. There is at least one block.
func ending(chain []pagestore.Key, text []int32, pages int) pagestore.Key {
	blocks := pages / blockPages
	return chain[blocks-1].Next(text[blocks*blockRows : pages*nn.PageRows])
}

// stored describes how much of a text is in files.
type stored struct {
	chain  []pagestore.Key // keys of its blocks and, with recurrent layers, of the ending
	blocks int
	pages  int
}

// find returns how much of a text is in files. chain has the keys of its blocks.
func (d *disk) find(mem *nn.Pages, chain []pagestore.Key, text []int32) stored {
	blocks := d.store.Known(chain)
	if mem.StateBytes() == 0 {
		return stored{chain[:blocks], blocks, blocks * blockPages}
	}
	for n := min(len(text)/nn.PageRows, (blocks+1)*blockPages-1); n >= blockPages; n-- {
		if end := []pagestore.Key{ending(chain, text, n)}; d.store.Known(end) == 1 {
			return stored{slices.Concat(chain[:n/blockPages], end), n / blockPages, n}
		}
	}
	return stored{}
}

// keep queues a prefix to be written, if all of its rows are there. It does not wait. of is Request.Rows.
func (d *disk) keep(q *prefix, of string) {
	c, ok := q.cache.(*nn.Cache)
	if !ok || !c.Whole() || len(q.text) < blockRows {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) < mostSaves {
		s := save{tenant: q.tenant, text: q.text, cache: c.Fork(), of: of}
		if of != "" && c.Pages().StateBytes() == 0 { // with states a drafter could not go on: its last row is computed again
			s.rows, s.read = q.kept.Rows()
		}
		d.waiting = append(d.waiting, s)
		d.changed.Broadcast()
	}
}

// work writes the queued prefixes. It reports an error once, until one was written again.
func (d *disk) work() {
	failing := false
	defer close(d.ended)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for len(d.waiting) == 0 && !d.closed {
			d.changed.Wait()
		}
		if len(d.waiting) == 0 {
			return
		}
		s := d.waiting[0]
		d.waiting = d.waiting[1:]
		d.writing = true
		d.mu.Unlock()
		err := d.write(&s)
		if err != nil && !failing { // a full disk fails for every prompt
			d.report(fmt.Errorf("engine: prompts are not kept in files: %w", err))
		}
		failing = err != nil
		s.free()
		d.mu.Lock()
		d.writing = false
		d.changed.Broadcast()
	}
}

// write writes the blocks of a text that are not in files yet, and the endings that recurrent layers need.
func (d *disk) write(s *save) (err error) {
	defer par.Recover("engine: the files of a prompt", &err)
	chain := d.chain(s.tenant, s.text)
	mem := s.cache.Pages()
	if err := d.writeBlocks(s.cache, chain); err != nil {
		return err
	}
	used := chain
	for _, pages := range s.cache.KeptStates() {
		if pages < blockPages || d.hurry.Load() {
			continue
		}
		end := ending(chain, s.text, pages)
		used = append(used, end)
		if d.store.Known([]pagestore.Key{end}) == 1 {
			continue
		}
		more := pages % blockPages
		err := d.store.Write(end, endingBytes(mem, more), func(w io.Writer) error {
			return errors.Join(s.cache.WritePages(w, pages-more, more), s.cache.WriteState(w, pages))
		})
		if err != nil {
			return err
		}
	}
	d.store.Use(used)
	if s.rows == nil {
		return nil
	}
	chain = d.chainOfRows(s.tenant, s.of, s.rows.Pages(), s.read)
	chain = chain[:min(len(chain), s.rows.Len()/blockRows)]
	err = d.writeBlocks(s.rows, chain)
	d.store.Use(chain)
	return err
}

// writeBlocks writes the blocks of a cache that are not in files yet.
func (d *disk) writeBlocks(cache *nn.Cache, chain []pagestore.Key) error {
	for i := d.store.Known(chain); i < len(chain) && !d.hurry.Load(); i++ {
		err := d.store.Write(chain[i], cache.Pages().PageBytes()*blockPages, func(w io.Writer) error {
			return cache.WritePages(w, i*blockPages, blockPages)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endingBytes returns the size of the file of an ending with the given number of pages.
func endingBytes(mem *nn.Pages, pages int) int64 {
	return mem.PageBytes()*int64(pages) + int64(mem.StateBytes())
}

// restore reads the prefix of a request's prompt if files have many more rows of it than memory.
func (e *Engine) restore(r *Request) {
	d := e.disk
	if d == nil || r.Private || r.Fresh || r.PromptLogits || len(r.Prompt) <= blockRows {
		return
	}
	d.reading.Lock()
	defer d.reading.Unlock()
	cache, ok := e.target.NewCache().(*nn.Cache)
	if !ok {
		return
	}
	text := r.Prompt[:len(r.Prompt)-1] // the last token's logits are wanted
	chain := d.chain(r.Tenant, text)
	s := d.find(cache.Pages(), chain, text)
	rows := s.pages * nn.PageRows
	e.mu.Lock()
	known := e.known(r)
	e.stats.Missed += int64(len(chain) - max(s.blocks, known/blockRows))
	need := e.textBytes(&Request{pages: r.pages}, rows)
	wanted := !e.closed && rows >= known+leastShared && need <= e.prefixMemory()
	e.mu.Unlock()
	if !wanted || !e.fitsBetweenSteps(need) {
		return
	}
	if err := d.read(cache, &s); err != nil {
		d.report(err)
	}
	q := &prefix{tenant: r.Tenant, text: slices.Clone(r.Prompt[:cache.Len()]), cache: cache, bytes: need}
	if r.Rows != "" && !r.Once && cache.Len() > 0 && cache.Pages().StateBytes() == 0 {
		q.drafter = r.Drafter
		q.kept = e.restoreRows(r, cache.Len())
	}
	e.passing.Lock()
	defer e.passing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restoring -= need
	e.wake.Signal() // requests that it left no memory may start
	if e.closed || cache.Len() == 0 {
		q.free()
		return
	}
	e.prefixes.put(e, q)
}

// restoreRows reads a request's drafter's rows of the beginning of the prompt. It returns nil if files have none.
func (e *Engine) restoreRows(r *Request, rows int) *speculate.Kept {
	e.passing.Lock()
	k, cache, err := e.loop.NewKept(r.Drafter)
	e.passing.Unlock()
	if k == nil || err != nil {
		return nil // starting the request will fail in the same way
	}
	d := e.disk
	chain := d.chainOfRows(r.Tenant, r.Rows, cache.Pages(), r.Prompt[:rows+1])
	chain = chain[:d.store.Known(chain)]
	if err := d.read(cache, &stored{chain: chain, blocks: len(chain)}); err != nil {
		d.report(err)
	}
	if cache.Len() == 0 {
		e.passing.Lock()
		defer e.passing.Unlock()
		k.Close()
		return nil
	}
	k.Adopt(slices.Clone(r.Prompt[:cache.Len()+1]))
	return k
}

// fitsBetweenSteps is fits for goroutines other than the engine's. It reserves the bytes for what is being restored.
func (e *Engine) fitsBetweenSteps(bytes int64) bool {
	e.passing.Lock()
	defer e.passing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.fits(bytes) {
		return false
	}
	e.restoring += bytes
	return true
}

// read reads the stored part of a text into an empty cache: up to the first damaged block, or with recurrent layers all
// or nothing.
func (d *disk) read(cache *nn.Cache, s *stored) error {
	mem := cache.Pages()
	for i, k := range s.chain {
		pages, size := blockPages, mem.PageBytes()*blockPages
		atEnd := i == s.blocks
		if atEnd {
			pages = s.pages % blockPages
			size = endingBytes(mem, pages)
		}
		err := d.store.Read(k, size, func(r io.Reader) error {
			if err := cache.ReadPages(r, pages); err != nil || !atEnd {
				return err
			}
			return cache.ReadState(r)
		})
		if err == nil {
			continue
		}
		if mem.StateBytes() > 0 {
			i = 0
		}
		return errors.Join(err, cache.Truncate(i*blockRows))
	}
	d.store.Use(s.chain)
	return nil
}

// known returns how many rows of a request's prompt are in memory, or soon will be. The engine is locked.
func (e *Engine) known(r *Request) (rows int) {
	for _, q := range e.prefixes.list {
		if q.tenant == r.Tenant {
			rows = max(rows, shared(q.cache, q.text, r.Prompt))
		}
	}
	for _, j := range e.running {
		if j.Tenant == r.Tenant {
			rows = max(rows, speculate.CommonPrefix(j.text, r.Prompt))
		}
	}
	return rows
}
