// Command grove runs language models with tree speculation: it drafts trees of tokens, verifies a
// whole tree in one pass of the model and keeps the longest branch that the model agrees with.
//
// Exit status: 0 done, 1 failed or a check found a mismatch, 2 wrong usage, 130 interrupted.
package main

import (
	"context"
	"os"

	"github.com/grovellm/grove/internal/command"
)

//go:generate go run . help --write ../../docs

func main() {
	os.Exit(command.NewProgram(&product, context.Background(), os.Stdin, os.Stdout, os.Stderr).Main(os.Args[1:]))
}

// cli is the command line.
type cli struct {
	command.Globals

	Run      runCmd      `cmd:"" group:"generate" help:"Continue a prompt."`
	Chat     chatCmd     `cmd:"" group:"generate" help:"Chat with a model."`
	Serve    serveCmd    `cmd:"" group:"generate" help:"Serve the HTTP APIs of OpenAI, Anthropic and Ollama."`
	Demo     demoCmd     `cmd:"" group:"generate" help:"Show plain decoding and tree speculation side by side."`
	Drafters draftersCmd `cmd:"" group:"generate" help:"List the drafters, or explain one."`
	Adapt    adaptCmd    `cmd:"" group:"generate" help:"Show, export or delete what a draft head learned from generated text."`

	Pull     pullCmd     `cmd:"" group:"models" help:"Fetch a model from the Hugging Face hub."`
	List     listCmd     `cmd:"" group:"models" help:"List fetched models."`
	Rm       rmCmd       `cmd:"" group:"models" help:"Remove a fetched model."`
	Inspect  inspectCmd  `cmd:"" group:"models" help:"Show the contents of a model file or folder."`
	Tokenize tokenizeCmd `cmd:"" group:"models" help:"Convert text to tokens, or tokens to text."`
	Convert  convertCmd  `cmd:"" group:"models" help:"Convert between Hugging Face folders and GGUF files."`
	Export   exportCmd   `cmd:"" group:"models" help:"Write a draft head for another engine."`
	Quantize quantizeCmd `cmd:"" group:"models" help:"Write a GGUF file with smaller weights."`
	Ranks    ranksCmd    `cmd:"" group:"models" help:"Rank a model's tokens by frequency, for drafters' shortlists."`

	Bench benchCmd `cmd:"" group:"measure" help:"Measure speed and memory."`
	Eval  evalCmd  `cmd:"" group:"measure" help:"Measure how well a model predicts text."`
	Train trainCmd `cmd:"" group:"measure" help:"Train draft heads for a model."`

	Help       command.HelpCmd       `cmd:"" group:"help" help:"Show help for grove or a command."`
	Version    command.VersionCmd    `cmd:"" group:"help" help:"Print the version."`
	Completion command.CompletionCmd `cmd:"" group:"help" help:"Print a shell completion script."`
	Complete   command.CompleteCmd   `cmd:"" hidden:"" name:"__complete"`
}

// product is the program.
var product = command.App{Name: "grove", Description: description, Page: "cli.md", Commands: func() command.CommandLine {
	c := new(cli)
	return command.CommandLine{Grammar: c, Globals: &c.Globals, Instead: func(p *command.Program, typed string) string {
		if typed == "run" && len(c.Run.File) == 0 && command.IsTerminal(p.Stdin) && command.IsTerminal(p.Stdout) && !p.JSON {
			return "chat" // grove run, typed on a terminal without a prompt
		}
		return ""
	}}
}}

const description = `Run language models with tree speculation: several tokens per pass, and the same text.

grove drafts a tree of tokens, the model verifies the whole tree in one pass, and the longest path that the
model agrees with is kept.

Start with:
    grove demo
    grove run "func main() {"
    grove chat
    grove serve
    grove run -m FILE --draft-model SMALL --stats "Once upon a time"

FILE is a GGUF file or a Hugging Face folder: Llama, Mistral, Mixtral, Qwen, SmolLM3, Granite, OLMo, Phi, Gemma,
gpt-oss, StableLM, GPT-NeoX and others (docs/models.md); or the name of a model that grove pull fetched, such as
ORG/REPO. Without -m, grove runs its small embedded model. A file grove.json in a folder of models names the drafters
of each (docs/pull.md); there is no other configuration file.`
