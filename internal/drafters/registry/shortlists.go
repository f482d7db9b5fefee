// Shortlists of drafters that have a head.

package registry

import (
	"errors"
	"fmt"
	"os"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/shortlist"
)

// Shortlists returns the method that o names, or nil if it names none, for drafters of the head that d
// describes. of identifies the head among those of one target. A method's data are computed once for
// each of the last heads.
func Shortlists(o shortlist.Options, d shortlist.Drafter, of any, target Target) (shortlist.Method, error) {
	if o.Method == "" {
		return nil, nil
	}
	type key struct {
		of any
		o  shortlist.Options
	}
	v, err := target.Shared.GetSome(key{of, o}, func() (any, error) {
		if o.Routed() && d.Embed != nil {
			var err error
			if d.Routing, err = openRouter(o.Router, d, target); err != nil {
				return nil, err
			}
		}
		return shortlist.Open(o, d)
	})
	if err != nil {
		return nil, err
	}
	return v.(shortlist.Method).Fork(), nil
}

// openRouter opens the router at path. If path is empty it returns the first one that the target was
// opened with, or nil.
func openRouter(path string, d shortlist.Drafter, target Target) (*shortlist.Routing, error) {
	heads := target.Heads
	if path != "" {
		heads = []Head{{Name: path}}
	}
	for _, h := range heads {
		r, err := loadRouter(h, d, target)
		switch {
		case path == "" && errors.Is(err, shortlist.ErrNoRouter):
		case err != nil:
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		default:
			return r, nil
		}
	}
	return nil, nil
}

func loadRouter(h Head, d shortlist.Drafter, target Target) (_ *shortlist.Routing, err error) {
	f, err := h.gguf()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := shortlist.ReadRouter(f)
	if err != nil {
		return nil, err
	}
	if err := r.Fits(target.Vocab, d.Head.W.In(), d.Head.W.In()); err != nil {
		return nil, err
	}
	if err := r.Reads(d.Tokenizer); err != nil {
		return nil, err
	}
	return r.Load(f, d.Pool)
}

// gguf opens a file that may be a router's.
func (h *Head) gguf() (*gguf.File, error) {
	if h.Data != nil {
		return gguf.Parse(h.Name, h.Data)
	}
	if info, err := os.Stat(h.Name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%w: a folder, and a router is a GGUF file", shortlist.ErrNoRouter)
	}
	return gguf.Open(h.Name)
}
