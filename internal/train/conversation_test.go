package train

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawConversations draws some conversations of one or more turns.
func drawConversations(t *rapid.T) (list []Conversation) {
	for range rapid.IntRange(1, 60).Draw(t, "conversations") {
		var tokens []int32
		greedy := rapid.Bool().Draw(t, "greedy")
		for range rapid.IntRange(1, 3).Draw(t, "turns") {
			tokens = append(tokens, rapid.SliceOfN(rapid.Int32Range(0, 9), 1, 5).Draw(t, "prompt")...)
			from := len(tokens)
			tokens = append(tokens, rapid.SliceOfN(rapid.Int32Range(0, 9), 1, 24).Draw(t, "answer")...)
			list = append(list, Conversation{Tokens: slices.Clone(tokens), From: from, Greedy: greedy})
		}
	}
	return list
}

// A head learns the target's tokens and no token of a prompt. Every epoch has each conversation
// once, and each part of a step has texts of one length.
func TestDeck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawConversations(t)
		together := rapid.IntRange(1, 4).Draw(t, "together")
		learned := 0
		for i := range list {
			if first, last := list[i].Places(); first <= last {
				learned++
			}
		}
		d, err := newDeck(list, together, rapid.Uint64().Draw(t, "seed"))
		if learned == 0 {
			if err == nil {
				t.Fatal("conversations with nothing to learn are dealt")
			}
			return
		}
		for epoch := range 3 {
			var texts []Conversation
			for n := range learned {
				texts = append(texts, *d.text(epoch*learned + n))
			}
			left := slices.Clone(d.list)
			for i, c := range texts {
				at := slices.IndexFunc(left, func(o Conversation) bool { return slices.Equal(o.Tokens, c.Tokens) && o.From == c.From })
				if at < 0 {
					t.Fatalf("epoch %d: conversation %v is dealt twice, or is none", epoch, c)
				}
				left = slices.Delete(left, at, at+1)
				for _, p := range c.Draw(1, i, 0, 3, 8, 0.5) {
					if p < 1 || p+1 < c.From || p+1 >= len(c.Tokens) {
						t.Fatalf("of %v the token after place %d is learned", c, p)
					}
				}
			}
			at := 0
			for from, to := range PartsOf(texts, together) {
				if from != at || to-from > together {
					t.Fatalf("a part of texts %d to %d after %d", from, to, at)
				}
				for _, c := range texts[from:to] {
					if len(c.Tokens) != len(texts[from].Tokens) {
						t.Fatalf("texts %d to %d are of several lengths", from, to)
					}
				}
				at = to
			}
			if at != len(texts) {
				t.Fatalf("parts of %d texts of %d", at, len(texts))
			}
		}
	})
}

// No conversation that is measured is learned, neither the whole nor its first turns nor a later one.
func TestHoldOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawConversations(t)
		held, rest := holdOut(list, 4)
		for _, h := range held {
			for _, c := range h.Texts {
				for _, r := range rest {
					if continues(c, r) || slices.Equal(r.Tokens, c.Tokens) {
						t.Fatalf("%v is held out, %v is learned", c, r)
					}
				}
			}
		}
	})
}

// Answers at alternating temperatures are measured at each temperature.
func TestHoldOutInTurn(t *testing.T) {
	var all []Conversation
	for i := range int32(60) {
		all = append(all, Conversation{Tokens: append([]int32{i}, make([]int32, 20)...), From: 1, Greedy: i%2 == 0})
	}
	if held, _ := holdOut(all, 4); len(held) != 2 || len(held[0].Texts) == 0 || len(held[1].Texts) == 0 {
		t.Errorf("of 60 answers, half of them greedy, %d kinds are held out", len(held))
	}
}

// A model card's table counts every answer and every token once.
func TestDescribeConversations(t *testing.T) {
	all := []Conversation{{Tokens: make([]int32, 10), From: 4}, {Tokens: make([]int32, 7), From: 1, Greedy: true},
		{Tokens: make([]int32, 20), From: 9}}
	got := describeConversations(all)
	for _, line := range []string{"| sampled | 2 | 13 | 17 |", "| greedy | 1 | 1 | 6 |"} {
		if !strings.Contains(got, line) {
			t.Errorf("%q lacks %q", got, line)
		}
	}
}
