// An animated picture of tree speculation, drawn from a run: grove-lab picture docs/tree.svg writes
// docs/tree.svg.

package main

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/tree"
)

type pictureCmd struct {
	command.ModelFlags

	Out     string `arg:"" help:"SVG file to write."`
	Prompt  string `arg:"" optional:"" help:"The prompt (${default})." default:"// Close closes the"`
	Drafter string `short:"d" help:"Drafter that proposes the trees; by default the draft model alone, whose drafts branch." default:"best-first:depth=5" placeholder:"NAME" group:"Speculation"`
	Budget  int    `short:"b" help:"Maximum nodes of a draft tree, root included (${default})." default:"14" placeholder:"N" group:"Speculation"`

	command.SampleFlags `kong:"embed,set='temperature=0.6',set='topp=0.95'"`
}

func (pictureCmd) Help() string {
	return "Draws the first rounds of a text as an animated SVG: docs/tree.svg is one.\n\nExample:\n    grove-lab picture tree.svg"
}

// pictureRounds is the number of rounds drawn.
const pictureRounds = 4

// drawnRound is a round of the run, ready to be drawn.
type drawnRound struct {
	tree tree.Tree
	path []int32
	next int32
}

// Run decodes the first rounds and draws them. It leaves out the controller, whose decisions depend
// on the clock: the same request makes the same picture.
func (cmd *pictureCmd) Run(p *command.Program) error {
	sampling, err := cmd.Sampling()
	if err != nil {
		return err
	}
	if err := command.NewFile(cmd.Out, true); err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	if cmd.Drafter == registry.Plain {
		return command.Usagef("--drafter plain drafts no trees: name another")
	}
	r := grove.Request{Sampling: sampling, Drafter: cmd.Drafter, Budget: cmd.Budget, Uncontrolled: true, MaxTokens: 256}
	var rounds []*drawnRound
	inside.RequestOptionsOf(&r).OnRound = func(q inside.Round) {
		d := &drawnRound{path: append([]int32(nil), q.Path...), next: q.Next}
		d.tree.Copy(q.Tree)
		rounds = append(rounds, d)
	}
	prompt, err := m.Tokenize(cmd.Prompt)
	if err != nil {
		return err
	}
	for _, err := range m.GenerateTokens(ctx, prompt, r) {
		if err != nil {
			return err
		}
		if len(rounds) == pictureRounds {
			break
		}
	}
	if len(rounds) == 0 {
		return fmt.Errorf("the text ended before a tree was drafted: try another prompt or --seed")
	}
	if err := os.WriteFile(cmd.Out, []byte(drawSVG(cmd.Prompt, rounds, command.TokenText(m))), 0o666); err != nil {
		return err
	}
	fmt.Fprintln(p.Stdout, cmd.Out)
	return nil
}

// The picture's dimensions, in pixels and seconds.
const (
	svgWidth  = 880.0
	margin    = 24.0
	textChar  = 8.4 // width of a character in the text
	textLine  = 22.0
	nodeChar  = 7.6 // and in a node
	nodeHigh  = 26.0
	nodePad   = 16.0
	nodeRow   = 43.0
	nodeGap   = 34.0
	roundTime = 4.0
	holdTime  = 2.5 // the last round stays longer
)

// svg collects the elements of a picture.
type svg struct {
	strings.Builder
	text func(int32) string
}

