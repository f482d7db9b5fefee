package check

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/draft"
	_ "github.com/grovellm/grove/internal/drafters/drafttest/hostile"
	_ "github.com/grovellm/grove/internal/drafters/lm"
	_ "github.com/grovellm/grove/internal/drafters/lookup"
	_ "github.com/grovellm/grove/internal/drafters/merge"
	"github.com/grovellm/grove/internal/drafters/registry"
	_ "github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
)

// drafter makes the drafter of a name for a target: a registered one, or one of those below. Its
// head may be one of the learners.
func drafter(ctx context.Context, name string, rng *rand.Rand, scripts []script, v *variant,
	l *learners) (draft.Drafter, error) {
	t := &teller{rng: rand.New(rand.NewPCG(rng.Uint64(), 0)), vocab: v.shape.Vocab, scripts: scripts}
	switch name {
	case "oracle":
		t.truth = 0.3 + 0.7*rng.Float64()
		return t, nil
	case "beyond":
		t.over = true
		return t, nil
	}
	target, err := v.headed(l.o)
	if err != nil {
		return nil, err
	}
	if rng.IntN(3) > 0 {
		if target.Draft, err = v.draftFor(ctx, l.o); err != nil {
			return nil, err
		}
	}
	target.Adapt = l.learn
	return registry.New(name, target)
}

// randomHeads describes a drafter of each kind of head.
func randomHeads(rng *rand.Rand, v *variant) (names []string) {
	for _, kind := range kindsFor(v.shape.Arch) {
		names = append(names, learningHead(rng, kind))
	}
	return names
}

// kindsFor are the kinds of heads that draft for targets of an architecture.
func kindsFor(arch string) []*headfile.Kind {
	return slices.DeleteFunc(headfile.Kinds(), func(k *headfile.Kind) bool { return !k.Drafts(arch) })
}

func randomKind(rng *rand.Rand, v *variant) *headfile.Kind {
	kinds := kindsFor(v.shape.Arch)
	return kinds[rng.IntN(len(kinds))]
}

var wholeNumber = regexp.MustCompile(`(=|/)\d+`)

// randomHead describes a drafter of a kind of head, with numbers and modifiers of its own.
func randomHead(rng *rand.Rand, kind *headfile.Kind) string {
	text := wholeNumber.ReplaceAllStringFunc(kind.Examples[rng.IntN(len(kind.Examples))], func(number string) string {
		n, _ := strconv.Atoi(number[1:])
		return fmt.Sprintf("%s%d", number[:1], 1+n/10+rng.IntN(2*n-1-n/10))
	})
	modifiers := familyOf(text).Modifiers
	if len(modifiers) == 0 {
		return text
	}
	if slices.Contains(modifiers, "dynaspec") && rng.IntN(4) == 0 {
		return text + []string{"+dynaspec", "+text+dynaspec-fixed", "+dynaspec-fixed:own=true,extra=-1"}[rng.IntN(3)]
	}
	return text + randomModifiers(rng, draftable)
}

// familyOf is the family that a drafter's text names.
func familyOf(text string) registry.Family {
	name, _, _ := registry.Split(text)
	families := registry.Families()
	return families[slices.IndexFunc(families, func(f registry.Family) bool { return f.Name == name })]
}

// randomModelDrafter describes a draft model's drafter, whose head may compute part of the vocabulary.
func randomModelDrafter(rng *rand.Rand, vocab int) string {
	return strings.Replace(randomTrees(rng), ",", ":", 1) + randomModifiers(rng, min(vocab, 300))
}

// randomModifiers adds +text and a shortlist of so many tokens at most, sometimes.
func randomModifiers(rng *rand.Rand, most int) (mods string) {
	if rng.IntN(2) == 0 {
		mods = "+text"
	}
	if most > 0 && rng.IntN(3) == 0 {
		mods += fmt.Sprintf("+%s:size=%d", []string{"freq", "freq-pa", "context"}[rng.IntN(3)], 1+rng.IntN(most))
		if strings.Contains(mods, "context") {
			mods += fmt.Sprintf(",extra=%d", 1+rng.IntN(100))
		}
	}
	return mods
}

