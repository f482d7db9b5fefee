// Prefixes: beginnings of texts that have already been computed.

package engine

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
)

// prefix is a text whose rows are in a cache, with its drafter's state. It shares pages with the
// caches of requests and with other prefixes.
type prefix struct {
	tenant  string
	text    []int32 // of the cache's rows
	cache   speculate.Cache
	drafter draft.Drafter
	kept    *speculate.Kept // of the drafter; may be nil
	bytes   int64           // memory, as if nothing were shared
}

// prefixes are those that requests left when they ended, the least recently used first.
type prefixes struct {
	list  []*prefix
	bytes int64 // of all
	least int64 // bytes that they may always take
}

const (
	// mostPrefixes limits the time of a search, which compares the prompt with each prefix.
	mostPrefixes = 256

	// leastShared is how many tokens a request must save to wait for a prefix that another request is computing.
	leastShared = 2 * nn.PageRows
)

// found is a prefix for a request to begin with.
type found struct {
	cache speculate.Cache // the request's
	kept  *speculate.Kept
	made  bool // kept was made for the request, which closes it
}

// shared returns how many rows of a cache a text can begin with: those of the common prefix, except
// that of the text's last token, whose logits are wanted. There are fewer if rows that they need
// were freed.
func shared(c speculate.Cache, cached, text []int32) int {
	return c.Reach(min(speculate.CommonPrefix(cached, text), len(text)-1))
}

// find returns the longest prefix of a request's text among kept prefixes and running requests, or nil.
func (p *prefixes) find(e *Engine, j *job) *found {
	best, n := -1, 0
	for i, q := range p.list {
		if same := shared(q.cache, q.text, j.text); q.tenant == j.Tenant && (same > n || same == n && n > 0 &&
			q.drafter == j.Drafter) {
			best, n = i, same
		}
	}
	var from *job
	for _, o := range e.running {
		if same := shared(o.seq.Cache(), o.text, j.text); o.Tenant == j.Tenant && same > n {
			from, n = o, same
		}
	}
	if n == 0 {
		return nil
	}
	f := new(found)
	var cache speculate.Cache
	if from != nil {
		cache = from.seq.Cache()
		if from.Drafter == j.Drafter {
			f.kept, _ = from.seq.Keep() // without it the drafter reads the prefix again
			f.made = true
		}
	} else {
		q := p.list[best]
		p.list = append(slices.Delete(p.list, best, best+1), q)
		cache = q.cache
		if q.drafter == j.Drafter {
			f.kept = q.kept
		}
	}
	f.cache = e.target.ForkCache(cache)
	if err := f.cache.Truncate(n); err != nil { // impossible: shared checked it
		panic(err)
	}
	return f
}

// comes reports whether a running request is computing many more rows that j can begin with than there are now.
func (p *prefixes) comes(e *Engine, j *job) bool {
	if j.Fresh || j.PromptLogits {
		return false
	}
	now, soon := 0, 0
	for _, q := range p.list {
		if q.tenant == j.Tenant {
			now = max(now, shared(q.cache, q.text, j.text))
		}
	}
	for _, o := range e.running {
		if o.Tenant == j.Tenant {
			c := o.seq.Cache()
			now = max(now, shared(c, o.text, j.text))
			same := speculate.CommonPrefix(o.text, j.text)
			if o.reading() && (same > c.Len() || c.Reach(same) == same) {
				soon = max(soon, same)
			}
		}
	}
	return soon >= now+leastShared
}

// add keeps the rows of a request that ends. Prefixes that the new one extends are dropped.
func (p *prefixes) add(e *Engine, j *job) {
	rows := j.seq.Cache().Len()
	if rows == 0 || j.Fresh || j.forgotten {
		return
	}
	q := &prefix{tenant: j.Tenant, text: slices.Clone(j.seq.Text()[:rows]), bytes: e.textBytes(&j.Request, rows)}
	if !j.Once {
		q.drafter = j.Drafter
	}
	for i := 0; i < len(p.list); i++ {
		if o := p.list[i]; o.tenant == q.tenant && o.drafter == q.drafter &&
			speculate.CommonPrefix(o.text, q.text) == len(o.text) {
			p.remove(i)
			i--
		}
	}
	q.cache = e.target.ForkCache(j.seq.Cache())
	if q.drafter != nil {
		q.kept, _ = j.seq.Keep() // without it drafters read the prefix again
	}
	if e.disk != nil && !j.Private {
		e.disk.keep(q, j.Rows)
	}
	p.put(e, q)
}

// put adds a prefix, and drops others where there are too many.
func (p *prefixes) put(e *Engine, q *prefix) {
	p.list = append(p.list, q)
	p.bytes += q.bytes
	most := e.prefixMemory()
	for len(p.list) > mostPrefixes || min(p.bytes, e.inUse()) > most && len(p.list) > 0 {
		p.remove(0)
	}
}

// prefixMemory returns how much memory prefixes may take now. Without a limit they take half of what is available and
// leave the rest for other conversations and programs.
func (e *Engine) prefixMemory() int64 {
	if e.o.CacheMemory > 0 {
		return e.o.CacheMemory
	}
	return max(e.o.Available()/2, e.prefixes.least)
}

func (p *prefixes) remove(i int) {
	q := p.list[i]
	q.free()
	p.bytes -= q.bytes
	p.list = slices.Delete(p.list, i, i+1)
}

// free frees the prefix's memory.
func (q *prefix) free() {
	q.cache.Free()
	q.kept.Close()
}
