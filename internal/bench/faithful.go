// How well drafters' trees predict acceptance (JetSpec, appendix A): a drafter's log-probability
// for a whole branch, compared with the target's own joint log-probability for the same tokens. A
// drafter that judges every depth independently may put tokens in a row that cannot follow each
// other; then the target rules out the drafter's likeliest branch.

package bench

import (
	"cmp"
	"context"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tree"
)

// FaithfulOptions specify what to examine.
type FaithfulOptions struct {
	Target registry.Target
	Runs   []SpecRun // plain decoding is skipped

	Title, ModelName string
	MaxTokens        int // of an output; 0: DefaultMaxTokens
	Every            int // examine a tree every so many tokens; 0: DefaultEvery

	Progress func(SpecProgress) // called before each prompt; may be nil
}

// DefaultEvery is the number of tokens between trees that are examined: trees at neighbouring
// places are much alike.
const DefaultEvery = 8

// deepest is the maximum depth of trees; blocks are shorter.
const deepest = 64

// Faithful decodes prompts plainly, at temperature 0. At the same places in the text, all drafters
// propose trees, and the target computes every node, so that the drafters are judged by the same
// texts. Nothing of the trees is committed.
func Faithful(ctx context.Context, o FaithfulOptions) (*FaithfulReport, error) {
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Target.Model == nil {
		return nil, fmt.Errorf("bench: there is no target")
	}
	r := &FaithfulReport{Setting: NewSetting(o.Target.Model, o.Title, o.ModelName), MaxTokens: o.MaxTokens, Every: o.Every,
		Bounds: gapBounds[:]}
	b := &bench{o: SpecOptions{Target: o.Target, MaxTokens: o.MaxTokens, Temperatures: []float32{0}}}
	encode, err := b.encoder()
	if err != nil {
		return nil, err
	}
	done, total := 0, 0
	for _, run := range o.Runs {
		total += len(run.Suite.Prompts)
	}
	for _, run := range o.Runs {
		p, err := newPlaces(&o, run.Methods)
		if err != nil {
			return nil, fmt.Errorf("suite %s: %w", run.Suite.Name, err)
		}
		for _, prompt := range run.Suite.Prompts {
			if o.Progress != nil {
				o.Progress(SpecProgress{Suite: run.Suite.Name, Method: "faithful", Prompt: prompt.Name, Done: done, Total: total})
			}
			e, _, err := encode(prompt)
			if err == nil {
				err = p.prompt(ctx, prompt.Name, e.prompt)
			}
			if err != nil {
				return nil, fmt.Errorf("suite %s, %s: %w", run.Suite.Name, prompt.Name, err)
			}
			done++
		}
		r.Suites = append(r.Suites, p.report(run.Suite.Name, len(run.Suite.Prompts)))
	}
	return r, nil
}

// places is a suite in progress: each place of a text where trees were examined, with the results for each drafter.
type places struct {
	o       *FaithfulOptions
	pass    *model.Pass
	taps    []int // every tap that some drafter needs
	looks   []look
	found   []place
	drawing tree.Tree
	all     []int32 // 0, 1, 2, …
}

// look is a drafter under examination.
type look struct {
	method  Method
	drafter draft.Drafter
	pass    sequence.PassOf
	state   draft.State
	tree    tree.Tree
}

// place is a place of a text.
type place struct {
	prompt string
	at     int // tokens of the output before it
	root   int32
	trees  []judged // one per drafter
}

func newPlaces(o *FaithfulOptions, methods []Method) (*places, error) {
	p := &places{o: o, pass: o.Target.Model.NewPass()}
	for _, m := range methods {
		if m.Drafter == "" {
			continue
		}
		d, err := registry.New(m.Drafter, o.Target)
		if err != nil {
			return nil, err
		}
		l := look{method: m, drafter: d, pass: sequence.PassOf{Pass: p.pass}}
		p.taps, l.pass.Taps = sequence.JoinTaps(p.taps, d.Taps())
		p.looks = append(p.looks, l)
	}
	if len(p.looks) == 0 {
		return nil, fmt.Errorf("there is no drafter among the methods")
	}
	return p, nil
}

// prompt decodes one prompt.
func (p *places) prompt(ctx context.Context, name string, text []int32) error {
	cache := p.o.Target.Model.NewCache()
	defer cache.Free()
	for i := range p.looks {
		s, err := p.looks[i].drafter.Begin(draft.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		p.looks[i].state = s
	}
	root, err := p.read(ctx, cache, text, true)
	if err != nil {
		return err
	}
	m := p.o.Target.Model
	last := min(p.o.MaxTokens, m.Context()-len(text)-deepest-1)
	for at := 1; at < last && (m.Tokenizer == nil || !m.Tokenizer.IsEOG(root)); at++ {
		if at%p.o.Every == 0 {
			found := place{prompt: name, at: at, root: root}
			for i := range p.looks {
				j, err := p.look(ctx, cache, &p.looks[i], root)
				if err != nil {
					return err
				}
				found.trees = append(found.trees, j)
			}
			p.found = append(p.found, found)
		}
		if root, err = p.read(ctx, cache, []int32{root}, false); err != nil {
			return err
		}
	}
	return nil
}

// read commits tokens, a prompt or a root, here and with the drafters, and returns the token that follows them.
func (p *places) read(ctx context.Context, cache *nn.Cache, tokens []int32, prompt bool) (next int32, err error) {
	for len(tokens) > 0 {
		n := min(len(tokens), model.PrefillChunk)
		p.drawing.ResetChain(tokens[:n])
		if err := p.pass.Run(ctx, []model.Rows{{Cache: cache, Tree: &p.drawing, Logits: []int32{int32(n - 1)}}},
			p.taps); err != nil {
			return 0, err
		}
		next = argmax(p.pass.Logits(0, 0))
		cache.CommitAll()
		for i := range p.looks {
			l := &p.looks[i]
			rows := draft.Rows{State: l.state, Tokens: tokens[:n], Tree: &p.drawing, Nodes: p.nodes(n), Next: -1,
				Pass: &l.pass}
			if !prompt {
				rows.Next = next
			}
			if err := l.drafter.Commit([]draft.Rows{rows}); err != nil {
				return 0, err
			}
		}
		tokens = tokens[n:]
	}
	return next, nil
}

// look lets a drafter propose a tree and the target judge it.
func (p *places) look(ctx context.Context, cache *nn.Cache, l *look, root int32) (judged, error) {
	l.tree.Reset(root)
	budget := cmp.Or(l.method.Budget, speculate.DefaultBudget)
	if _, err := l.drafter.Propose(ctx, []draft.Request{{State: l.state, Tree: &l.tree, Budget: budget, Depth: deepest,
		Cache: cache}}); err != nil {
		return judged{}, err
	}
	if err := p.pass.Run(ctx, []model.Rows{{Cache: cache, Tree: &l.tree, Logits: p.nodes(l.tree.Len())}}, nil); err != nil {
		return judged{}, err
	}
	return judge(&l.tree, func(node int) []float32 { return p.pass.Logits(0, node) }), nil
}

// nodes returns 0 to n−1.
func (p *places) nodes(n int) []int32 {
	for len(p.all) < n {
		p.all = append(p.all, int32(len(p.all)))
	}
	return p.all[:n]
}
