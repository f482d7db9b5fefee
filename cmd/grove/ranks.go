package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/sample"
)

type ranksCmd struct {
	Out      string  `arg:"" help:"GGUF file to write."`
	Model    string  `short:"m" hub:"" env:"GROVE_MODEL" help:"The model whose tokens to rank; default: grove's small model." placeholder:"FILE"`
	Generate int     `short:"n" help:"Count N tokens that the model generates after beginnings of the texts, not the texts." placeholder:"N"`
	Prompt   int     `help:"With --generate: tokens of a beginning (${default})." default:"64" placeholder:"N"`
	Temp     float32 `short:"t" name:"temperature" help:"With --generate: temperature (${default})." default:"1" placeholder:"T"`
	Force    bool    `short:"f" help:"Replace an existing file."`

	command.TextFlags
}

func (ranksCmd) Help() string {
	return `Counts how often each token occurs in text, or in text that the model generates, and writes the tokens in that
order. Drafters can then compute drafts for the most frequent tokens only: +freq, +freq-pa or +context with
ranks=FILE. The model still verifies over all tokens, so the text stays the same.

Examples:
    grove ranks go.gguf --source /usr/local/go/src,kind=go
    grove ranks generated.gguf --text book.txt --generate 100000
    grove run -d best-first+freq:size=4096,ranks=go.gguf --stats "func main() {"`
}

func (cmd *ranksCmd) Run(p *command.Program) error {
	if cmd.Generate < 0 || cmd.Prompt < 1 {
		return command.Usagef("--generate %d after %d tokens: want 0 or more, after 1 or more", cmd.Generate, cmd.Prompt)
	}
	if err := command.NewFile(cmd.Out, cmd.Force); err != nil {
		return err
	}
	docs, err := cmd.Documents(p)
	if err != nil {
		return err
	}
	m, err := p.OpenBare(cmd.Model, command.KVFlag{})
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Tokenizer == nil {
		return fmt.Errorf("%s has no tokenizer, whose tokens would be ranked: give a model with one", cmd.Model)
	}
	ctx, stop := p.Context()
	defer stop()
	set, err := data.FromDocuments(ctx, "text", docs, m.Tokenizer, data.LoadOptions{Threads: p.Threads})
	if err != nil {
		return err
	}
	source := fmt.Sprintf("%d tokens of text", set.Len())
	tokens := make([]int32, set.Len())
	if cmd.Generate > 0 {
		source = fmt.Sprintf("%d tokens generated at temperature %g", cmd.Generate, cmd.Temp)
		bar := p.Progress("generating", false)
		tokens, err = cmd.generate(ctx, m, set, bar)
		bar.End()
	} else {
		set.Read(tokens, 0)
	}
	if err != nil {
		return err
	}
	r := shortlist.Count(m.Config.Vocab, m.Tokenizer, source, tokens)
	if err := r.WriteFile(cmd.Out); err != nil {
		return err
	}
	slices.Sort(tokens)
	total, different := len(tokens), len(slices.Compact(tokens))
	if p.JSON {
		return p.PrintJSON(struct {
			Counted   int `json:"counted"`
			Different int `json:"different"`
			Vocab     int `json:"vocab"`
			Kept      int `json:"kept"`
		}{total, different, m.Config.Vocab, r.Kept})
	}
	fmt.Fprintf(p.Stdout, "%s: %d tokens ranked, %d of them special\n%s, %d different\n", cmd.Out, len(r.Order),
		r.Kept, source, different)
	return nil
}

// generate returns tokens that the model generates after the beginnings of the set's rows, in batches.
func (cmd *ranksCmd) generate(ctx context.Context, m *model.Model, set *data.Set, bar *command.Progress) ([]int32, error) {
	const batch, length = 16, 256
	l, err := speculate.New(speculate.Model(m), nil, speculate.Options{})
	if err != nil {
		return nil, err
	}
	n := min(length, m.Context()-cmd.Prompt)
	if n < 1 || set.Len() < cmd.Prompt {
		return nil, command.Usagef("--prompt %d: the model's context is %d tokens, and the texts have %d", cmd.Prompt,
			m.Context(), set.Len())
	}
	var tokens []int32
	for first := 0; len(tokens) < cmd.Generate; first += batch {
		var sequences []*speculate.Sequence
		end := func() {
			for _, s := range sequences {
				s.Close()
			}
		}
		for number := first; number < first+batch; number++ {
			prompt := make([]int32, cmd.Prompt)
			// By the golden ratio: the rows are spread evenly, whatever their number.
			set.Read(prompt, int(uint64(number)*0x9e3779b97f4a7c15>>16%uint64(set.Len())))
			s, err := l.Start(prompt, speculate.Request{Sampling: sample.Params{Temperature: cmd.Temp, Seed: uint64(number)},
				MaxTokens: n, End: m.Tokenizer.IsEOG})
			if err != nil {
				end()
				return nil, err
			}
			sequences = append(sequences, s)
		}
		for slices.ContainsFunc(sequences, func(s *speculate.Sequence) bool { return s.Finish() == speculate.Running }) {
			if err := l.Step(ctx, sequences); err != nil {
				end()
				return nil, err
			}
		}
		for _, s := range sequences {
			if err := s.Err(); err != nil {
				end()
				return nil, err
			}
			tokens = append(tokens, s.Output()...)
		}
		tokens = tokens[:min(len(tokens), cmd.Generate)]
		end()
		bar.Set(int64(len(tokens)), int64(cmd.Generate))
	}
	return tokens, nil
}
