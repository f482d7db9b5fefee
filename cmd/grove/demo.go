package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/tree"
)

type demoCmd struct {
	modelFlags

	Prompt    string `arg:"" optional:"" help:"The prompt; without one, the beginning of a Go file."`
	MaxTokens int    `short:"n" help:"Generate at most N tokens." default:"200" placeholder:"N"`
	Drafter   string `short:"d" help:"What proposes the trees; see grove run." placeholder:"NAME"`
	Budget    int    `short:"b" help:"Nodes of a draft tree at most, root included; 0 for ${budget}." default:"0" placeholder:"N"`

	sampleFlags `kong:"embed,set='temperature=0.8',set='topp=0.9',set='seed=1'"` // greedy text of a small model turns in circles
}

func (demoCmd) Help() string {
	return `Decodes a prompt plainly and with tree speculation, checks that the tokens are the same, and shows
the speed of both and a draft tree. On a terminal the two run side by side, each as fast as it is
when it has the machine to itself: they take turns, and the one that has had less time goes on.
What was drafted and accepted is green.

Without --model it runs grove's own small model. It is so quick that drafting with another model or a
head would cost what it saves, so candidates are looked up; --pad 500M shows the same text at the cost
of a larger model, drafted by its head.

Examples:
    grove demo
    grove demo --pad 500M
    grove demo -m FILE --draft-model SMALL "def fibonacci(n):" -n 200`
}

func (cmd *demoCmd) Run(p *program) error {
	if cmd.MaxTokens < 1 {
		return usagef("--max-tokens %d: want at least 1", cmd.MaxTokens)
	}
	sampling, err := cmd.sampling()
	if err != nil {
		return err
	}
	ctx, stop := p.context()
	defer stop()
	m, err := cmd.open(p)
	if err != nil {
		return err
	}
	defer m.Close()
	d := &demo{p: p, m: m, name: modelName(m, cmd.Model), r: grove.Request{MaxTokens: cmd.MaxTokens, Sampling: sampling, Budget: cmd.Budget, Drafter: cmd.Drafter}}
	if d.r.Drafter == "" {
		d.r.Drafter = cmd.drafter(m)
	}
	if plain(d.r.Drafter) {
		return usagef("--drafter plain: the demo compares a drafter with plain decoding: name one")
	}
	if cmd.Prompt == "" {
		cmd.Prompt = demoPrompt
		if !m.HasDraft() {
			cmd.Prompt = copyPrompt
			d.say("The prompt holds a Go file and the beginning of its copy; the drafter looks up how the copy goes on.\n")
		}
	}
	if d.prompt, err = m.Tokenize(cmd.Prompt); err != nil {
		return err
	}
	d.say("%s, %d threads. The prompt:\n\n%s", d.name, m.Threads(), p.style(p.stdout).rejected(cmd.Prompt))
	return d.run(ctx)
}

// demoPrompt is the beginning of a Go program.
const demoPrompt = `package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// A counter counts the words of a text.
type counter struct {
	words map[string]int
	total int
}

// add counts the words of a line.
func (c *counter) add(line string) {
	for _, word := range strings.Fields(line) {
		c.words[word]++
		c.total++
	}
}

// read counts the words of a file.
func (c *counter) read(name string) error {
	f, err := os.Open(name)
`

// copyPrompt ends where a copy of its file begins: what a model asked to edit a file does for most of the answer.
const copyPrompt = demoPrompt + `	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		c.add(lines.Text())
	}
	return lines.Err()
}

// The same file again, with a test for an empty name:

package main

import (
	"bufio"
`

// demo decodes one prompt both ways.
type demo struct {
	p      *program
	m      *grove.Model
	name   string
	r      grove.Request
	prompt []int32
	best   bestRound
}

// say explains, to people.
func (d *demo) say(format string, args ...any) {
	if !d.p.JSON {
		fmt.Fprintf(d.p.stdout, format+"\n", args...)
	}
}

func (d *demo) run(ctx context.Context) error {
	plainly, drafted := d.r, d.r
	plainly.Drafter = draft.Plain
	drafted.OnRound = d.best.round
	decoding := []*lane{
		{title: "plain decoding: one token a pass", chunks: d.m.GenerateTokens(ctx, d.prompt, plainly)},
		{title: "tree speculation (" + d.r.Drafter + "): a tree a pass", chunks: d.m.GenerateTokens(ctx, d.prompt, drafted)},
	}
	var err error
	if width, height := terminalSize(d.p.stdout); !d.p.JSON && width >= 2*leastLane+3 {
		err = race(d.p, decoding, width, height)
		d.say("")
	} else {
		err = d.inTurn(decoding)
	}
	if err != nil {
		return err
	}
	result := decoding[1].result
	c, err := compare(ctx, d.p, d.m, d.prompt, d.r, result)
	if err != nil {
		return err
	}
	if at := differ(decoding[0].result.Tokens, result.Tokens); at >= 0 {
		c.Different = at
	}
	if d.p.JSON {
		if err := d.p.printJSON(doneLine(result, c, true, d.m.Config().Padded)); err != nil {
			return err
		}
	} else if err := d.report(result, c); err != nil {
		return err
	}
	if c.Different >= 0 {
		return errors.New("the tokens differ: this is a fault in grove, please report it")
	}
	return nil
}

// inTurn decodes one way after the other, and streams both texts.
func (d *demo) inTurn(decoding []*lane) error {
	for _, l := range decoding {
		d.say("── %s\n", l.title)
		out := &printer{p: d.p, whole: d.p.JSON}
		var err error
		if l.result, err = out.stream(l.chunks); err != nil {
			return err
		}
		out.newline()
		d.say("\n%d tokens, %.1f tokens/s\n", l.result.Stats.Tokens, perSecond(&l.result.Stats))
	}
	return nil
}

func (d *demo) report(result *grove.Result, c *comparison) error {
	if d.best.tree.Len() > 1 {
		d.say("The longest accepted path was in this tree, its tokens marked *; the model's own next token was %q:\n", tokenText(d.m)(d.best.next))
		view := newTreeView(d.p, d.m)
		view.w, view.style = d.p.stdout, d.p.style(d.p.stdout)
		view.draw(&d.best.tree, d.best.path)
		d.say("")
	}
	return printStats(d.p.stdout, d.name, result, c)
}

// bestRound is the round with the longest accepted path.
type bestRound struct {
	tree tree.Tree
	path []int32
	next int32
}

func (b *bestRound) round(r grove.Round) {
	if len(r.Path) > len(b.path) || len(r.Path) == len(b.path) && r.Tree.Len() > b.tree.Len() {
		b.tree.Copy(r.Tree)
		b.path, b.next = append(b.path[:0], r.Path...), r.Next
	}
}
