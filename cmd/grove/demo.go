package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/cpu"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/model/synth"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

type demoCmd struct {
	Model     string `short:"m" env:"GROVE_MODEL" help:"A GGUF file or a Hugging Face folder; without one, a small random model." placeholder:"FILE"`
	Prompt    string `arg:"" optional:"" help:"The prompt; without one, a Go file to write again."`
	MaxTokens int    `short:"n" help:"Generate at most N tokens." default:"160" placeholder:"N"`
	Budget    int    `short:"b" help:"Nodes of a draft tree at most; 0 for ${budget}." default:"0" placeholder:"N"`
}

func (demoCmd) Help() string {
	return `Decodes a prompt plainly and with tree speculation, checks that the tokens are the same, and shows
the speed of both and a draft tree. Without --model it makes a small model with random weights:
its text means nothing, but decoding it is the same work.

Examples:
    grove demo
    grove demo -m qwen3-0.6b-q8_0.gguf
    grove demo -m FILE "def fibonacci(n):" -n 200`
}

func (cmd *demoCmd) Run(p *program) error {
	if cmd.MaxTokens < 1 {
		return usagef("--max-tokens %d: want at least 1", cmd.MaxTokens)
	}
	ctx, stop := p.context()
	defer stop()
	if cmd.Model == "" {
		return cmd.random(ctx, p)
	}
	m, err := (&modelFlags{Model: cmd.Model}).open(p)
	if err != nil {
		return err
	}
	defer m.Close()
	d := &demo{p: p, m: m, r: grove.Request{MaxTokens: cmd.MaxTokens, Budget: cmd.Budget, Drafter: "lookup"}}
	if cmd.Prompt == "" {
		cmd.Prompt = demoPrompt
		d.say("The prompt holds a Go file and the beginning of its copy; the drafter looks up how the copy goes on.\n")
	}
	if d.prompt, err = m.Tokenize(cmd.Prompt); err != nil {
		return err
	}
	if err := d.plainly(ctx); err != nil {
		return err
	}
	return d.speculate(ctx)
}

// demoPrompt ends where a copy of its file begins: what a model asked to edit a file does for most of the answer.
const demoPrompt = demoFile + "\n// The same file again, with a test for an empty list:\n\npackage stack\n\nimport \"errors\"\n"

const demoFile = `package stack

import "errors"

// ErrEmpty is returned when there is nothing to pop.
var ErrEmpty = errors.New("stack: empty")

// Stack is a list of values, the last of which comes out first.
type Stack struct {
	values []int
}

// Push adds a value.
func (s *Stack) Push(v int) {
	s.values = append(s.values, v)
}

// Pop removes the last value and returns it.
func (s *Stack) Pop() (int, error) {
	if len(s.values) == 0 {
		return 0, ErrEmpty
	}
	v := s.values[len(s.values)-1]
	s.values = s.values[:len(s.values)-1]
	return v, nil
}

// Len returns the number of values.
func (s *Stack) Len() int {
	return len(s.values)
}
`

// demoShape is large enough that reading its weights is most of a pass, as in any model worth running,
// and small enough to be made in a moment. Kernels in plain Go get a smaller one.
func demoShape() synth.Shape {
	s := synth.Shape{
		Name: "demo", Arch: "qwen3", Vocab: 4096, Hidden: 512, Layers: 8, Heads: 8, KVHeads: 4, HeadDim: 64, FFN: 1536,
		Context: 2048, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 64, Tied: true, Tokens: synth.Qwen2,
	}
	if cpu.Active() == cpu.Portable {
		s.Vocab, s.Hidden, s.Layers, s.FFN = 1024, 256, 2, 768
	}
	return s
}

