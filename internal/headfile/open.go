// Opening a head: as a kind of its own, to look at, and for a target.

package headfile

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/model"
)

// Named puts a head's name before an error that does not say it.
func Named(h draft.Head, err error) error {
	if err == nil || strings.Contains(err.Error(), h.Name) {
		return err
	}
	return fmt.Errorf("%s: %w", h.Name, err)
}

// Read opens a file and has read make of it what its kind is. What comes of it lasts until the file is closed.
func Read[F any](h draft.Head, read func(f *File) (F, error)) (F, error) {
	var none F
	f, err := Open(h)
	if err != nil {
		return none, Named(h, err)
	}
	x, err := read(f)
	if err != nil {
		return none, Named(h, errors.Join(err, f.Close()))
	}
	return x, nil
}

// file is an open head of a kind.
type file interface {
	io.Closer
	CheckInPlace() error
}

// With is what use makes of a file while it is open.
func With[F file, T any](h draft.Head, read func(h draft.Head) (F, error), use func(f F) (T, error)) (T, error) {
	f, err := read(h)
	if err != nil {
		var none T
		return none, err
	}
	v, err := use(f)
	if err == nil {
		err = f.CheckInPlace()
	}
	return v, Named(h, errors.Join(err, f.Close()))
}

// opened is what a target's drafters share a head of a kind by.
type opened[H any] struct{ name string }

// Load opens a head for a target: load makes it of its file, once for all drafters of the target.
func Load[F file, H any](h draft.Head, target draft.Target, read func(h draft.Head) (F, error), load func(f F, m *model.Model) (H, error)) (H, error) {
	v, err := target.Shared.Get(opened[H]{h.Name}, func() (any, error) {
		if target.Model == nil {
			return nil, fmt.Errorf("the target is no model of package model, whose taps the head reads")
		}
		return With(h, read, func(f F) (H, error) { return load(f, target.Model) })
	})
	if err != nil {
		var none H
		return none, Named(h, err)
	}
	return v.(H), nil
}

// Find opens the first of a target's heads that open takes; open returns an error that is kind for those of other kinds. called is what
// errors call a head that it takes.
func Find[T any](target draft.Target, kind error, called string, open func(h draft.Head) (T, error)) (T, error) {
	for _, h := range target.Heads {
		v, err := open(h)
		if !errors.Is(err, kind) {
			return v, err
		}
	}
	var none T
	return none, fmt.Errorf("there is no %s head: name one with model=FILE, or open the model with one", called)
}
