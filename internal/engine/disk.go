// Prefixes in files, for prompts that begin alike after the program was started again.

package engine

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

const (
	// blockPages are the pages of a file: a longer block loses more rows at the end of a text, a
	// shorter one makes more files.
	blockPages = 4
	blockRows  = blockPages * nn.PageRows

	// mostSaves is how many texts may wait until they are written. What comes then is not written: the
	// next turn has it too.
	mostSaves = 4
)

// disk keeps prefixes in a store.
type disk struct {
	store  *pagestore.Store
	model  string // what tells its rows from those of others
	report func(error)

	reading sync.Mutex // held while prefixes are read: requests that begin alike read them once

	mu      sync.Mutex
	changed sync.Cond
	waiting []save // to be written
	writing bool   // the goroutine writes one
	hurry   bool   // it is to end early
	closed  bool
	ended   chan struct{} // closed when the goroutine has ended
}

// save is a text to be written.
type save struct {
	tenant string
	text   []int32
	cache  *nn.Cache // a fork
}

func newDisk(store *pagestore.Store, model string, report func(error)) *disk {
	d := &disk{store: store, model: model, report: report, ended: make(chan struct{})}
	d.changed.L = &d.mu
	go d.work()
	return d
}

// close waits until all that was kept is written.
func (d *disk) close() {
	d.mu.Lock()
	d.closed = true
	d.changed.Broadcast()
	d.mu.Unlock()
	<-d.ended
}

// release gives back the memory of what is not written yet. Blocks that are written stay.
func (d *disk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.waiting {
		s.cache.Free()
	}
	d.waiting = nil
	d.hurry = true
	for d.writing {
		d.changed.Wait()
	}
	d.hurry = false
}

func (d *disk) hurries() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hurry
}

// chain is the keys of the whole blocks of a text.
func (d *disk) chain(tenant string, text []int32) []pagestore.Key {
	k := pagestore.Root(d.model, tenant)
	chain := make([]pagestore.Key, len(text)/blockRows)
	for i := range chain {
		k = k.Next(text[i*blockRows : (i+1)*blockRows])
		chain[i] = k
	}
	return chain
}

// keep has a prefix written, where its rows are all there. It does not wait.
func (d *disk) keep(q *prefix) {
	c, ok := q.cache.(*nn.Cache)
	if !ok || !c.Whole() || len(q.text) < blockRows {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) < mostSaves {
		d.waiting = append(d.waiting, save{q.tenant, q.text, c.Fork()})
		d.changed.Broadcast()
	}
}

// work writes what is kept.
func (d *disk) work() {
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
		if err := d.write(&s); err != nil {
			d.report(fmt.Errorf("engine: a prompt is not kept in files: %w", err))
		}
		s.cache.Free()
		d.mu.Lock()
		d.writing = false
		d.changed.Broadcast()
	}
}

// write writes the blocks of a text that are not there.
func (d *disk) write(s *save) error {
	chain := d.chain(s.tenant, s.text)
	size := s.cache.Pages().PageBytes() * blockPages
	for i := d.store.Known(chain); i < len(chain) && !d.hurries(); i++ {
		err := d.store.Write(chain[i], size, func(w io.Writer) error { return s.cache.WritePages(w, i*blockPages, blockPages) })
		if err != nil {
			return err
		}
	}
	d.store.Use(chain)
	return nil
}

// restore reads the prefix of a request's prompt, where files have many more rows of it than memory.
func (e *Engine) restore(r *Request) {
	d := e.disk
	if d == nil || r.Private || r.Fresh || r.PromptLogits || len(r.Prompt) <= blockRows {
		return
	}
	d.reading.Lock()
	defer d.reading.Unlock()
	chain := d.chain(r.Tenant, r.Prompt[:len(r.Prompt)-1]) // the last token's logits are wanted
	blocks := len(chain)
	chain = chain[:d.store.Known(chain)]
	rows := len(chain) * blockRows
	e.mu.Lock()
	known := e.known(r)
	e.stats.Missed += int64(blocks - max(len(chain), known/blockRows))
	need := e.textBytes(&Request{}, rows)
	wanted := !e.closed && rows >= known+leastShared && need <= e.prefixMemory()
	e.mu.Unlock()
	cache, ok := e.target.NewCache().(*nn.Cache)
	if !wanted || !ok || !e.fitsBetweenSteps(need) {
		return
	}
	if err := d.read(cache, chain); err != nil {
		d.report(err)
	}
	e.passing.Lock()
	defer e.passing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restoring -= need
	if e.closed || cache.Len() == 0 {
		cache.Free()
		return
	}
	e.prefixes.put(e, &prefix{tenant: r.Tenant, text: slices.Clone(r.Prompt[:cache.Len()]), cache: cache, bytes: need})
}

// fitsBetweenSteps is fits in another goroutine than the engine's, for what is restored then.
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

// read reads blocks into an empty cache, up to the first that is damaged.
func (d *disk) read(cache *nn.Cache, chain []pagestore.Key) error {
	size := cache.Pages().PageBytes() * blockPages
	for i, k := range chain {
		err := d.store.Read(k, size, func(r io.Reader) error { return cache.ReadPages(r, blockPages) })
		if err != nil {
			return errors.Join(err, cache.Truncate(i*blockRows))
		}
	}
	d.store.Use(chain)
	return nil
}

// known is how many rows of a request's prompt memory has, or has soon. The engine is locked.
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
