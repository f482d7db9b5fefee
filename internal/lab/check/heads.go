// Heads of random numbers, in files, and drafters that run them.

package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	listsynth "github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// draftable is the least size of a draft vocabulary, so that options about its size have a place.
const draftable = 100

// heads are files of random heads for the variant: of every kind those that its drafters run, and a router.
func (v *variant) heads(target model.Config) (_ []registry.Head, err error) {
	if v.headFiles != nil {
		return v.headFiles, nil
	}
	vocabulary, err := gguf.Open(v.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, vocabulary.Close()) }()
	rng := rand.New(rand.NewPCG(v.seed, 0x68656164))
	var files []registry.Head
	write := func(write func(path string, typ tensor.Type) error) {
		typ := types[rng.IntN(len(types)-1)]
		if target.Hidden%32 != 0 { // rows are whole blocks
			typ = tensor.BF16
		}
		path := fmt.Sprintf("%s.head%d", v.path, len(files))
		err = errors.Join(err, write(path, typ))
		files = append(files, registry.Head{Name: path})
	}
	for _, kind := range kindsFor(target.Arch) {
		if _, inside := kind.New().(headfile.Inside); inside && target.Ahead > 0 {
			files = append(files, registry.Head{Name: v.path, Inside: true})
			continue
		}
		for _, drafter := range kind.Drafters {
			write(func(path string, typ tensor.Type) error {
				s := synthetic.Shape(rng, kind, drafter, target, typ)
				c := s.Common()
				if headfile.Shortens(s) {
					c.DraftVocab = max(c.DraftVocab, min(draftable, target.Vocab))
				}
				if rng.IntN(4) == 0 { // the context ends early
					c.Context = 20 + rng.IntN(150)
				}
				seed := rng.Uint64()
				weights, err := synthetic.Tensors(s, typ, seed)
				if err != nil {
					return err
				}
				return headfile.WriteGGUF(path, "check", s, weights, synthetic.Tokens(s, seed), vocabulary, typ)
			})
		}
	}
	write(func(path string, typ tensor.Type) error {
		return listsynth.Write(path, rng, target.Vocab, target.Hidden, typ)
	})
	if err != nil {
		return nil, err
	}
	v.headFiles = files
	return files, nil
}

// removeHeads removes the variant's head files.
func (v *variant) removeHeads() {
	for _, h := range v.headFiles {
		if !h.Inside {
			os.Remove(h.Name)
		}
	}
}

// headed is o as the target of drafters.
func (v *variant) headed(o *opened) (registry.Target, error) {
	files, err := v.heads(o.m.Config)
	return registry.Target{Vocab: v.shape.Vocab, Context: o.m.Context(), Model: o.m, Draft: o.m, Heads: files,
		Shared: &o.shared}, err
}

// drafter makes a drafter for the model on so many threads.
func (v *variant) drafter(name string, threads int) (*opened, draft.Drafter, error) {
	o, err := v.threads(threads)
	if err != nil {
		return nil, nil, err
	}
	target, err := v.headed(o)
	if err != nil {
		return nil, nil, err
	}
	d, err := registry.New(name, target)
	return o, d, err
}
