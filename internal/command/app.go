// The parts of their command lines that grove's programs share: global flags, parsing, help and exit statuses.

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/speculate"
)

// App is a program: its name, its commands, and the page that lists them.
type App struct {
	Name        string
	Description string
	Page        string // under docs, with all commands
	Vars        kong.Vars

	// Commands makes the commands of one run.
	Commands func() CommandLine
}

// CommandLine is the value that a command line is parsed into.
type CommandLine struct {
	Grammar any      // kong's
	Globals *Globals // the part of it that all commands share

	// Instead names the command to run instead of the one that was typed. It may be nil, or return "" for none.
	Instead func(p *Program, typed string) string
}

// Globals are the flags of all commands.
type Globals struct {
	Threads int         `help:"Worker threads (0 to 1024); 0 means one per processor." default:"0" placeholder:"N"`
	CPU     string      `name:"cpu" help:"Use kernels up to this level, such as avx2 (see ${name} version; also $$GROVE_CPU)." placeholder:"LEVEL"`
	JSON    bool        `name:"json" help:"Print JSON."`
	Color   string      `help:"Colour text: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto" placeholder:"WHEN"`
	Verbose bool        `short:"v" help:"Print more detail on standard error."`
	Release versionFlag `name:"version" help:"Print the version."`
}

// groups are the titles of groups of commands and flags in help.
var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "generate", Title: "Generate text"},
	{Key: "models", Title: "Work with models"},
	{Key: "measure", Title: "Measure, check and train"},
	{Key: "help", Title: "Help"},
})

// Program is one run of a command: its input and output, and the global flags.
type Program struct {
	*App
	Base   context.Context
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	*Globals
}

// NewProgram returns a program that reads and writes the given files.
func NewProgram(a *App, base context.Context, stdin io.Reader, stdout, stderr io.Writer) *Program {
	return &Program{App: a, Base: base, Stdin: stdin, Stdout: &output{to: stdout}, Stderr: stderr, Globals: new(Globals)}
}

// output is standard output. It remembers a failed write, so that commands need not check for one.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(b []byte) (n int, err error) {
	n, err = o.to.Write(b)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// Main parses args, runs the command and returns the exit status.
func (p *Program) Main(args []string) int {
	for _, w := range []any{p.Stdout, p.Stderr} {
		if f, ok := fileOf(w); ok {
			obeyEscapes(f)
		}
	}
	k, c, err := p.Parse(args)
	if err == nil && k != nil && c.Instead != nil {
		if other := c.Instead(p, k.Command()); other != "" {
			at := slices.Index(args, k.Selected().Name)
			globals := p.Globals
			instead, _, err := p.Parse(slices.Concat(args[:at], []string{other}, args[at+1:]))
			if err == nil { // the other command defines the flags
				k = instead
			} else {
				p.Globals = globals
			}
		}
	}
	switch lost := p.lostOutput(); {
	case lost != nil: // of help, or the version
		return p.report(nil, lost)
	case err != nil:
		var parseErr *kong.ParseError
		if errors.As(err, &parseErr) {
			k = parseErr.Context
		}
		return p.report(k, UsageError{nameFlag(k, args, err)})
	case k == nil: // help or the version was asked for
		return ExitOK
	}
	if err := p.applyGlobals(); err != nil {
		return p.report(k, err)
	}
	if err := findCached(k); err != nil {
		return p.report(k, err)
	}
	err = k.Run()
	return p.report(k, cmp.Or(err, p.lostOutput()))
}

// lostOutput returns the first error of writing to standard output.
func (p *Program) lostOutput() error {
	if out, ok := p.Stdout.(*output); ok && out.err != nil {
		return fmt.Errorf("standard output: %w", out.err)
	}
	return nil
}

