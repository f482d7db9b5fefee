package speculate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/internal/lab/grammars"
	"github.com/grovellm/grove/sample"
)

// Text that the grammar forces is drafted, and no verified tree has a node that the grammar
// forbids. With and without a controller most tokens come without a separate pass.
func TestForcedTextIsDrafted(t *testing.T) {
	pieces := grammars.Vocab(9, func(int) int { return 0 })
	g, err := grammar.GBNF(`root ::= ("abcdabcd" [ab]){12}`)
	if err != nil {
		t.Fatal(err)
	}
	form := &grammar.Constraint{Grammar: g, Vocab: grammar.NewVocab(pieces),
		Encode: func(text string) (tokens []int32) {
			for _, letter := range []byte(text) {
				tokens = append(tokens, int32(slices.IndexFunc(pieces,
					func(p []byte) bool { return string(p) == string(letter) })))
			}
			return tokens
		}}
	for _, uncontrolled := range []bool{true, false} {
		target := &toy{vocab: len(pieces), context: 200, salt: 3}
		d, err := registry.New("lookup", registry.Target{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := New(target, d, Options{Budget: 10, Uncontrolled: uncontrolled})
		if err != nil {
			t.Fatal(err)
		}
		l.now = func() time.Time { return time.UnixMilli(int64(target.runs)) } // rows cost nothing
		s, err := l.Start([]int32{3, 4, 5, 6, 8, 3, 4, 7}, Request{Grammar: form,
			Sampling: sample.Params{Temperature: 1, Seed: 1}})
		if err != nil {
			t.Fatal(err)
		}
		for s.Finish() == Running {
			before := s.form.path.Place
			if err := l.Step(context.Background(), []*Sequence{s}); err != nil {
				t.Fatal(err)
			}
			tr, _ := s.Round()
			if tr == nil {
				continue
			}
			places := []*grammar.State{before}
			for i := 1; i < tr.Len(); i++ {
				next, err := form.Next(places[tr.Parent[i]], tr.Token[i], 0)
				if err != nil || next == nil {
					t.Fatalf("node %d is forbidden: %v\n%s", i, err, tr)
				}
				places = append(places, next)
			}
		}
		if s.Finish() != Stop || len(s.Output()) != 12*9 {
			t.Errorf("%d tokens, ended by %s: %v", len(s.Output()), s.Finish(), s.Err())
		}
		if most := len(s.Output()) / 2; uncontrolled && target.runs > 12*2+2 || target.runs > most {
			t.Errorf("%d passes for %d tokens, uncontrolled: %v", target.runs, len(s.Output()), uncontrolled)
		}
		s.Close()
	}
}
