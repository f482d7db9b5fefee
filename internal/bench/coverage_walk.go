// Drafts along a text, and what shortlists make of them.

package bench

import (
	"context"
	"fmt"
	"math"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/tree"
)

// coverage is a suite under way.
type coverage struct {
	o     *CoverageOptions
	n     *eagle.Network
	pass  *model.Pass
	exec  *nn.Exec
	pages nn.Pages
	bufs  eagle.Buffers
	looks []listLook

	places        int // where drafts began
	forest        nn.Forest
	chain, drafts tree.Tree
}

// listLook is a shortlist that is looked at.
type listLook struct {
	name, drafter string
	method        shortlist.Method      // nil: all tokens
	steps         []shortlist.Agreement // by step of a draft
}

// open makes the shortlists of methods.
func (w *coverage) open(head *eagle.Head, methods []Method) error {
	m := w.o.Target.Model
	d := shortlist.Drafter{Pool: m.Pool(), Head: &head.Head, Norm: head.Norm, Tokens: head.Tokens, Vocab: head.Vocab, Tokenizer: m.Tokenizer, Embed: head.Embed}
	for _, method := range methods {
		if method.Drafter == "" {
			continue
		}
		name, options, _ := draft.Split(method.Drafter)
		o, err := draft.ShortlistOf(method.Drafter)
		if name != "eagle3" || options != "" {
			return fmt.Errorf("method %s: want eagle3 with a shortlist", method.Name)
		}
		l := listLook{name: method.Name, drafter: method.Drafter, steps: make([]shortlist.Agreement, w.o.Steps)}
		if err == nil {
			l.method, err = draft.Shortlists(o, d, head, w.o.Target)
		}
		if err != nil {
			return fmt.Errorf("method %s: %w", method.Name, err)
		}
		w.looks = append(w.looks, l)
	}
	if len(w.looks) == 0 {
		return fmt.Errorf("there is no drafter among the methods")
	}
	return nil
}

// text looks at a text that begins with a prompt.
func (w *coverage) text(ctx context.Context, text []int32, prompt int) error {
	var places []int
	for p := max(prompt, 1); p+w.o.Steps < len(text); p += w.o.Every {
		places = append(places, p)
	}
	if len(places) == 0 {
		return nil
	}
	taps, target, err := w.read(ctx, text, prompt)
	if err != nil {
		return err
	}
	w.judge(text, prompt, target, places, w.draft(text, taps, places))
	return nil
}

// read runs the target over a text: of every token the taps that the head wants, and from the prompt's end on the logits.
func (w *coverage) read(ctx context.Context, text []int32, prompt int) (taps, target nn.Mat, err error) {
	m := w.o.Target.Model
	cache := m.NewCache()
	defer cache.Free()
	taps, target = nn.NewMat(len(text), w.n.Width()), nn.NewMat(len(text)-prompt, m.Config.Vocab)
	for from := 0; from < len(text); from += model.PrefillChunk {
		to := min(from+model.PrefillChunk, len(text))
		w.chain.ResetChain(text[from:to])
		var asked []int32
		for i := max(from, prompt); i < to; i++ {
			asked = append(asked, int32(i-from))
		}
		if err := w.pass.Run(ctx, []model.Rows{{Cache: cache, Tree: &w.chain, Logits: asked}}, w.n.Taps); err != nil {
			return taps, target, err
		}
		for i := from; i < to; i++ {
			for t := range w.n.Taps {
				copy(taps.Row(i)[t*w.n.Hidden:], w.pass.Tap(t, 0, i-from))
			}
		}
		for k, i := range asked {
			copy(target.Row(from+int(i)-prompt), w.pass.Logits(0, k))
		}
		cache.CommitAll()
	}
	return taps, target, nil
}

// step is a step of the drafts from all places: a row a place.
type step struct {
	feature nn.Mat // that the rows read
	state   nn.Mat // that they put out
}