func (s *svg) line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// drawSVG draws rounds one after another: the tree is drafted level by level, verified, and the
// accepted path joins the text.
func drawSVG(prompt string, rounds []*drawnRound, text func(int32) string) string {
	s := &svg{text: text}
	runs, lines := textRuns(prompt, rounds, text)
	top := margin + 14 + textLine*float64(lines) + 34
	height := 0.0
	layouts := make([]layout, len(rounds))
	for i, r := range rounds {
		layouts[i] = s.layout(r)
		height = max(height, layouts[i].height)
	}
	total := roundTime*float64(len(rounds)) + holdTime
	bottom := top + 36 + height + margin
	s.line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="t d"`, svgWidth, bottom)
	s.line(`	width="%g" height="%g">`, svgWidth, bottom)
	s.line(`<title id="t">Tree speculation in grove</title>`)
	s.line(`<desc id="d">In each of %d rounds a drafter proposes a tree of tokens,`, len(rounds))
	s.line(`	the model verifies it in one pass, and the accepted path joins the text.</desc>`)
	s.style(len(rounds), total)
	s.line(`<rect class="bg" x="0.5" y="0.5" width="%g" height="%g" rx="10"/>`, svgWidth-1, bottom-1)
	s.line(`<path class="panel" d="M1 %gV10.5a9.5 9.5 0 0 1 9.5-9.5H%ga9.5 9.5 0 0 1 9.5 9.5V%gz"/>`,
		top-22, svgWidth-10.5, top-22)
	for _, r := range runs {
		class := "given"
		if r.round >= 0 {
			class = fmt.Sprintf("%s k%d", r.class, r.round)
		}
		s.line(`<text class="code %s" x="%g" y="%g" textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`, class,
			margin+textChar*float64(r.column), margin+12+textLine*float64(r.line),
			textChar*float64(utf8.RuneCountInString(r.text)), html.EscapeString(r.text))
	}
	tokens := 0
	for i, r := range rounds {
		tokens += len(r.path)
		class := "round"
		if i == len(rounds)-1 {
			class += " last"
		}
		s.line(`<g class="%s" style="--t:%gs">`, class, roundTime*float64(i))
		s.line(`<text class="say" x="%g" y="%g"><tspan class="strong">Pass %d</tspan></text>`, margin, top+10, i+1)
		s.line(`<text class="say drafting" x="%g" y="%g">the drafter proposes %d tokens</text>`,
			margin+64, top+10, r.tree.Len()-1)
		s.line(`<text class="say verified" x="%g" y="%g">the model verifies them together:`+
			` <tspan class="ok">%d accepted</tspan>, and <tspan class="own">its next token</tspan></text>`,
			margin+64, top+10, len(r.path)-1)
		s.line(`<text class="say verified end" x="%g" y="%g">%d tokens in %d %s</text>`,
			svgWidth-margin, top+10, tokens, i+1, plural("pass", i+1))
		s.line(`<g transform="translate(%g %.1f) scale(%.3f)">`,
			margin, top+36+(height-layouts[i].height)/2, layouts[i].scale)
		s.round(r, &layouts[i])
		s.line(`</g></g>`)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "es"
}

// textRun is text on one line of the picture, from the prompt or a round.
type textRun struct {
	text         string
	line, column int
	round        int    // -1: the prompt
	class        string // ok: drafted; own: the model's
}

// textRuns lays the text out.
func textRuns(prompt string, rounds []*drawnRound, text func(int32) string) (runs []textRun, lines int) {
	const columns = 99 // (svgWidth - 2·margin) / textChar
	line, column := 0, 0
	add := func(s string, round int, class string) {
		run := textRun{line: line, column: column, round: round, class: class}
		end := func() {
			if strings.TrimSpace(run.text) != "" {
				runs = append(runs, run)
			}
			run.text = ""
			run.line = line
			run.column = column
		}
		for _, r := range s {
			piece := string(command.Visible(r))
			switch {
			case r == '\n':
				line, column = line+1, 0
				end()
				continue
			case r == '\t':
				piece = strings.Repeat(" ", 4-column%4)
			case column >= columns:
				line, column = line+1, 0
				end()
			}
			run.text += piece
			column += utf8.RuneCountInString(piece)
		}
		end()
	}
	add(prompt, -1, "")
	for i, r := range rounds {
		if i == 0 { // the root of the first tree is the token that the prompt's pass gave
			add(text(r.tree.Token[0]), -1, "")
		}
		for _, node := range r.path[1:] {
			add(text(r.tree.Token[node]), i, "ok")
		}
		add(text(r.next), i, "own")
	}
	return runs, line + 1
}

// layout is the positions of nodes: children are to the right of their parent, leaves below each other.
type layout struct {
	x, y, width []float64
	scale       float64
	height      float64 // scaled
}

func (s *svg) layout(r *drawnRound) layout {
	t := &r.tree
	n := t.Len()
	l := layout{x: make([]float64, n), y: make([]float64, n), width: make([]float64, n)}
	children := make([][]int, n)
	for i := range n {
		if i > 0 {
			children[t.Parent[i]] = append(children[t.Parent[i]], i)
		}
		l.width[i] = s.nodeWidth(t.Token[i])
	}
	leaves, right := 0.0, 0.0
	var place func(i int)
	place = func(i int) {
		if parent := t.Parent[i]; parent >= 0 {
			l.x[i] = l.x[parent] + l.width[parent] + nodeGap
		}
		right = max(right, l.x[i]+l.width[i])
		if len(children[i]) == 0 {
			l.y[i] = leaves * nodeRow
			leaves++
			return
		}
		for _, c := range children[i] {
			place(c)
		}
		l.y[i] = (l.y[children[i][0]] + l.y[children[i][len(children[i])-1]]) / 2
	}
	place(0)
	l.scale = min(1.2, (svgWidth-2*margin)/(right+nodeGap+s.nodeWidth(r.next)))
	l.height = l.scale * leaves * nodeRow
	return l
}

// round draws a tree: edges, nodes as drafted, and above them the result of verification.
func (s *svg) round(r *drawnRound, l *layout) {
	t := &r.tree
	nextWidth := s.nodeWidth(r.next)
	accepted := make([]bool, t.Len())
	for _, i := range r.path {
		accepted[i] = true
	}
	edge := func(class string, from int, x, y float64) {
		x0, y0 := l.x[from]+l.width[from], l.y[from]+nodeHigh/2
		mid := (x0 + x) / 2
		s.line(`<path class="%s" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"/>`,
			class, x0, y0, mid, y0, mid, y+nodeHigh/2, x, y+nodeHigh/2)
	}
	node := func(class, text string, x, y, width float64) {
		s.line(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%g" rx="6"/>`, class, x, y, width, nodeHigh)
		s.line(`<text class="token" x="%.1f" y="%.1f">%s</text>`, x+width/2, y+17.5, html.EscapeString(nodeText(text)))
	}
	for i := range t.Len() {
		class := "node rejected"
		if accepted[i] {
			class = "node"
		}
		s.line(`<g class="%s d%d">`, class, min(t.Depth[i], deepest))
		if i > 0 {
			edge("edge", int(t.Parent[i]), l.x[i], l.y[i])
		}
		node("box", s.text(t.Token[i]), l.x[i], l.y[i], l.width[i])
		if i > 0 {
			s.line(`<text class="chance" x="%.1f" y="%.1f">%.0f%%</text>`,
				l.x[i]+l.width[i]/2, l.y[i]+nodeHigh+12, 100*math.Exp(float64(t.LogProb[i])))
		}
		s.line(`</g>`)
	}
	for k, i := range r.path {
		s.line(`<g class="accepted a%d">`, min(k, deepest))
		if i > 0 {
			edge("edge ok", int(t.Parent[i]), l.x[i], l.y[i])
		}
		node("box ok", s.text(t.Token[i]), l.x[i], l.y[i], l.width[i])
		s.line(`</g>`)
	}
	last := r.path[len(r.path)-1]
	x, y := l.x[last]+l.width[last]+nodeGap, l.y[last]
	for i := range t.Len() { // below the nodes drawn so far
		if l.x[i] < x+nextWidth && x < l.x[i]+l.width[i] && math.Abs(l.y[i]-y) < nodeRow {
			y = l.y[last] + nodeRow*0.8
		}
	}
	s.line(`<g class="next">`)
	edge("edge own", int(last), x, y)
	node("box own", s.text(r.next), x, y, nextWidth)
	s.line(`</g>`)
}

