package main

import (
	"fmt"
	"os"

	"github.com/grovellm/grove/eval"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/train/data"
)

type evalCmd struct {
	Model  string   `short:"m" env:"GROVE_MODEL" help:"A GGUF file or a Hugging Face folder; without one, grove's own small model." placeholder:"FILE"`
	Text   []string `help:"Text file, byte for byte; may be given several times." type:"path" placeholder:"FILE" sep:"none"`
	Source []string `help:"Source as for training: FILE.jsonl,template={field}, a folder, FILE,kind=go; may be given several times." placeholder:"SPEC" sep:"none"`
	Window int      `help:"Tokens of a window; 0 for 1024, or the model's context where that is less." default:"0" placeholder:"N"`
	Stride int      `help:"Tokens by which windows move on; 0 for half a window." default:"0" placeholder:"N"`
	Limit  int64    `help:"Score about so many tokens, from the start; 0 for all." default:"0" placeholder:"N"`
}

func (evalCmd) Help() string {
	return `Measures how well a model predicts text: bits per byte, perplexity per token, and the share of
tokens that were its first choice. Every token is scored once, in windows that overlap, so that
each but the first few has at least a window less a stride of context.

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
	bar := p.progress("loading", true)
	o := model.Options{Threads: p.Threads, Progress: bar.set}
	var m *model.Model
	if cmd.Model == "" {
		m, err = model.OpenGGUF(embedded, models.Target(), o)
	} else {
		m, err = model.Open(cmd.Model, o)
	}
	bar.end()
	if err != nil {
		return err
	}
	defer m.Close()
	ctx, stop := p.context()
	defer stop()
	bar = p.progress("scoring", false)
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

// documents reads every text and source.
func (cmd *evalCmd) documents(p *program) ([]data.Document, error) {
	var sources []data.Source
	for _, path := range cmd.Text {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		sources = append(sources, data.Source{Name: path, Kind: data.Text, Path: path, Raw: true})
	}
	for _, spec := range cmd.Source {
		s, err := data.ParseSource(spec)
		if err != nil {
			return nil, usagef("--source: %v", err)
		}
		sources = append(sources, s)
	}
	if len(sources) == 0 {
		return nil, usagef("which text? Name a file with --text or a source with --source")
	}
	var docs []data.Document
	for _, s := range sources {
		d, report, err := s.Documents()
		if err != nil {
			return nil, err
		}
		p.logf("%s: %v", s.Name, report)
		docs = append(docs, d...)
	}
	return docs, nil
}