// random shows speculation on a model that nobody trained. Its text repeats nothing that could be looked up, so the
// drafter gets the plain answer in three versions, each with some tokens changed: guesses at the output, as an
// editor has them. Where they differ the drafts branch.
func (cmd *demoCmd) random(ctx context.Context, p *program) error {
	m, err := randomModel(ctx, p)
	if err != nil {
		return err
	}
	defer m.Close()
	d := &demo{p: p, m: m, r: grove.Request{MaxTokens: cmd.MaxTokens, Budget: cmd.Budget, Drafter: "lookup", IgnoreEnd: true}}
	d.say("No --model was given, so this is a model with random weights (%s parameters): its text is random too and\n"+
		"means nothing. Decoding it is the same work as decoding a trained model of its size.\n", count(demoShape().Parameters()))
	if cmd.Prompt == "" {
		cmd.Prompt = "once upon a time"
	}
	if d.prompt, err = m.Tokenize(cmd.Prompt); err != nil {
		return err
	}
	if err := d.plainly(ctx); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for version := range 3 {
		for i, token := range d.plain.Tokens {
			if i%9 == 3*version+2 {
				token = rng.Int32N(int32(m.Config().Vocab))
			}
			d.r.PredictTokens = append(d.r.PredictTokens, token)
		}
	}
	d.say("The drafter is given three guesses at that answer, each with every ninth token wrong.\n")
	return d.speculate(ctx)
}

func randomModel(ctx context.Context, p *program) (*grove.Model, error) {
	dir, err := os.MkdirTemp("", "grove-demo-")
	if err != nil {
		return nil, fmt.Errorf("the random model needs a temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "random.gguf")
	bar := p.progress("making a random model", true)
	err = synth.Write(ctx, path, demoShape(), synth.Options{Type: tensor.BF16, Seed: 1, Progress: bar.set})
	bar.end()
	if err != nil {
		return nil, err
	}
	m, err := model.Open(path, model.Options{Threads: p.Threads})
	if err != nil {
		return nil, err
	}
	return grove.New(m), nil
}

// demo decodes one prompt both ways.
type demo struct {
	p      *program
	m      *grove.Model
	r      grove.Request
	prompt []int32
	plain  *grove.Result
}

// say explains, to people.
func (d *demo) say(format string, args ...any) {
	if !d.p.JSON {
		fmt.Fprintf(d.p.stdout, format+"\n", args...)
	}
}

// show streams text to people.
func (d *demo) show(ctx context.Context, r grove.Request) (*grove.Result, error) {
	if d.p.JSON {
		return grove.Collect(d.m.GenerateTokens(ctx, d.prompt, r))
	}
	out := &printer{p: d.p}
	result, err := out.stream(d.m.GenerateTokens(ctx, d.prompt, r))
	out.newline()
	return result, err
}

func (d *demo) plainly(ctx context.Context) (err error) {
	r := d.r
	r.Drafter = "none"
	d.say("── plain decoding: one token a pass\n")
	d.plain, err = d.show(ctx, r)
	if err == nil {
		d.say("\n%d tokens, %.1f tokens/s\n", d.plain.Stats.Tokens, perSecond(&d.plain.Stats))
	}
	return err
}

func (d *demo) speculate(ctx context.Context) error {
	best := &tree.Tree{}
	var path []int32
	var next int32
	d.r.OnRound = func(r grove.Round) {
		if len(r.Path) > len(path) || len(r.Path) == len(path) && r.Tree.Len() > best.Len() {
			best.Copy(r.Tree)
			path, next = append(path[:0], r.Path...), r.Next
		}
	}
	d.say("── tree speculation: a tree of drafted tokens a pass\n")
	result, err := d.show(ctx, d.r)
	if err != nil {
		return err
	}
	d.say("\n%d tokens, %.1f tokens/s\n", result.Stats.Tokens, perSecond(&result.Stats))

	d.r.OnRound = nil
	c, err := compare(ctx, d.p, d.m, d.prompt, d.r, result)
	if err != nil {
		return err
	}
	if d.p.JSON {
		if err := d.p.printJSON(doneLine(result, c, true)); err != nil {
			return err
		}
	} else {
		d.say("The longest accepted path was in this tree, its tokens marked *; the model's own next token was %q:\n", d.text(next))
		d.say("%s", best.Render(d.text, marked(path)))
		if err := printStats(d.p.stdout, result, c); err != nil {
			return err
		}
	}
	if c.Different >= 0 {
		return errors.New("the tokens differ: this is a fault in grove, please report it")
	}
	return nil
}

func (d *demo) text(token int32) string {
	if t := d.m.Tokenizer(); t != nil {
		return strings.ToValidUTF8(string(t.Piece(token)), "\uFFFD")
	}
	return fmt.Sprint(token)
}

// marked reports the nodes of a path but for its root, which was there before.
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
