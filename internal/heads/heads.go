// Package heads tells the kinds of drafters' heads apart, for those who are given a file and do not draft.
package heads

import (
	"errors"
	"fmt"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/shortlist"
)

// Kind is a kind of head.
type Kind struct {
	Name string // for people
	none error  // of a file of another kind

	fits     func(h draft.Head, target model.Config) error
	describe func(h draft.Head) (string, error)
}

// kinds are all that drafters run.
var kinds = []Kind{
	{"block head", jet.ErrKind, fitsJet, describeJet},
	{"EAGLE head", eagle.ErrKind, fitsEagle, describeEagle},
	{"SpecBlock head", specblock.ErrKind, fitsSpecBlock, describeSpecBlock},
	{"router", shortlist.ErrNoRouter, fitsRouter, describeRouter},
}

// errNone is the error of a file that is no head.
var errNone = errors.New("it is no drafter's head")

// Check returns an error that says what is wrong where a file is no head for the target.
func Check(h draft.Head, target model.Config) error {
	return first(h, func(k *Kind) error { return k.fits(h, target) })
}

// Describe says in a line what a head is.
func Describe(h draft.Head) (text string, err error) {
	err = first(h, func(k *Kind) (err error) { text, err = k.describe(h); return })
	return text, err
}

// Is reports whether a file is a head of a kind that is known here, be it one that runs or not.
func Is(h draft.Head) bool {
	_, err := Describe(h)
	return !errors.Is(err, errNone)
}

// first calls f with kinds until one is the head's.
func first(h draft.Head, f func(*Kind) error) error {
	for i := range kinds {
		if err := f(&kinds[i]); !errors.Is(err, kinds[i].none) {
			return err
		}
	}
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return fmt.Errorf("%s: %w: want a %s", h.Name, errNone, strings.Join(names, ", "))
}

func fitsJet(h draft.Head, target model.Config) error {
	c, err := jet.ReadConfig(h)
	if err == nil {
		err = c.Fits(target)
	}
	return headfile.Named(h, err)
}

func fitsEagle(h draft.Head, target model.Config) error {
	_, err := eagle.ReadConfig(h, target)
	return err
}

func fitsSpecBlock(h draft.Head, target model.Config) error {
	_, err := specblock.ReadConfig(h, target)
	return err
}

func describeJet(h draft.Head) (string, error) {
	c, err := jet.ReadConfig(h)
	if err != nil {
		return "", err
	}
	kind := "bidirectional (DFlash)"
	if c.Causal {
		kind = "causal (JetSpec)"
	}
	return fmt.Sprintf("block head, %s: blocks of %d rows, %s, of which %d is the mask", kind, c.Block, target(c.Taps, c.TargetLayers, c.Config), c.Mask), nil
}

func describeEagle(h draft.Head) (string, error) {
	f, err := eagle.Read(h)
	if err != nil {
		return "", err
	}
	c := f.Config
	output := "the target's output head"
	switch {
	case c.DraftVocab < c.Vocab:
		output = fmt.Sprintf("an output head of %d tokens", c.DraftVocab)
	case f.Own():
		output = "an output head of its own"
	}
	return fmt.Sprintf("EAGLE-%d head: layers %d, %s, %s", c.Version, c.Layers, output, target(c.Taps, c.TargetLayers, c.Config)), f.Close()
}

func describeSpecBlock(h draft.Head) (string, error) {
	f, err := specblock.Read(h)
	if err != nil {
		return "", err
	}
	c := f.Config
	rank := "no rank head"
	if c.RankWidth > 0 {
		rank = "a rank head"
	}
	return fmt.Sprintf("SpecBlock head: blocks of %d rows, layers %d, %s, %s", c.Block, c.Layers, rank, target(c.Taps, c.TargetLayers, c.Config)), f.Close()
}

func fitsRouter(h draft.Head, target model.Config) error {
	r, err := readRouter(h)
	if err == nil {
		err = r.Fits(target.Vocab, target.Hidden, target.Hidden)
	}
	return headfile.Named(h, err)
}

func describeRouter(h draft.Head) (string, error) {
	r, err := readRouter(h)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("router of %d clusters of %d tokens, of which drafts list %d at first, for heads %d wide", r.Config.Clusters, r.Vocab, r.Listed, r.Config.Hidden), nil
}

func readRouter(h draft.Head) (*shortlist.RouterFile, error) {
	f, err := headfile.Open(h)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.GGUF == nil {
		return nil, shortlist.ErrNoRouter
	}
	return shortlist.ReadRouter(f.GGUF)
}

// target says what a head reads, and of which models.
func target(taps []int, layers int, c model.Config) string {
	at, of := fmt.Sprintf("taps after layers %v", taps), ""
	if taps == nil {
		at = "taps where its kind has them"
	}
	if layers > 0 {
		of = fmt.Sprintf(" of %d", layers)
	}
	return fmt.Sprintf("%s%s of a target with hidden size %d and %d tokens", at, of, c.Hidden, c.Vocab)
}
