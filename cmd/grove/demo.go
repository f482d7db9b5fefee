package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/tree"
)

type demoCmd struct {
	command.ModelFlags

	Prompt    string `arg:"" optional:"" help:"The prompt; default: the beginning of a Go test."`
	MaxTokens int    `short:"n" help:"Generate at most N tokens (${default})." default:"128" placeholder:"N"`
	All       bool   `help:"Compare all drafters, with grove's model padded and as it is."`
	Drafter   string `short:"d" help:"Drafter that proposes the trees (see grove drafters)." default:"auto" placeholder:"NAME" group:"Speculation"`
	Budget    int    `short:"b" help:"Maximum nodes of a draft tree, 2 to 4096, root included." default:"0" placeholder:"N" group:"Speculation"`

	// at temperature 0 it repeats itself
	command.SampleFlags `kong:"embed,set='temperature=0.5',set='topp=0.95',set='seed=27'"`
}

func (demoCmd) Help() string {
	return `Decodes a prompt plainly and with tree speculation, side by side on a terminal. Then it prints the statistics
of that run and the tree with the longest accepted path. The two take turns, so each has the machine to itself
while it runs. Drafted text is green.

Without -m it runs grove's small model, padded to 500M parameters: the same text at the cost of a model of that
size. The prompt is easy to continue, and the trees have 12 nodes. --pad 0 shows the model as it is.

Examples:
    grove demo
    grove demo --all
    grove demo -m FILE --draft-model SMALL "def fibonacci(n):"`
}

// The demonstration of grove's model: its size, and its trees. Whole trees of this size pay on two
// cores with at least AVX2; the controller would need most of such a short run to find that out.
const (
	demoPad    = "500M"
	demoBudget = 12
	demoPrompt = `func TestReadFile(t *testing.T) {
	data, err := os.ReadFile("testdata/input.txt")
	if err != nil {
		t.Fatal(err)
	}
`
)

func (cmd *demoCmd) Run(p *command.Program) error {
	if cmd.MaxTokens < 2 {
		return command.Usagef("--max-tokens %d: want 2 or more", cmd.MaxTokens)
	}
	if cmd.Drafter == registry.Plain {
		return command.Usagef("--drafter plain: the demo compares a drafter with plain decoding: name another drafter")
	}
	sampling, err := cmd.Sampling()
	if err != nil {
		return err
	}
	r := grove.Request{MaxTokens: cmd.MaxTokens, Sampling: sampling, Budget: cmd.Budget, Drafter: cmd.Drafter}
	own := cmd.Model == "" && cmd.Pad == ""
	if cmd.Model == "" && cmd.Pad != "0" && cmd.Drafter == registry.Auto && cmd.Budget == 0 && !cmd.All {
		r.Drafter = "best-first+text"
		r.Budget = demoBudget
		r.Uncontrolled = true
	}
	cmd.Prompt = cmp.Or(cmd.Prompt, demoPrompt)
	if own {
		cmd.Pad = demoPad
	}
	if err := cmd.show(p, r); err != nil || !own || !cmd.All {
		return err
	}
	cmd.Pad = ""
	fmt.Fprintln(p.Stdout)
	return cmd.show(p, r)
}

// show opens the model and runs the demo with it.
func (cmd *demoCmd) show(p *command.Program, r grove.Request) error {
	ctx, stop := p.Context()
	defer stop()
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	if _, err := registry.New(r.Drafter, inside.Target(m)); err != nil {
		return &grove.OptionError{Field: "Drafter", Reason: err.Error()}
	}
	d := &demo{p: p, m: m, name: command.ModelName(m, cmd.Model), r: r}
	if d.prompt, err = m.Tokenize(cmd.Prompt); err != nil {
		return err
	}
	if err := inside.Check(m, d.prompt, &r); err != nil { // before the prompt is printed
		return err
	}
	if cmd.All {
		return d.compareAll(ctx)
	}
	d.say("%s, %d threads. The prompt:\n\n%s", d.name, inside.Target(m).Model.Threads(),
		p.Style(p.Stdout).Rejected(cmd.Prompt))
	return d.run(ctx)
}

// demo decodes one prompt in several ways.
type demo struct {
	p      *command.Program
	m      *grove.Model
	name   string
	r      grove.Request
	prompt []int32
	best   bestRound
}

// say explains, to people.
func (d *demo) say(format string, args ...any) {
	if !d.p.JSON {
		fmt.Fprintf(d.p.Stdout, format+"\n", args...)
	}
}

// lane makes a generation with a drafter.
func (d *demo) lane(ctx context.Context, title, drafter string) *lane {
	r := d.r
	r.Drafter = drafter
	more := inside.RequestOptionsOf(&r)
	more.Paced, more.FreshPrompt = true, true
	if drafter == registry.Plain {
		more.OnRound = nil
	}
	return &lane{title: title, chunks: d.m.GenerateTokens(ctx, d.prompt, r)}
}

