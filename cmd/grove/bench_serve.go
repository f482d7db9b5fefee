package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove"
	layouts "github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
)

type benchServeCmd struct {
	command.ModelFlags

	Suite     string   `help:"Suite of prompts, or a JSONL file (see grove bench spec --list)." default:"go" placeholder:"NAME"`
	Data      string   `help:"Folder of the suites' data (${default})." env:"GROVE_DATA" default:"../shared/data" placeholder:"DIR"`
	Prompts   int      `help:"Prompts of the suite, 1 to 10000 (${default})." default:"16" placeholder:"N"`
	Length    int      `name:"prompt-tokens" help:"Tokens of a prompt at most, 1 to 1048576 (${default})." default:"64" placeholder:"N"`
	Chat      bool     `help:"Ask questions through the model's chat template, which --prompt-tokens cuts too."`
	Drafters  []string `help:"Drafters to compare with plain decoding, written as methods of grove bench spec (eagle3@budget=4); default: auto." sep:"none" placeholder:"NAME"`
	Clients   []int    `help:"Callers at the same time, 1 to 1024 each (${default})." default:"1,4,8,16" placeholder:"N"`
	Requests  int      `help:"Requests of each caller, 1 to 1000 (${default})." default:"2" placeholder:"N"`
	MaxTokens int      `short:"n" help:"Generate at most N tokens (${default})." default:"128" placeholder:"N"`
	Rounds    int      `help:"Measurements of each, 1 to 100 (${default})." default:"3" placeholder:"N"`

	JSONSchema string `name:"json-schema" help:"File with a JSON schema: texts under it are compared with the same texts without it." placeholder:"FILE"`

	Temperature float32 `short:"t" help:"0 takes the most probable token; 0 to 100." default:"0" placeholder:"T"`
}

func (benchServeCmd) Help() string {
	return `Callers of one model generate at the same time, and the engine decodes them in shared passes. Prints the tokens per second
of all callers together, relative to one caller and to plain decoding. All texts are compared with those of one caller.
Every request computes its whole prompt.

With --json-schema, one caller's texts under a schema are compared with the same texts without it. Choose a schema that
allows texts of --max-tokens.

Examples:
    grove bench serve --pad 500M --clients 1,8
    grove-lab synth qwen3-0.6b random.gguf --type q8_0 && grove bench serve -m random.gguf --drafters plain --json
    grove bench serve -m model.gguf --suite mt_bench --chat --prompt-tokens 512 --drafters 'eagle3@budget={4,16,64}'
    grove bench serve --pad 500M --clients 1,4 --json-schema schema.json`
}

func (cmd *benchServeCmd) Run(p *command.Program) error {
	if err := cmp.Or(within("prompts", 1, 10_000, cmd.Prompts), within("prompt-tokens", 1, 1<<20, cmd.Length),
		within("requests", 1, 1000, cmd.Requests), within("max-tokens", 2, 1<<20, cmd.MaxTokens),
		within("rounds", 1, 100, cmd.Rounds), within("clients", 1, 1024, cmd.Clients...)); err != nil {
		return err
	}
	if cmd.Memory != "" {
		return command.Usagef("--memory (GROVE_MEMORY): callers would find their own texts of the rounds before: leave it out")
	}
	suite, err := openSuite(cmd.Suite, cmd.Data, cmd.Prompts)
	if err != nil {
		return err
	}
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	if len(cmd.Drafters) == 0 {
		cmd.Drafters = []string{registry.Auto}
	}
	methods, err := bench.ParseMethods(cmd.Drafters, bench.Method{})
	if err != nil {
		return command.Usagef("--drafters: %w", err)
	}
	for _, k := range methods {
		if k.Prefix != "" || k.Memory {
			return command.Usagef("--drafters %s: callers have no prefixes and no memory: leave @cached, @resumed and @memory out", k.Name)
		}
	}
	o := bench.ServeOptions{
		Model: m, ModelName: command.ModelName(m, cmd.Model), Methods: methods, Clients: cmd.Clients,
		Requests: cmd.Requests, Rounds: cmd.Rounds,
		Request: grove.Request{MaxTokens: cmd.MaxTokens, IgnoreEnd: true,
			Sampling: grove.Sampling{Temperature: cmd.Temperature, Seed: 1}},
	}
	if o.Prompts, err = tokenize(m, suite, cmd.Length, cmd.Chat); err != nil {
		return err
	}
	if cmd.JSONSchema != "" {
		schema, err := os.ReadFile(cmd.JSONSchema)
		if err != nil {
			return fmt.Errorf("--json-schema: %w", err)
		}
		o.Schema = string(schema)
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("measuring", false)
	o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	r, err := bench.Serve(ctx, o)
	bar.End()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(r)
	}
	fmt.Fprintf(p.Stdout, "%s, %d threads, %d tokens a request, medians of %d measurements\n%s\n\n", r.Model, r.Threads,
		r.Tokens, r.Rounds, r.Machine)
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "drafter\tcallers\ttokens/s\tover one\tover plain\tτ\tfirst token ms\tgap ms\tp99\tdifferent\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.2f\t%.2f\t%.2f\t%.0f\t%.1f\t%.1f\t%d\t\n", row.Drafter, row.Clients, row.PerSecond,
			row.OverOne, row.OverPlain, row.Tau, row.FirstMS, row.GapMS, row.GapP99MS, row.Different)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, l := range r.Loop {
		fmt.Fprintf(p.Stdout, "\none caller with %s: %.3f of the speed of the loop without the engine", l.Drafter, l.Ratio)
	}
	for _, m := range r.Masks {
		fmt.Fprintf(p.Stdout, "\nthe schema with %s: %.3f of the tokens/s and %.3f of the τ of the same texts without it", m.Drafter, m.Speed, m.Tau)
	}
	fmt.Fprintln(p.Stdout)
	return nil
}

// openSuite opens n prompts of a suite. Prompts of Go code come from the toolchain's own source.
func openSuite(name, data string, n int) (bench.Suite, error) {
	o := bench.SuiteOptions{Data: data, N: n}
	if kind, _, _ := strings.Cut(name, ":"); kind == "go" || kind == "edit" {
		o.GoRoot = command.FindGoRoot("")
	}
	return bench.OpenSuite(name, o)
}

// tokenize returns the first tokens of the suite's prompts: at most most of them, and at most half
// of the context. If templated is set, questions are laid out by the model's chat template.
func tokenize(m *grove.Model, suite bench.Suite, most int, templated bool) (prompts [][]int32, err error) {
	var layout *layouts.Layout
	if templated {
		if layout, err = m.Layout(); err != nil {
			return nil, err
		}
	}
	for _, prompt := range suite.Prompts {
		var tokens []int32
		if layout != nil && prompt.Question {
			tokens, err = bench.EncodeQuestion(layout, prompt.Text)
		} else {
			tokens, err = m.Tokenize(prompt.Text)
		}
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, tokens[:min(len(tokens), most, m.Context()/2)])
	}
	return prompts, nil
}
