// Files of drafters' own layers, and data shared by the drafters of one target.

package registry

import (
	"slices"
	"sync"
)

// Head is a file with layers that draft from the target's taps. Each family recognises heads of its
// kind by the file's architecture.
type Head struct {
	Name string // its path, or what errors call it
	Data []byte // contents of a GGUF file; nil: Name is the path of one, or of a Hugging Face folder

	// Inside says that the file is the target's own, and the head consists of layers after the target's.
	Inside bool
}

// Shared keeps data that one drafter of a target made and all of them use, such as the weights of a
// head.
type Shared struct {
	mu   sync.Mutex
	made map[any]any
	some []any // keys of GetSome, the oldest first
}

// Get returns the result of make for the key, from this call or an earlier one. Errors are not kept.
// On a nil Shared it calls make every time.
func (s *Shared) Get(key any, make func() (any, error)) (any, error) {
	if s == nil {
		return make()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.made[key]; ok {
		return v, nil
	}
	v, err := make()
	if err != nil {
		return nil, err
	}
	if s.made == nil {
		s.made = map[any]any{}
	}
	s.made[key] = v
	return v, nil
}

// mostSome is the most results that GetSome keeps.
const mostSome = 64

// GetSome is Get for keys that clients can choose freely: the oldest are forgotten. Their users can go on with them.
func (s *Shared) GetSome(key any, make func() (any, error)) (any, error) {
	v, err := s.Get(key, make)
	if s == nil || err != nil {
		return v, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.some, key) {
		s.some = append(s.some, key)
	}
	if len(s.some) > mostSome {
		delete(s.made, s.some[0])
		s.some = slices.Delete(s.some, 0, 1)
	}
	return v, nil
}
