package main

import (
	"fmt"

	"github.com/grovellm/grove/internal/bench/eval"
	"github.com/grovellm/grove/internal/command"
)

type evalCmd struct {
	Model  string `short:"m" hub:"" env:"GROVE_MODEL" help:"GGUF file, Hugging Face folder, or ORG/REPO; default: grove's small model." placeholder:"FILE"`
	Window int    `help:"Tokens of a window; 0 means 1024, or the model's context if that is less." default:"0" placeholder:"N"`
	Stride int    `help:"Tokens between the starts of windows; 0 means half a window." default:"0" placeholder:"N"`
	Limit  int64  `help:"Score about the first N tokens only; 0 means all." default:"0" placeholder:"N"`

	command.KVFlag
	command.TextFlags
}

func (evalCmd) Help() string {
	return `Prints bits per byte, perplexity per token, and the share of tokens that were the model's first choice. Windows
overlap, and every token is scored once, with a context of at least the window's length less the stride.

Examples:
    grove eval --text main.go
    grove eval -m FILE --text book.txt
    grove eval -m FILE --source 'gsm8k_test.jsonl,template={question}\n{answer}' --json
    grove eval -m FILE --text big.txt --limit 50000 --window 512`
}

func (cmd *evalCmd) Run(p *command.Program) error {
	docs, err := cmd.Documents(p)
	if err != nil {
		return err
	}
	m, err := p.OpenBare(cmd.Model, cmd.KVFlag)
	if err != nil {
		return err
	}
	defer m.Close()
	o := eval.Options{Context: cmd.Window, Stride: cmd.Stride, Limit: cmd.Limit}
	if err := o.Fill(m); err != nil {
		return command.Usagef("--%v", err)
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("scoring", false)
	o.Progress = bar.Set
	r, err := eval.Run(ctx, m, docs, o)
	bar.End()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(r)
	}
	fmt.Fprintf(p.Stdout, "bits per byte   %.4f\nperplexity      %.3f a token\nfirst choice    %.1f%% of tokens\nscored          %d tokens, %d bytes, %d documents, windows of %d every %d\n",
		r.BitsPerByte, r.Perplexity, 100*r.Top1, r.Tokens, r.Bytes, r.Documents, r.Context, r.Stride)
	return nil
}
