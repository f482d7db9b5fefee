package main

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
)

type runCmd struct {
	promptFlags
	modelFlags
	generateFlags

	Stats bool `help:"Say what it cost, decode plainly as well, and report the speed-up and that the tokens are the same."`
}

func (runCmd) Help() string {
	return `Continues the prompt and streams the text to standard output. Speculation is on: the drafter
proposes trees of tokens, the model verifies a tree in one pass. The text is the same with every
drafter and budget, at every temperature.

Examples:
    grove run -m qwen3-0.6b-q8_0.gguf "The capital of France is"
    grove run -m FILE --drafter lookup --file main.go --stats "// the same with more comments:"
    git diff | grove run -m FILE --stop "\n\n" -n 80
    grove run -m FILE -t 0.8 --top-p 0.95 --seed 7 --json "Once upon a time"

With --json every line is an object: {"text","tokens","drafted"} as text comes, and at last
{"done":true,"finish",...} with the figures of --stats if asked for.

Drafters:
` + indent(draft.Usage())
}

// indent sets text off by four spaces, which the help printer keeps as it is.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n    none: plain decoding, one token a pass"
}

func (cmd *runCmd) Run(p *program) error {
	request, err := cmd.request()
	if err != nil {
		return err
	}
	prompt, err := cmd.promptFlags.read(p)
	if err != nil {
		return err
	}
	m, err := cmd.open(p)
	if err != nil {
		return err
	}
	defer m.Close()
	tokens, err := m.Tokenize(prompt)
	if err != nil {
		return err
	}
	ctx, stop := p.context()
	defer stop()

	out := &printer{p: p}
	result, err := out.stream(m.GenerateTokens(ctx, tokens, request))
	if err != nil {
		return err
	}
	var c *comparison
	if cmd.Stats && !plain(request.Drafter) {
		if c, err = compare(ctx, p, m, tokens, request, result); err != nil {
			return err
		}
	}
	if err := out.finish(result, c, cmd.Stats); err != nil {
		return err
	}
	if c != nil && c.Different >= 0 {
		fmt.Fprintf(p.stderr, "grove run: token %d differs from plain decoding's: this is a fault in grove, please report it\n", c.Different)
		return errFailed
	}
	return nil
}

func plain(drafter string) bool { return drafter == "" || drafter == "none" }

// printer prints a generation as it comes.
type printer struct {
	p     *program
	whole bool // print nothing until the text is there whole
	last  byte // of the text so far
	all   strings.Builder
}

// stream prints chunks as they come and returns the result. The text of a generation that is interrupted stays, on
// lines of its own.
func (o *printer) stream(chunks iter.Seq2[grove.Chunk, error]) (*grove.Result, error) {
	for chunk, err := range chunks {
		if err == nil {
			err = o.text(chunk)
		}
		if err != nil {
			o.newline()
			return nil, err
		}
		if chunk.Result != nil {
			return chunk.Result, nil
		}
	}
	return nil, errors.New("the generation ended without a result")
}

func (o *printer) text(c grove.Chunk) error {
	o.all.WriteString(c.Text)
	if o.whole {
		return nil
	}
	if o.p.JSON {
		return o.p.printJSON(struct {
			Text    string  `json:"text"`
			Tokens  []int32 `json:"tokens"`
			Drafted int     `json:"drafted"`
		}{c.Text, c.Tokens, c.Drafted})
	}
	if c.Text == "" {
		return nil
	}
	o.last = c.Text[len(c.Text)-1]
	text := c.Text
	if isTerminal(o.p.stdout) {
		text = strings.Map(visible, text)
	}
	_, err := fmt.Fprint(o.p.stdout, text)
	return err
}

// visible keeps a model's text from steering the terminal: control characters other than line ends and tabs
// become a replacement character.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}

// newline ends the last line of text.
func (o *printer) newline() {
	if o.last != 0 && o.last != '\n' && !o.p.JSON {
		fmt.Fprintln(o.p.stdout)
	}
	o.last = '\n'
}

// finish says how it ended, with figures when asked for.
func (o *printer) finish(r *grove.Result, c *comparison, stats bool) error {
	if o.p.JSON {
		return o.p.printJSON(doneLine(r, c, stats))
	}
	o.newline()
	if stats {
		fmt.Fprintln(o.p.stderr)
		return printStats(o.p.stderr, r, c)
	}
	if isTerminal(o.p.stderr) || o.p.Verbose {
		fmt.Fprintf(o.p.stderr, "\n[%d tokens, %.1f tokens/s, τ %.2f, %s]\n", r.Stats.Tokens, perSecond(&r.Stats), r.Stats.Tau(), r.Finish)
	}
	return nil
}
