package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
)

type runCmd struct {
	command.PromptFlags
	command.ModelFlags
	command.GenerateFlags

	Raw   bool    `help:"Continue the prompt as it is, without the chat template."`
	Show  *string `help:"Draw the draft tree of each round on standard error." enum:"tree" placeholder:"tree"`
	Stats bool    `help:"Decode plainly too; print statistics, speed-up and whether tokens match."`
}

func (runCmd) Help() string {
	return `Prints the text as it is generated. A drafter proposes trees of tokens, and the model verifies each tree in one
pass. Every drafter gives the same text. On a terminal, drafted text is green.

If the model named with -m has a chat template, the prompt is sent through it as a user's message.
Without a prompt, grove run reads standard input, or opens grove chat on a terminal.

Examples:
    grove run "func main() {"
    grove run --show tree --pad 500M -n 40 "package main"
    grove run qwen3-0.6b-q8_0.gguf "What is the capital of France?"
    grove run -m FILE --drafter lookup --file main.go "// the same file with comments:"

With --json, every line is an object: {"text","tokens","drafted"} for each round, then {"done":true,"finish",...}.`
}

func (cmd *runCmd) Run(p *command.Program) error {
	request, err := cmd.Request()
	if err != nil {
		return err
	}
	prompt, err := cmd.PromptFlags.Read(p)
	if err != nil {
		return err
	}
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	generate, err := cmd.generator(m, prompt)
	if err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()

	out := &printer{p: p, name: command.ModelName(m, cmd.Model), padded: inside.Target(m).Model.Config.Padded}
	if cmd.Show != nil {
		view := newTreeView(p, m)
		inside.RequestOptionsOf(&request).OnRound = view.round
		out.late = !p.JSON
	}
	result, err := out.stream(generate(ctx, request))
	if err != nil {
		return err
	}
	var c *comparison
	if cmd.Stats && !plain(request.Drafter) {
		if c, err = compare(ctx, p, generate, request, result, cmd.Memory != ""); err != nil {
			return err
		}
	}
	if err := out.finish(result, c, cmd.Stats); err != nil {
		return err
	}
	if c != nil && c.Different >= 0 {
		fmt.Fprintf(p.Stderr, "grove run: token %d differs from plain decoding's: this is a bug in grove, please report it\n", c.Different)
		return command.ErrFailed
	}
	return nil
}

// generator asks the model through its chat template, if it has one, or lets it continue the text.
func (cmd *runCmd) generator(m *grove.Model, prompt string) (generator, error) {
	if t := m.Tokenizer(); !cmd.Raw && cmd.Model != "" && t != nil && len(t.Templates()) > 0 {
		messages := []grove.Message{{Role: "user", Content: prompt}}
		return func(ctx context.Context, r grove.Request) iter.Seq2[grove.Chunk, error] {
			return m.Chat(ctx, messages, r)
		}, nil
	}
	tokens, err := m.Tokenize(prompt)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r grove.Request) iter.Seq2[grove.Chunk, error] {
		return m.GenerateTokens(ctx, tokens, r)
	}, nil
}

func plain(drafter string) bool { return drafter == "" || drafter == registry.Plain }

// printer prints a generation as it comes.
type printer struct {
	p      *command.Program
	name   string // the model's, for the figures
	padded int64  // number of padding parameters

	whole bool // print nothing until the text is complete
	late  bool // print the text at the end, out of the way of other output
	last  byte // of the text so far
	all   strings.Builder
	kept  []grove.Piece // pieces to print late
}

// stream prints chunks as they arrive and returns the result. The text of an interrupted generation
// remains, on lines of its own.
func (o *printer) stream(chunks iter.Seq2[grove.Chunk, error]) (*grove.Result, error) {
	for chunk, err := range chunks {
		if err == nil {
			err = o.chunk(chunk)
		}
		if err != nil {
			_ = o.print(o.kept)
			o.newline()
			return nil, err
		}
		if chunk.Result != nil {
			return chunk.Result, o.print(o.kept)
		}
	}
	return nil, errors.New("the generation ended without a result")
}

func (o *printer) chunk(c grove.Chunk) error {
	o.all.WriteString(c.Text)
	switch {
	case o.whole:
		return nil
	case o.p.JSON:
		return o.p.PrintJSON(struct {
			Text    string  `json:"text"`
			Tokens  []int32 `json:"tokens"`
			Drafted int     `json:"drafted"`
		}{c.Text, c.Tokens, c.Drafted})
	case o.late:
		o.kept = append(o.kept, c.Pieces...)
		return nil
	}
	return o.print(c.Pieces)
}

// print writes text, and distinguishes drafted text from the model's own.
func (o *printer) print(pieces []grove.Piece) error {
	terminal, style := command.IsTerminal(o.p.Stdout), o.p.Style(o.p.Stdout)
	for _, piece := range pieces {
		text := piece.Text
		o.last = text[len(text)-1]
		if terminal {
			text = strings.Map(command.Visible, text)
		}
		if piece.Drafted {
			text = style.Drafted(text)
		}
		if _, err := io.WriteString(o.p.Stdout, text); err != nil {
			return err
		}
	}
	return nil
}

// newline ends the last line of text.
func (o *printer) newline() {
	if o.last != 0 && o.last != '\n' && !o.p.JSON {
		fmt.Fprintln(o.p.Stdout)
	}
	o.last = '\n'
}

// finish prints how the generation ended, with figures if asked for.
func (o *printer) finish(r *grove.Result, c *comparison, stats bool) error {
	if o.p.JSON {
		return o.p.PrintJSON(doneLine(r, c, stats, o.padded))
	}
	o.newline()
	if o.all.Len() == 0 && r.Finish == grove.FinishEnd {
		fmt.Fprintln(o.p.Stderr, "grove: the model ended the text at once (--ignore-end lets it continue)")
	}
	switch {
	case stats:
		fmt.Fprintln(o.p.Stderr)
		return printStats(o.p.Stderr, o.name, r, c)
	case command.IsTerminal(o.p.Stderr) || o.p.Verbose || o.padded > 0:
		green := ""
		if o.p.Style(o.p.Stdout).On && inside.Stats(r).Accepted > 0 {
			green = fmt.Sprintf(", %s was drafted", o.p.Style(o.p.Stderr).Drafted("green"))
		}
		fmt.Fprintf(o.p.Stderr, "\n[%s: %s, %.1f tokens/s, τ %.2f, %s%s]\n", o.name, several(inside.Stats(r).Tokens, "token"),
			perSecond(inside.Stats(r)), inside.Stats(r).Tau(), r.Finish, green)
	}
	return nil
}
