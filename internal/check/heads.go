// Heads of random numbers, in files, and drafters that run them.

package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/gguf"
	eaglesynth "github.com/grovellm/grove/internal/synthetic/eagle"
	jetsynth "github.com/grovellm/grove/internal/synthetic/jet"
	listsynth "github.com/grovellm/grove/internal/synthetic/shortlist"
	specsynth "github.com/grovellm/grove/internal/synthetic/specblock"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// draftable is the least size of a draft vocabulary, so that options about its size have a place.
const draftable = 100

// heads are files of random heads for the variant: a block head that is causal, one that is not, EAGLE heads of either version, a
// SpecBlock head, and a router.
func (v *variant) heads(target model.Config) (_ []draft.Head, err error) {
	if v.headFiles != nil {
		return v.headFiles, nil
	}
	vocabulary, err := gguf.Open(v.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, vocabulary.Close()) }()
	rng := rand.New(rand.NewPCG(v.seed, 0x68656164))
	var files []draft.Head
	for _, write := range []func(path string, typ tensor.Type) error{
		func(path string, typ tensor.Type) error {
			return v.writeBlock(path, rng, target, true, typ, vocabulary)
		},
		func(path string, typ tensor.Type) error {
			return v.writeBlock(path, rng, target, false, typ, vocabulary)
		},
		func(path string, typ tensor.Type) error { return v.writeEagle(path, rng, target, 3, typ) },
		func(path string, typ tensor.Type) error { return v.writeEagle(path, rng, target, 2, typ) },
		func(path string, typ tensor.Type) error { return v.writeSpecBlock(path, rng, target, typ) },
		func(path string, typ tensor.Type) error {
			return listsynth.Write(path, rng, target.Vocab, target.Hidden, typ)
		},
	} {
		typ := types[rng.IntN(len(types)-1)]
		if target.Hidden%32 != 0 { // rows are whole blocks
			typ = tensor.BF16
		}
		path := fmt.Sprintf("%s.head%d", v.path, len(files))
		if err := write(path, typ); err != nil {
			return nil, err
		}
		files = append(files, draft.Head{Name: path})
	}
	v.headFiles = files
	return files, nil
}

// shorten ends a head's context early, sometimes.
func (v *variant) shorten(rng *rand.Rand, context *int) {
	if rng.IntN(4) == 0 {
		*context = 20 + rng.IntN(150)
	}
}

func (v *variant) writeBlock(path string, rng *rand.Rand, target model.Config, causal bool, typ tensor.Type, vocabulary *gguf.File) error {
	c := jetsynth.Config(rng, target, typ)
	c.Causal = causal
	v.shorten(rng, &c.Context)
	weights, err := jetsynth.Tensors(c, typ, rng.Uint64())
	if err != nil {
		return err
	}
	return jet.WriteGGUF(path, "check", &c, weights, vocabulary, typ)
}

func (v *variant) writeEagle(path string, rng *rand.Rand, target model.Config, version int, typ tensor.Type) error {
	c := eaglesynth.Config(rng, version, target, typ)
	c.DraftVocab = max(c.DraftVocab, draftable)
	v.shorten(rng, &c.Context)
	seed := rng.Uint64()
	weights, err := eaglesynth.Tensors(c, typ, seed)
	if err != nil {
		return err
	}
	return eagle.WriteGGUF(path, "check", &c, weights, eaglesynth.Tokens(c, seed), nil, typ)
}

func (v *variant) writeSpecBlock(path string, rng *rand.Rand, target model.Config, typ tensor.Type) error {
	c := specsynth.Config(rng, target, typ)
	c.RankWidth = max(c.RankWidth, 32) // so that all options have a meaning
	if c.DraftVocab > 0 {
		c.DraftVocab = max(c.DraftVocab, draftable)
	}
	v.shorten(rng, &c.Context)
	seed := rng.Uint64()
	weights, err := specsynth.Tensors(c, typ, seed)
	if err != nil {
		return err
	}
	return specblock.WriteGGUF(path, "check", &c, weights, specsynth.Tokens(c, seed), nil, typ)
}

// removeHeads removes the variant's head files.
func (v *variant) removeHeads() {
	for _, h := range v.headFiles {
		os.Remove(h.Name)
	}
}

// headed is o as the target of drafters.
func (v *variant) headed(o *opened) (draft.Target, error) {
	files, err := v.heads(o.m.Config)
	return draft.Target{Vocab: v.shape.Vocab, Context: o.m.Context(), Model: o.m, Draft: o.m, Heads: files, Shared: &o.shared}, err
}

// randomBlock describes a block head's drafter.
func randomBlock(rng *rand.Rand) string {
	pick := func(names ...string) string { return names[rng.IntN(len(names))] }
	s := fmt.Sprintf("width=%d,depth=%d", rng.IntN(9), rng.IntN(2))
	switch rng.IntN(4) {
	case 0:
		return pick("jetspec", "ddtree", "dflash") + ":" + s
	case 1:
		s += fmt.Sprintf(",lambda=%.2f", 4*rng.Float64())
	}
	return "jet:" + s + ",head=" + pick(jet.Causal, jet.Bidirectional) + ",tree=" + pick(jet.Conditioned, jet.AccumLogP, jet.DDTree, jet.Hybrid, jet.Entropy, jet.Chain)
}
