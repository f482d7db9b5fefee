package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/tree"
)

// treeView draws the draft tree of every round.
type treeView struct {
	w     io.Writer
	text  func(token int32) string
	style command.Style
	width int // the terminal's; 0 for no bound
}

func newTreeView(p *command.Program, m *grove.Model) *treeView {
	width, _ := command.TerminalSize(p.Stderr)
	return &treeView{w: p.Stderr, text: command.TokenText(m), style: p.Style(p.Stderr), width: width}
}

// round draws one round.
func (v *treeView) round(r inside.Round) {
	title := v.style.Title(fmt.Sprintf("round %d:", r.Stats.Rounds))
	if r.Tree.Len() == 1 {
		fmt.Fprintf(v.w, "%s decoded plainly, %q, τ %.2f so far\n\n", title, v.text(r.Next), r.Stats.Tau())
		return
	}
	fmt.Fprintf(v.w, "%s %s of a budget of %d, %d accepted (*), τ %.2f so far\n", title,
		several(r.Tree.Len()-1, "node"), r.Budget-1, len(r.Path)-1, r.Stats.Tau())
	v.draw(r.Tree, r.Path)
	fmt.Fprintf(v.w, "next: %q\n\n", v.text(r.Next))
}

// draw draws a tree, and marks the accepted path.
func (v *treeView) draw(t *tree.Tree, path []int32) {
	for line := range strings.Lines(t.Render(v.text, marked(path))) {
		io.WriteString(v.w, v.line(line))
	}
}

// node matches a drawn node: its quoted token, its probability, and the mark of an accepted one.
var node = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?: \d+%)?( \*)?`)

// line clips a line to the terminal's width and colours its nodes.
func (v *treeView) line(line string) string {
	if v.width > 1 && utf8.RuneCountInString(line) > v.width {
		line = string([]rune(line)[:v.width-2]) + "…\n"
	}
	if !v.style.On {
		return line
	}
	return node.ReplaceAllStringFunc(line, func(n string) string {
		switch {
		case strings.HasSuffix(n, " *"):
			return v.style.Drafted(n)
		case strings.HasSuffix(n, "%"):
			return v.style.Rejected(n)
		}
		return n // the root
	})
}

// marked reports the nodes of a path, except its root, which was there before.
func marked(path []int32) func(int) bool {
	return func(node int) bool {
		for _, i := range path {
			if i == int32(node) {
				return node > 0
			}
		}
		return false
	}
}
