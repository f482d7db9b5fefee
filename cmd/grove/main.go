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
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/cpu"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := &program{base: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	code := p.main(os.Args[1:])
	stop()
	os.Exit(code)
}

// cli is the command line.
type cli struct {
	Threads int    `help:"Worker threads; 0 for one on each processor." default:"0" placeholder:"N"`
	CPU     string `name:"cpu" help:"Highest kernel level to use: ${levels}; also GROVE_CPU. Results are the same at each." placeholder:"LEVEL"`
	JSON    bool   `name:"json" help:"Print JSON, for programs to read."`
	Color   string `help:"Colour text that was drafted: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto" placeholder:"WHEN"`
	Verbose bool   `short:"v" help:"Say more on standard error."`

	Run      runCmd      `cmd:"" help:"Continue a prompt."`
	Chat     chatCmd     `cmd:"" help:"Talk with a model."`
	Demo     demoCmd     `cmd:"" help:"Show tree speculation at work."`
	Inspect  inspectCmd  `cmd:"" help:"Show what is in a model file or folder."`
	Synth    synthCmd    `cmd:"" help:"Write a seeded random model of a named shape."`
	Adapt    adaptCmd    `cmd:"" help:"Show, export or forget what a drafter learned while it served."`
	Train    trainCmd    `cmd:"" help:"Train the project's own models."`
	Eval     evalCmd     `cmd:"" help:"Measure how well a model predicts text."`
	Convert  convertCmd  `cmd:"" help:"Convert between Hugging Face folders and GGUF files."`
	Quantize quantizeCmd `cmd:"" help:"Write a GGUF file again with smaller weights."`
	Pad      padCmd      `cmd:"" help:"Write a GGUF file that costs as much to run as a larger model."`
	Ranks    ranksCmd    `cmd:"" help:"Rank a model's tokens by frequency, for drafters' shortlists."`
	Check    checkCmd    `cmd:"" help:"Check grove's laws on generated cases."`
	Bench    benchCmd    `cmd:"" help:"Measure this machine."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

const description = `Language models with tree speculation: many tokens a pass, the same tokens as one by one.

Start with:
  grove demo
  grove run --show tree --pad 500M -n 40 "func main() {"
  grove run --model FILE --draft-model SMALL --stats "Once upon a time"
  grove chat --model FILE

FILE is a GGUF file or a Hugging Face folder of architecture llama, qwen2, qwen3 or gptneox. Without
one, grove runs a small model of its own that is in the program.`

// program is one run of the command: where it reads and writes, and the global flags.
type program struct {
	base   context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	*cli
}

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// usageError is a mistake in the command line that only the command itself can see.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFailed ends the command with status 1 when it has said why already.
var errFailed = errors.New("failed")

// main parses args, runs the command and returns the exit status.
func (p *program) main(args []string) int {
	p.cli = new(cli)
	// Help ends parsing from within; kong offers no other way out than its Exit hook.
	type ended int
	parser, err := kong.New(p.cli,
		kong.Name("grove"),
		kong.Description(description),
		kong.Vars{"drafters": drafterNames(), "levels": cpu.Names(), "budget": fmt.Sprint(grove.DefaultBudget)},
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { panic(ended(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100, NoExpandSubcommands: true, NoAppDescFormat: true}),
	)
	if err != nil {
		panic(err) // the grammar itself is wrong
	}
	code := exitOK
	kctx, err := func() (k *kong.Context, err error) {
		defer func() {
			switch r := recover().(type) {
			case nil:
			case ended:
				k, code = nil, int(r)
			default:
				panic(r)
			}
		}()
		if len(args) == 0 {
			args = []string{"--help"}
		}
		return parser.Parse(args)
	}()
	var parseErr *kong.ParseError
	switch {
	case errors.As(err, &parseErr):
		return p.report(parseErr.Context, usageError{parseErr.Unwrap()})
	case err != nil:
		return p.report(nil, usageError{err})
	case kctx == nil:
		return code
	}
	if err := p.globals(); err != nil {
		return p.report(kctx, err)
	}
	return p.report(kctx, kctx.Run(p))
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

// report prints the error, if any, and returns the exit status.
func (p *program) report(k *kong.Context, err error) int {
	name := "grove"
	if k != nil && k.Selected() != nil {
		name = k.Selected().FullPath()
	}
	var usage usageError
	var option *grove.OptionError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFailed):
		return exitFailure
	case errors.As(err, &usage), errors.As(err, &option):
		fmt.Fprintf(p.stderr, "%s: %v\nRun \"%s --help\" for what it takes and examples.\n", name, err, name)
		return exitUsage
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(p.stderr, "%s: interrupted\n", name)
		return exitInterrupted
	}
	fmt.Fprintf(p.stderr, "%s: %v\n", name, err)
	return exitFailure
}

// context returns a context that the first Ctrl-C ends; the second one kills the program.
func (p *program) context() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(p.base, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// logf says something on standard error when asked to say more.
func (p *program) logf(format string, args ...any) {
	if p.Verbose {
		fmt.Fprintf(p.stderr, "grove: "+format+"\n", args...)
	}
}
