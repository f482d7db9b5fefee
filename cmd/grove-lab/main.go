// Command grove-lab is for those who work on grove or study speculation: the papers' experiments, checks of the laws,
// random and padded models, the training of grove's own models, and the tables of docs/benchmarks.
//
// Exit status: 0 done, 1 failed or a check found a mismatch, 2 wrong usage, 130 interrupted.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove/internal/command"
)

//go:generate go run . help --write ../../docs
//go:generate go run . picture ../../docs/tree.svg

func main() {
	os.Exit(command.NewProgram(&lab, context.Background(), os.Stdin, os.Stdout, os.Stderr).Main(os.Args[1:]))
}

// labCommands is the command line.
type labCommands struct {
	command.Globals

	Check   checkCmd    `cmd:"" group:"measure" help:"Search for cases in which speculation changes the text."`
	Report  reportCmd   `cmd:"" group:"measure" help:"Run the papers' experiments on a model, and write a page about them."`
	Tables  tablesCmd   `cmd:"" group:"measure" help:"Measure all tables of docs/benchmarks again."`
	Picture pictureCmd  `cmd:"" group:"measure" help:"Draw tree speculation as an SVG."`
	Train   trainOwnCmd `cmd:"" group:"models" help:"Train the models that are part of grove."`
	Pad     padCmd      `cmd:"" group:"models" help:"Write a GGUF file that costs as much to run as a larger model."`
	Synth   synthCmd    `cmd:"" group:"models" help:"Write a model of random weights."`

	Help       command.HelpCmd       `cmd:"" group:"help" help:"Show help for grove-lab or a command."`
	Version    command.VersionCmd    `cmd:"" group:"help" help:"Print the version."`
	Completion command.CompletionCmd `cmd:"" group:"help" help:"Print a shell completion script."`
	Complete   command.CompleteCmd   `cmd:"" hidden:"" name:"__complete"`
}

// lab is the program.
var lab = command.App{Name: "grove-lab", Description: labDescription, Page: "lab.md",
	Vars: kong.Vars{"experiments": experimentNames()}, Commands: func() command.CommandLine {
		c := new(labCommands)
		return command.CommandLine{Grammar: c, Globals: &c.Globals}
	}}

const labDescription = `The laboratory of grove: experiments, checks and grove's own models.

For those who work on grove or compare drafters. What users run is the command grove.

Start with:
    grove-lab check tokens
    grove-lab report --quick
    grove-lab synth --list`