// Parse reads the command line. The context is nil if help or the version was asked for, and has been printed.
func (p *Program) Parse(args []string) (k *kong.Context, c CommandLine, err error) {
	c = p.Commands()
	p.Globals = c.Globals
	// Help ends parsing from within: kong's only way out is its Exit hook.
	type ended int
	grammar, named := c.named(args)
	parser, err := kong.New(grammar,
		named,
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Vars{"name": p.Name, "budget": fmt.Sprint(speculate.DefaultBudget)},
		p.Vars,
		kong.Writers(p.Stdout, p.Stderr),
		kong.Bind(p),
		kong.Exit(func(code int) { panic(ended(code)) }),
		kong.Help(func(_ kong.HelpOptions, k *kong.Context) error {
			return printHelp(p.Stdout, pageOf(k.Model, k.Selected()))
		}),
		kong.WithHyphenPrefixedParameters(true), // so that -t -0.5 is a temperature, out of range
		groups,
	)
	if err != nil {
		panic(err) // the grammar itself is wrong
	}
	parser.Model.HelpFlag.Help = "Show help for the command."
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
	for _, arg := range args { // kong would replace such bytes
		if err := checkText(fmt.Sprintf("the argument %q", arg), arg); err != nil {
			return nil, c, err
		}
	}
	k, err = parser.Parse(modelArgument(parser, args))
	return k, c, err
}

// named returns the grammar of the command that a command line begins with, in addition to the
// global flags, and an option that adds it: reading the tags of all commands takes longer than most
// of them run. Commands of the group help, which describe others, get all of them.
func (c CommandLine) named(args []string) (any, kong.Option) {
	v := reflect.ValueOf(c.Grammar).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag := f.Tag
		if _, ok := tag.Lookup("cmd"); ok && tag.Get("group") != "help" && len(args) > 0 && args[0] == strings.ToLower(f.Name) {
			return c.Globals, kong.DynamicCommand(args[0], tag.Get("help"), tag.Get("group"), v.Field(i).Addr().Interface())
		}
	}
	return c.Grammar, kong.Groups{}
}

// versionFlag is --version, in any position.
type versionFlag bool

// BeforeReset prints the version and ends parsing. Other flags are not set yet.
func (versionFlag) BeforeReset(k *kong.Kong, ctx *kong.Context, p *Program) error {
	for _, part := range ctx.Path {
		if part.Flag != nil && part.Flag.Name == "json" {
			p.JSON, _ = ctx.FlagValue(part.Flag).(bool)
		}
	}
	err := VersionCmd{}.Run(p)
	k.Exit(ExitOK)
	return err
}

// applyGlobals checks and applies the global flags.
func (p *Program) applyGlobals() error {
	if p.Threads < 0 || p.Threads > 1024 {
		return Usagef("--threads %d: want 0 (one on each processor) to 1024", p.Threads)
	}
	if p.CPU != "" {
		level, err := cpu.Parse(p.CPU)
		if err != nil {
			return Usagef("--cpu: %w", err)
		}
		if !cpu.Has(level) {
			return Usagef("--cpu %v: this processor does not have that; its best is %v", level, cpu.Best())
		}
		cpu.Use(level)
	}
	return nil
}

// Context returns a context that the first Ctrl-C or SIGTERM ends; the second one kills the
// program. If a command has not asked for a context, the first kills it.
func (p *Program) Context() (context.Context, context.CancelFunc) {
	return EndedBy(p.Base, os.Interrupt, syscall.SIGTERM)
}

// EndedBy returns a context that the first of some signals ends; the second one kills the program.
// Closing the terminal (SIGHUP) ends it as well, except under nohup; a second SIGHUP does not kill.
func EndedBy(base context.Context, signals ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(base, signals...)
	context.AfterFunc(ctx, stop)
	if slices.Contains(signals, os.Signal(syscall.SIGTERM)) && !signal.Ignored(syscall.SIGHUP) {
		closed := make(chan os.Signal, 1)
		signal.Notify(closed, syscall.SIGHUP)
		go func() {
			select {
			case <-closed:
				stop()
			case <-ctx.Done():
				signal.Stop(closed)
			}
		}()
	}
	return ctx, stop
}

// Logf prints a message on standard error if the user asked for more output.
func (p *Program) Logf(format string, args ...any) {
	if p.Verbose {
		fmt.Fprintf(p.Stderr, p.Name+": "+format+"\n", args...)
	}
}