// randomTrees describes a shape, with options.
func randomTrees(rng *rand.Rand) string {
	p := func() float64 { return math.Round(rng.Float64()*rng.Float64()*100) / 100 }
	switch rng.IntN(5) {
	case 0:
		return fmt.Sprintf("linear,k=%d", 1+rng.IntN(12))
	case 1:
		return fmt.Sprintf("fixed,d=%d,b=%d,tau=%g,prune=%v", rng.IntN(8), 1+rng.IntN(5), 0.9*p(), rng.IntN(2) == 0)
	case 2:
		low := p()
		b := 1 + rng.IntN(2)
		d := 1 + rng.IntN(5)
		stop := p()
		return fmt.Sprintf("dynatree,tau-l=%g,tau-h=%g,b-min=%d,b-mid=%d,b-max=%d,d0=%d,d-max=%d,rho-stop=%g,rho-deep=%g,tau=%g,window=%d",
			low, max(low, p()), b, b+rng.IntN(2), b+1+rng.IntN(3), d, d+rng.IntN(5), stop, max(stop, p()), 0.9*p(), 1+rng.IntN(10))
	case 3:
		return fmt.Sprintf("dynamic,k=%d,depth=%d,n=%d", 1+rng.IntN(10), rng.IntN(9), 2+rng.IntN(70))
	}
	return fmt.Sprintf("best-first,width=%d,branch=%d,depth=%d", 1+rng.IntN(12), 1+rng.IntN(8), 1+rng.IntN(20))
}

// randomMerge describes two drafters whose trees are verified as one: lookup, a draft model's, a
// head's, any two of them.
func randomMerge(rng *rand.Rand, v *variant) string {
	vocab := v.shape.Vocab
	mode, first := "", "lookup"
	if rng.IntN(3) == 0 {
		mode = "mode=spliced,"
	}
	if rng.IntN(3) == 0 {
		first = randomModelDrafter(rng, vocab)
	}
	second := randomModelDrafter(rng, vocab)
	if rng.IntN(4) > 0 {
		second = learningHead(rng, randomKind(rng, v))
	}
	return fmt.Sprintf("merge:%s(%s)+(%s)", mode, first, second)
}

// teller is a drafter that knows what plain decoding gave. It drafts bushy random trees that hold the true
// continuation as often as it is truthful, and, when it goes over, deeper and larger trees than it was asked for.
type teller struct {
	draft.Base
	rng     *rand.Rand
	vocab   int
	scripts []script
	truth   float64
	over    bool
	begun   int
}

// answerState is a sequence as the teller knows it.
type answerState struct {
	answer []int32 // prompt and output
	at     int     // rows committed
}

func (s *answerState) Close() {}

// Begin takes the scripts in order, which is the order they start in.
func (t *teller) Begin(draft.Options) (draft.State, error) {
	s := &t.scripts[t.begun]
	t.begun++
	return &answerState{answer: append(append([]int32(nil), s.prompt...), s.want...)}, nil
}

func (t *teller) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		s, n := r.State.(*answerState), 1+t.rng.IntN(r.Budget)
		if t.over {
			n = 2 * r.Budget
		}
		path, deep := 0, t.rng.Float64() // path: the last node on the true one
		for range n {
			if t.over || r.Tree.Len() < r.Budget {
				t.grow(r, s, &path, deep)
			}
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

// grow adds a node, or falls on one that is there.
func (t *teller) grow(r draft.Request, s *answerState, path *int, deep float64) {
	parent := t.rng.IntN(r.Tree.Len())
	if t.rng.Float64() < deep {
		parent = r.Tree.Len() - 1
	}
	token := t.rng.Int32N(int32(t.vocab))
	next := s.at + 1 + int(r.Tree.Depth[*path]) // of the answer: the token after the true path
	honest := t.rng.Float64() < t.truth && next < len(s.answer)
	if honest {
		parent, token = *path, s.answer[next]
	}
	if !t.over && int(r.Tree.Depth[parent]) >= r.Depth {
		return
	}
	i := r.Tree.Append(parent, token, float32(math.Log(t.rng.Float64())))
	if honest {
		*path = i
	}
}

func (t *teller) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		r.State.(*answerState).at += len(r.Tokens)
	}
	return nil
}
