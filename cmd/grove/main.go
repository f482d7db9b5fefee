// Command grove runs language models with tree speculation: it drafts trees of tokens, verifies
// a whole tree in one pass of the model and keeps the longest branch the model agrees with.
//
// Exit status: 0 done, 1 failed or a check found a mismatch, 2 wrong usage, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/kernels/cpu"
)

func main() {
	p := &program{base: context.Background(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.main(os.Args[1:]))
}

// cli is the command line.
type cli struct {
	Threads int         `help:"Worker threads (0 to 1024); 0 means one for each processor." default:"0" placeholder:"N"`
	CPU     string      `name:"cpu" help:"Use kernels up to this level, such as avx2 (see grove version; also $GROVE_CPU)." placeholder:"LEVEL"`
	JSON    bool        `name:"json" help:"Print JSON."`
	Color   string      `help:"Colour text: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto" placeholder:"WHEN"`
	Verbose bool        `short:"v" help:"Print more on standard error."`
	Release versionFlag `name:"version" help:"Print the version."`

	Run      runCmd      `cmd:"" group:"generate" help:"Continue a prompt."`
	Chat     chatCmd     `cmd:"" group:"generate" help:"Talk with a model."`
	Serve    serveCmd    `cmd:"" group:"generate" help:"Serve the HTTP APIs of OpenAI, Anthropic and Ollama."`
	Demo     demoCmd     `cmd:"" group:"generate" help:"Show plain decoding and tree speculation side by side."`
	Drafters draftersCmd `cmd:"" group:"generate" help:"List the drafters, or explain one."`
	Adapt    adaptCmd    `cmd:"" group:"generate" help:"Show, export or delete what a draft head learned from generated text."`

	Pull     pullCmd     `cmd:"" group:"models" help:"Fetch a model from the Hugging Face hub."`
	List     listCmd     `cmd:"" group:"models" help:"List the models that were fetched."`
	Rm       rmCmd       `cmd:"" group:"models" help:"Remove a model that was fetched."`
	Inspect  inspectCmd  `cmd:"" group:"models" help:"Show what is in a model file or folder."`
	Tokenize tokenizeCmd `cmd:"" group:"models" help:"Show the tokens of a text, or the text of tokens."`
	Convert  convertCmd  `cmd:"" group:"models" help:"Convert between Hugging Face folders and GGUF files."`
	Export   exportCmd   `cmd:"" group:"models" help:"Write a draft head for another engine."`
	Quantize quantizeCmd `cmd:"" group:"models" help:"Write a GGUF file with smaller weights."`
	Pad      padCmd      `cmd:"" group:"models" help:"Write a GGUF file that costs as much to run as a larger model."`
	Synth    synthCmd    `cmd:"" group:"models" help:"Write a model of random weights."`
	Ranks    ranksCmd    `cmd:"" group:"models" help:"Rank a model's tokens by frequency, for drafters' shortlists."`

	Check  checkCmd  `cmd:"" group:"measure" help:"Search for cases in which speculation changes the text."`
	Bench  benchCmd  `cmd:"" group:"measure" help:"Measure speed and memory."`
	Report reportCmd `cmd:"" group:"measure" help:"Run the papers' experiments on a model, and write a page about them."`
	Eval   evalCmd   `cmd:"" group:"measure" help:"Measure how well a model predicts text."`
	Train  trainCmd  `cmd:"" group:"measure" help:"Train the models that are part of grove."`

	Help       helpCmd       `cmd:"" group:"help" help:"Explain grove, or a command."`
	Version    versionCmd    `cmd:"" group:"help" help:"Print the version."`
	Completion completionCmd `cmd:"" group:"help" help:"Print a script that completes commands in a shell."`
	Complete   completeCmd   `cmd:"" hidden:"" name:"__complete"`
}

// groups are the titles of commands and flags in help.
var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "generate", Title: "Generate text"},
	{Key: "models", Title: "Work with models"},
	{Key: "measure", Title: "Measure, check and train"},
	{Key: "help", Title: "Help"},
})

const description = `Language models with tree speculation: several tokens a pass, and the same text.

grove drafts a tree of tokens, the model verifies the whole tree in one pass, and the longest path that the
model agrees with is kept.

Start with:
    grove demo
    grove run "func main() {"
    grove chat
    grove serve
    grove run -m FILE --draft-model SMALL --stats "Once upon a time"

FILE is a GGUF file or a Hugging Face folder: Llama, Mistral, Mixtral, Qwen, SmolLM3, Granite, OLMo, Phi, Gemma,
gpt-oss, StableLM or GPT-NeoX (docs/models.md); or the name of a model that grove pull fetched, such as ORG/REPO.
Without -m, grove runs the small model that is part of it.

grove COMMAND --help explains a command. The exit status is 0 for done, 1 for failed or a mismatch found, 2 for
wrong usage and 130 for interrupted.`

