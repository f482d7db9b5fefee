package drafttest

import (
	"testing"

	"github.com/grovellm/grove/draft"
)

// ByText checks a drafter with a head and a guide that refuses every level: repetitive text is
// drafted from the text alone, even if the head has not read a row of it; and the head's later
// drafts of the text stay the same.
func ByText(t *testing.T, hidden int, drafter func() draft.Drafter) {
	t.Helper()
	text := make([]int32, 200)
	for i := range text {
		text[i] = int32(3*(i%11) + 2)
	}
	const at, depth = 150, 30
	read := func(asked bool) draft.Request {
		d := drafter()
		s := Begin(t, d, draft.Options{}, 1)
		first := s.Prompt(text[:at-20], hidden, true)
		first.Skip = true
		Commit(t, d, first)
		byText := func(at int) {
			s.Root = text[at]
			q := s.Request(200, depth, new(Judge))
			if p := Propose(t, d, q); p[0].Levels != 0 {
				t.Fatalf("%d levels were drafted, though the guide refused", p[0].Levels)
			}
			node := 0
			for i := range depth {
				node = q.Tree.Child(node, text[at+1+i])
				if node < 0 {
					t.Fatalf("text that occurred before is followed for %d tokens, want %d: %v", i, depth, q.Tree)
				}
			}
		}
		if asked {
			byText(at - 20)
		}
		Commit(t, d, s.Prompt(text[at-20:at], hidden, true))
		if asked {
			byText(at)
			q := []draft.Request{s.Request(200, depth, new(Judge))}
			if n := testing.AllocsPerRun(5, func() {
				q[0].Tree.Reset(text[at])
				Propose(t, d, q...)
			}); n > 0 {
				t.Errorf("it allocates %g times", n)
			}
		}
		s.Root = text[at]
		q := s.Request(40, depth, nil)
		Propose(t, d, q)
		return q
	}
	if err := Same(read(true).Tree, read(false).Tree); err != nil {
		t.Error("asked for a tree of the text alone before, the head drafts another: ", err)
	}
}
