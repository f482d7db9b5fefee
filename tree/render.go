// A tree as text, for people.

package tree

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// String draws the tree with its token ids.
func (t *Tree) String() string { return t.Render(nil, nil) }

// Render draws the tree, one line per branch: a run of nodes without siblings stays on one line. Each
// token is written by text (nil: its id; quoted, so that spaces and line ends are visible), followed
// by the drafter's probability in percent, and by a * where mark returns true (nil: nowhere).
//
//	"func"
//	├─ " main" 61% * · "(" 97% *
//	└─ " Test" 12%
//	   ├─ "Parse" 30%
//	   └─ "Read" 22%
func (t *Tree) Render(text func(token int32) string, mark func(node int) bool) string {
	var b strings.Builder
	if t.Len() > 0 {
		t.render(&b, 0, "", text, mark)
	}
	return b.String()
}

func (t *Tree) render(b *strings.Builder, i int, indent string, text func(int32) string, mark func(int) bool) {
	for {
		if text != nil {
			b.WriteString(strconv.Quote(text(t.Token[i])))
		} else {
			b.WriteString(strconv.Itoa(int(t.Token[i])))
		}
		if i > 0 {
			fmt.Fprintf(b, " %.0f%%", 100*math.Exp(float64(t.LogProb[i])))
		}
		if mark != nil && mark(i) {
			b.WriteString(" *")
		}
		c := t.first[i]
		if c < 0 || t.next[c] >= 0 {
			break
		}
		b.WriteString(" · ")
		i = int(c)
	}
	b.WriteByte('\n')
	for c := t.first[i]; c >= 0; c = t.next[c] {
		head, rest := "├─ ", "│  "
		if t.next[c] < 0 {
			head, rest = "└─ ", "   "
		}
		b.WriteString(indent + head)
		t.render(b, int(c), indent+rest, text, mark)
	}
}