func (s *svg) nodeWidth(token int32) float64 {
	return nodeChar*float64(utf8.RuneCountInString(nodeText(s.text(token)))) + nodePad
}

// nodeText makes a token's white space visible.
func nodeText(text string) string {
	text = strings.NewReplacer(" ", "·", "\n", "↵", "\t", "⇥").Replace(text)
	return strings.Map(command.Visible, text)
}

// deepest is the last depth that appears separately from the one before.
const deepest = 8

//go:embed tree.css
var treeCSS string

// style writes colours for light and dark pages, and the animation. Without animation, the page
// shows the end of the last round.
func (s *svg) style(rounds int, total float64) {
	s.line("<style>\n%s@media (prefers-reduced-motion:no-preference){", treeCSS)
	at := func(seconds float64) string { return fmt.Sprintf("%.2f%%", 100*seconds/total) }
	const fade = 0.12
	// frames animates the elements of a class: hidden, then shown from one time on, dimmed or hidden
	// again from another.
	frames := func(class string, from, until, end float64) {
		name := strings.NewReplacer(".", "").Replace(class)
		s.line(`.%s{animation-name:%s}@keyframes %s{0%%,%s{opacity:0}%s,%s{opacity:1}%s,100%%{opacity:%g}}`,
			class, name, name, at(from), at(from+fade), at(until), at(until+2*fade), end)
	}
	s.line(`.round,.node,.accepted,.next,.drafting,.verified,.code{animation:%gs linear var(--t,0s) infinite both}`, total)
	// These are times since the beginning of their round.
	const drafted, level, verify, step, joined = 0.1, 0.16, 1.6, 0.14, 2.9
	never := total - 2*fade
	frames("round", 0, roundTime-2*fade, 0)
	frames("round.last", 0, roundTime+holdTime-2*fade, 0)
	for d := range deepest + 1 {
		t := drafted + level*float64(d)
		frames(fmt.Sprintf("d%d", d), t, never, 1)
		frames(fmt.Sprintf("rejected.d%d", d), t, max(verify, t+fade), 0.4)
		frames(fmt.Sprintf("a%d", d), verify+step*float64(d), never, 1)
	}
	frames("drafting", 0, verify-fade, 0)
	frames("verified", verify+fade, never, 1)
	frames("next", joined-3*fade, never, 1)
	s.line(`.given{animation:none}`)
	for i := range rounds { // and these are times since the beginning of the first round
		frames(fmt.Sprintf("k%d", i), roundTime*float64(i)+joined, never, 0)
	}
	s.line("}\n</style>")
}
