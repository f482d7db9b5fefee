package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

type tokenizeCmd struct {
	command.PromptFlags

	Model string `short:"m" env:"GROVE_MODEL" help:"GGUF file, Hugging Face folder, or ORG/REPO that grove pull fetched; default: grove's small model." placeholder:"FILE" hub:""`
	Plain bool   `help:"Treat the names of control tokens as text, and add no BOS or EOS token."`
	IDs   bool   `name:"ids" help:"Read token ids instead of text, and print their text."`
}

func (tokenizeCmd) Help() string {
	return `Prints the tokens of a text: each id with its piece. With --ids, it prints the text of token ids.

Examples:
    grove tokenize -m FILE "Hello, world!"
    grove tokenize -m FILE --json -f main.go | jq '.ids | length'
    grove tokenize -m FILE --ids "1 15043 3186"`
}

func (cmd *tokenizeCmd) Run(p *command.Program) error {
	text, err := cmd.PromptFlags.Read(p)
	if err != nil {
		return err
	}
	tok, err := cmd.open()
	if err != nil {
		return err
	}
	var ids []int32
	if cmd.IDs {
		if ids, err = parseIDs(text, tok.VocabSize()); err != nil {
			return err
		}
		text = tok.Decode(ids, tokenizer.DecodeOptions{Special: true})
	} else {
		ids = tok.Encode(text, tokenizer.EncodeOptions{AddSpecial: !cmd.Plain, ParseSpecial: !cmd.Plain})
	}
	pieces := make([]string, len(ids))
	for i, id := range ids {
		pieces[i] = tok.Piece(id)
	}
	switch {
	case p.JSON:
		return p.PrintJSON(map[string]any{"text": text, "ids": append([]int32{}, ids...), "pieces": pieces})
	case cmd.IDs:
		_, err := fmt.Fprintln(p.Stdout, text)
		return err
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for i, id := range ids {
		fmt.Fprintf(t, "%d\t%q\n", id, pieces[i])
	}
	return t.Flush()
}

// open reads only the tokenizer.
func (cmd *tokenizeCmd) open() (*tokenizer.Tokenizer, error) {
	if cmd.Model == "" {
		f, err := gguf.Parse(command.Embedded, models.Target())
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return tokenizer.FromGGUF(f)
	}
	info, err := os.Stat(cmd.Model)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return tokenizer.FromJSON(cmd.Model)
	}
	f, err := gguf.Open(cmd.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tokenizer.FromGGUF(f)
}

// parseIDs reads ids separated by white space or commas, with or without brackets.
func parseIDs(text string, vocab int) ([]int32, error) {
	var ids []int32
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) }) {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) {
			return nil, command.Usagef("--ids: %q is not a token id: want numbers from 0 to %d", word, vocab-1)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}