// run shows plain decoding and the drafter.
func (d *demo) run(ctx context.Context) error {
	inside.RequestOptionsOf(&d.r).OnRound = d.best.round
	lanes := []*lane{
		d.lane(ctx, "plain decoding", registry.Plain),
		d.lane(ctx, "tree speculation ("+d.r.Drafter+")", d.r.Drafter),
	}
	if err := d.race(lanes); err != nil {
		return err
	}
	plain, drafted := lanes[0].result, lanes[1].result
	c := &comparison{Plain: plain, Drafted: drafted, Runs: 1, Different: differ(plain.Tokens, drafted.Tokens)}
	if d.p.JSON {
		if err := d.p.PrintJSON(doneLine(c.Drafted, c, true, inside.Target(d.m).Model.Config.Padded)); err != nil {
			return err
		}
	} else if err := d.report(c); err != nil {
		return err
	}
	return sameTokens(c.Different)
}

// sameTokens returns an error if tokens differ.
func sameTokens(different int) error {
	if different >= 0 {
		return fmt.Errorf("token %d differs from plain decoding's: this is a bug in grove, please report it", different)
	}
	return nil
}

// race runs lanes. On a terminal it shows them as they go, otherwise it prints their texts at the end.
func (d *demo) race(lanes []*lane) error {
	s := newScreen(d.p)
	if s == nil {
		if err := race(lanes, func() {}); err != nil {
			return err
		}
		for _, l := range lanes {
			d.say("── %s\n\n%s\n\n%s\n", l.title, strings.TrimRight(l.result.Text, "\n"), l.speed())
		}
		return nil
	}
	s.hide()
	defer s.show()
	err := race(lanes, func() { s.drawSoon(lanes) })
	s.draw(lanes)
	d.say("")
	return err
}

// report prints the figures of the run, and its best tree.
func (d *demo) report(c *comparison) error {
	d.say("%-16s %10s %8s %15s", "", "tokens/s", "passes", "tokens a pass")
	for _, row := range []struct {
		name string
		r    *grove.Result
	}{{registry.Plain, c.Plain}, {d.r.Drafter, c.Drafted}} {
		s := inside.Stats(row.r)
		d.say("%-16s %10.1f %8d %15.2f", row.name, perSecond(s), s.Rounds, s.Tau())
	}
	same := fmt.Sprintf("the same %d tokens", len(c.Plain.Tokens))
	if c.Different >= 0 {
		same = fmt.Sprintf("DIFFERENT tokens from token %d on", c.Different)
	}
	style := d.p.Style(d.p.Stdout)
	d.say("\n%s, %s.", style.Title(fmt.Sprintf("%.1f × the speed of plain decoding", c.speedup())), same)
	again := 0
	for _, repeated := range bench.Repeats(c.Plain.Tokens) {
		if repeated {
			again++
		}
	}
	d.say("%.0f%% of the text repeats earlier runs of 4 tokens, which makes drafting easier.\n",
		100*float64(again)/float64(max(len(c.Plain.Tokens), 1)))
	if accepted := len(d.best.path) - 1; accepted > 0 {
		d.say("A pass that accepted %d of %d drafted tokens (marked *); the model added %q:\n",
			accepted, d.best.tree.Len()-1, command.TokenText(d.m)(d.best.next))
		view := newTreeView(d.p, d.m)
		view.w, view.style = d.p.Stdout, style
		view.draw(&d.best.tree, d.best.path)
	} else {
		d.say("No drafted token was accepted.")
	}
	return nil
}

// compareAll prints a line for each drafter that can run.
func (d *demo) compareAll(ctx context.Context) error {
	names := append([]string{registry.Plain}, comparedDrafters(inside.Target(d.m))...)
	var lanes []*lane
	for _, name := range names {
		lanes = append(lanes, d.lane(ctx, name, name))
	}
	bar := d.p.Progress("decoding", false)
	err := race(lanes, func() {
		done := 0
		for _, l := range lanes {
			done += l.tokens
		}
		bar.Set(int64(done), int64(len(lanes)*(d.r.MaxTokens-1)))
	})
	bar.End()
	if err != nil {
		return err
	}
	plain, different := lanes[0], -1
	d.say("%s, %d tokens each:\n", d.name, len(plain.result.Tokens))
	d.say("%-16s %10s %10s %15s", "drafter", "tokens/s", "speed-up", "tokens a pass")
	for _, l := range lanes {
		if at := differ(plain.result.Tokens, l.result.Tokens); at >= 0 && different < 0 {
			different = at
		}
		s := inside.Stats(l.result)
		speedup := plain.clock.Seconds() / max(l.clock.Seconds(), 1e-9)
		if d.p.JSON {
			line := map[string]any{"drafter": l.title, "padding": inside.Target(d.m).Model.Config.Padded,
				"speedup": speedup, "stats": figures(s)}
			if err := d.p.PrintJSON(line); err != nil {
				return err
			}
			continue
		}
		d.say("%-16s %10.1f %8.2f × %15.2f", l.title, perSecond(s), speedup, s.Tau())
	}
	return sameTokens(different)
}

// bestRound is the round to show: the one with the longest accepted path, of the trees that branch
// if there are any.
type bestRound struct {
	tree tree.Tree
	path []int32
	next int32
}

func (b *bestRound) round(r inside.Round) {
	rank := func(t *tree.Tree, path []int32) []int {
		branches := 0
		for i := range t.Len() {
			if int(t.Parent[i]) != i-1 && len(path) > 1 {
				branches = 1
			}
		}
		return []int{branches, len(path), t.Len()}
	}
	if slices.Compare(rank(r.Tree, r.Path), rank(&b.tree, b.path)) > 0 {
		b.tree.Copy(r.Tree)
		b.path, b.next = slices.Clone(r.Path), r.Next
	}
}
