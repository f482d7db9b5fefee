package main

import (
	"fmt"

	"github.com/grovellm/grove/internal/bench/eval"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/models"
)

type evalCmd struct {
	Model  string `short:"m" hub:"" env:"GROVE_MODEL" help:"GGUF file or Hugging Face folder; default: grove's small model." placeholder:"FILE"`
	Window int    `help:"Tokens of a window; 0 means 1024, or the model's context if that is less." default:"0" placeholder:"N"`
	Stride int    `help:"Tokens between the starts of windows; 0 means half a window." default:"0" placeholder:"N"`
	Limit  int64  `help:"Score about the first N tokens only; 0 means all." default:"0" placeholder:"N"`

	kvFlag
	textFlags
}

func (evalCmd) Help() string {
	return `Prints bits per byte, perplexity per token, and the share of tokens that were the model's first choice. Windows
overlap, and every token is scored once, with at least a window less a stride of context.

Examples:
    grove eval --text main.go
    grove eval -m FILE --text book.txt
    grove eval -m FILE --source 'gsm8k_test.jsonl,template={question}\n{answer}' --json
    grove eval -m FILE --text big.txt --limit 50000 --window 512`
}

func (cmd *evalCmd) Run(p *program) error {
	docs, err := cmd.documents(p)
	if err != nil {
		return err
	}
	m, err := p.openBare(cmd.Model, cmd.kvFlag)
	if err != nil {
		return err
	}
	defer m.Close()
	ctx, stop := p.context()
	defer stop()
	bar := p.progress("scoring", false)
	r, err := eval.Run(ctx, m, docs, eval.Options{Context: cmd.Window, Stride: cmd.Stride, Limit: cmd.Limit, Progress: bar.set})
	bar.end()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.printJSON(r)
	}
	fmt.Fprintf(p.stdout, "bits per byte   %.4f\nperplexity      %.3f a token\nfirst choice    %.1f%% of tokens\nscored          %d tokens, %d bytes, %d documents, windows of %d every %d\n",
		r.BitsPerByte, r.Perplexity, 100*r.Top1, r.Tokens, r.Bytes, r.Documents, r.Context, r.Stride)
	return nil
}

// openBare opens a model to compute with, without drafters: that at path, or grove's own where there is none.
func (p *program) openBare(path string, kv kvFlag) (m *model.Model, err error) {
	t, err := kv.parse()
	if err != nil {
		return nil, err
	}
	bar := p.progress("loading", true)
	o := model.Options{Threads: p.Threads, KV: t, Progress: bar.set}
	if path == "" {
		m, err = model.OpenGGUF(embedded, models.Target(), o)
	} else {
		m, err = model.Open(path, o)
	}
	bar.end()
	return m, err
}
