// The drafters' names: a family for each version of the heads.

package eagle

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/grow"
	"github.com/grovellm/grove/shortlist"
)

// options are those of the usual tree.
type options struct {
	Tree   string `draft:"tree" help:"best-first, dynamic, linear, fixed or dynatree; each has the options of the drafter of that name"`
	Preset string `draft:"preset" help:"paper: EAGLE-2's dynamic tree, with the papers' options where they are not given; empty: as listed here"`
	grow.BestFirst
}

// trees reads options. The usual tree is none of the papers'.
func trees(text string) (grow.Parsed, error) {
	usual := "best-first"
	if strings.Contains(text, "preset=") {
		usual = "dynamic"
	}
	return grow.Parse(text, "tree", usual)
}

func init() {
	for _, f := range []struct {
		name, help, about, paper, needs string
		version                         int
	}{
		{"eagle3", "an EAGLE-3 head: trees of the most probable nodes",
			`The head is one layer that reads hidden states of three of the target's layers, and drafts on from its own
states. Trees grow best-first by default, and may be EAGLE-2's dynamic trees or others.`,
			"EAGLE-3: Scaling up Inference Acceleration of LLMs via Training-Time Test, arXiv 2503.01840", "an EAGLE-3 head", 3},
		{"eagle2", "an EAGLE-1 or EAGLE-2 head: trees of the most probable nodes",
			`The head is one layer that reads the hidden states of the target's last layer, and drafts on from its own
states. Trees grow best-first by default, and may be EAGLE-2's dynamic trees or others.`,
			"EAGLE, arXiv 2401.15077; EAGLE-2, arXiv 2406.16858", "an EAGLE-1 or EAGLE-2 head", 2},
	} {
		o := options{Tree: "best-first", BestFirst: grow.DefaultBestFirst()}
		family := draft.Family{Name: f.name, Help: f.help, About: f.about, Paper: f.paper, Needs: f.needs, Options: &o}
		family.New = func(text string, target draft.Target) (draft.Drafter, error) {
			p, err := trees(text)
			if err != nil {
				return nil, err
			}
			if target.Model == nil {
				return nil, fmt.Errorf("the target is no model of package model, whose taps the head reads")
			}
			h, err := find(p.Model, f.version, target)
			if err != nil {
				return nil, err
			}
			n, m := h.Network, target.Model
			lists, err := draft.Shortlists(p.Lists, shortlist.Drafter{
				Pool: m.Pool(), Head: &n.Head, Norm: n.Norm, Tokens: n.Tokens, Vocab: n.Vocab, Tokenizer: m.Tokenizer, Embed: n.Embed,
			}, h, target)
			if err != nil {
				return nil, err
			}
			return New(n, p.Shape, lists, m.Pool(), target)
		}
		draft.Register(family)
	}
}

// find opens the head at path, or the target's own.
func find(path string, version int, target draft.Target) (*Head, error) {
	if path == "" {
		return Find(target, version)
	}
	h, err := Open(draft.Head{Name: path}, target)
	if err == nil && h.Version != version {
		err = fmt.Errorf("model=%s is an EAGLE-%d head: want one of EAGLE-%d", path, h.Version, version)
	}
	return h, err
}