// draft runs the head over a text, and then on from places in it along the text, each row on the state of the one before: as one drafts
// where every draft was right.
func (w *coverage) draft(text []int32, taps nn.Mat, places []int) (steps []step) {
	entries := len(text) - 1 // of all tokens but the first
	cache := w.pages.NewCache()
	defer cache.Free()
	feature, state := nn.NewMat(entries, w.n.Hidden), nn.NewMat(entries, w.n.Hidden)
	w.n.Features(w.exec, taps.Slice(0, entries), feature, &w.bufs)
	w.drafts.ResetChain(text[1:])
	from := 0
	run := func(tokens []int32, feature, state nn.Mat) {
		w.forest.Reset()
		w.forest.Add(cache, &w.drafts, from)
		cache.Reserve(from, len(tokens))
		w.n.Run(w.exec, &w.forest, tokens, feature, state, &w.bufs)
		from = w.drafts.Len()
	}
	run(text[1:], feature, state)
	nodes := make([]int32, len(places)) // that the drafts have come to
	for i, p := range places {
		nodes[i] = int32(p - 1)
	}
	first := w.newStep(len(places))
	w.exec.Gather(feature, nodes, first.feature)
	w.exec.Gather(state, nodes, first.state)
	steps = append(steps, first)
	for k := 1; k < w.o.Steps; k++ {
		next := w.newStep(len(places))
		next.feature = steps[k-1].state
		for i, p := range places {
			nodes[i] = int32(w.drafts.AppendApart(int(nodes[i]), text[p+k]))
		}
		run(w.drafts.Token[from:], next.feature, next.state)
		steps = append(steps, next)
	}
	return steps
}

func (w *coverage) newStep(rows int) step {
	return step{nn.NewMat(rows, w.n.Hidden), nn.NewMat(rows, w.n.Hidden)}
}

// judge holds every shortlist against the distributions at every place and step.
func (w *coverage) judge(text []int32, prompt int, target nn.Mat, places []int, steps []step) {
	words := make([]shortlist.State, len(w.looks))
	for i, l := range w.looks {
		if l.method != nil {
			words[i] = l.method.Begin(&sample.Params{})
			defer words[i].Close()
		}
	}
	n := len(steps)
	queries := make([]shortlist.Query, n)
	lists := make([]*shortlist.List, n*len(w.looks)) // of each look the steps; nil: all tokens
	states, logits := nn.NewMat(n, w.n.Hidden), nn.NewMat(n, w.n.DraftVocab)
	p, q := make([][]float32, n), make([][]float32, n)
	for k := range steps {
		p[k], q[k] = make([]float32, w.o.Target.Vocab), make([]float32, w.o.Target.Vocab)
	}
	w.places += len(places)
	at := 0
	for i, place := range places {
		for k, s := range steps {
			copy(states.Row(k), s.state.Row(i))
			queries[k] = shortlist.Query{Step: k, Token: text[place+k], Hidden: s.feature.Row(i)}
			softmax(p[k], target.Row(place+k-prompt), nil)
		}
		w.exec.Linear(w.n.Output(states), nn.Proj{Linear: &w.n.Head, Dst: logits})
		for k := range steps {
			softmax(q[k], logits.Row(k), w.n.Tokens)
		}
		for l := range w.looks {
			if words[l] == nil {
				continue
			}
			words[l].Commit(text[at:place])
			if from := max(at, prompt); from < place {
				words[l].Alternatives(place-from, target.Slice(from-prompt, place-prompt))
			}
			for k := range queries {
				queries[k].State = words[l]
			}
			w.looks[l].method.Choose(queries, lists[l*n:(l+1)*n])
		}
		w.exec.Pool().Run(len(lists), eachTask(func(i int) {
			w.looks[i/n].steps[i%n].Add(lists[i], p[i%n], q[i%n])
		}))
		at = place
	}
}

// softmax makes the probabilities of all tokens of logits, of which tokens says whose they are; nil: of all in order.
func softmax(dst, logits []float32, tokens []int32) {
	norm := logSumExp(logits)
	clear(dst)
	for i, x := range logits {
		token := i
		if tokens != nil {
			token = int(tokens[i])
		}
		if token < len(dst) {
			dst[token] = float32(math.Exp(float64(x) - norm))
		}
	}
}