// program is one run of the command: where it reads and writes, and the global flags.
type program struct {
	base   context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	*cli
}

// main parses args, runs the command and returns the exit status.
func (p *program) main(args []string) int {
	k, err := p.parse(args)
	if err == nil && k != nil && p.wantsChat(k) {
		at := slices.Index(args, "run")
		k, err = p.parse(slices.Concat(args[:at], []string{"chat"}, args[at+1:]))
	}
	switch {
	case err != nil:
		var parseErr *kong.ParseError
		if errors.As(err, &parseErr) {
			k = parseErr.Context
		}
		return p.report(k, usageError{err})
	case k == nil: // help or the version was asked for
		return exitOK
	}
	if err := p.globals(); err != nil {
		return p.report(k, err)
	}
	if err := findCached(k); err != nil {
		return p.report(k, err)
	}
	return p.report(k, k.Run())
}

// wantsChat says that grove run was typed on a terminal, without a prompt.
func (p *program) wantsChat(k *kong.Context) bool {
	return k.Command() == "run" && len(p.Run.File) == 0 && isTerminal(p.stdin) && isTerminal(p.stdout) && !p.JSON
}

// parse reads the command line. The context is nil where help or the version was asked for, and printed.
func (p *program) parse(args []string) (k *kong.Context, err error) {
	p.cli = new(cli)
	// Help ends parsing from within: kong offers no other way out than its Exit hook.
	type ended int
	parser, err := kong.New(p.cli,
		kong.Name("grove"),
		kong.Description(description),
		kong.Vars{"budget": fmt.Sprint(grove.DefaultBudget), "experiments": experimentNames()},
		kong.Writers(p.stdout, p.stderr),
		kong.Bind(p),
		kong.Exit(func(code int) { panic(ended(code)) }),
		kong.Help(func(_ kong.HelpOptions, k *kong.Context) error {
			return printHelp(p.stdout, pageOf(k.Model, k.Selected()))
		}),
		kong.WithHyphenPrefixedParameters(true), // -t -0.5 is a temperature, out of range
		groups,
	)
	if err != nil {
		panic(err) // the grammar itself is wrong
	}
	parser.Model.HelpFlag.Help = "Explain the command."
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(ended); !ok {
				panic(r)
			}
			k, err = nil, nil
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	return parser.Parse(modelArgument(parser, args))
}

// versionFlag is grove --version, wherever it stands.
type versionFlag bool

// BeforeReset prints the version in place of parsing on. Other flags are not set yet.
func (versionFlag) BeforeReset(k *kong.Kong, ctx *kong.Context, p *program) error {
	for _, part := range ctx.Path {
		if part.Flag != nil && part.Flag.Name == "json" {
			p.JSON, _ = ctx.FlagValue(part.Flag).(bool)
		}
	}
	err := versionCmd{}.Run(p)
	k.Exit(exitOK)
	return err
}

// globals checks and applies the global flags.
func (p *program) globals() error {
	if p.Threads < 0 || p.Threads > 1024 {
		return usagef("--threads %d: want 0 (one on each processor) to 1024", p.Threads)
	}
	if p.CPU != "" {
		level, err := cpu.Parse(p.CPU)
		if err != nil {
			return usagef("--cpu: %w", err)
		}
		if !cpu.Has(level) {
			return usagef("--cpu %v: this processor does not have that; its best is %v", level, cpu.Best())
		}
		cpu.Use(level)
	}
	return nil
}

// context returns a context that the first Ctrl-C or SIGTERM ends; the second one kills the
// program. A command that has not asked for a context is killed by the first.
func (p *program) context() (context.Context, context.CancelFunc) {
	return endedBy(p.base, os.Interrupt, syscall.SIGTERM)
}

// endedBy returns a context that the first of some signals ends; the second one kills the program.
func endedBy(base context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(base, signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// logf says something on standard error when asked to say more.
func (p *program) logf(format string, args ...any) {
	if p.Verbose {
		fmt.Fprintf(p.stderr, "grove: "+format+"\n", args...)
	}
}
