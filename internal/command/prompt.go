package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// MaxPrompt bounds the bytes read as a prompt: any context is far smaller.
const MaxPrompt = 64 << 20

// PromptFlags say where the prompt comes from.
type PromptFlags struct {
	Prompt string   `arg:"" optional:"" help:"The prompt; - reads standard input."`
	File   []string `short:"f" help:"Begin the prompt with this file's text; may be repeated." placeholder:"FILE" sep:"none"`
}

// Read assembles the prompt: the files' texts in order, then the prompt itself.
func (f *PromptFlags) Read(p *Program) (string, error) {
	var b strings.Builder
	for _, name := range f.File {
		text, err := ReadText(name)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	if f.Prompt == "-" || f.Prompt == "" && len(f.File) == 0 && !IsTerminal(p.Stdin) {
		text, err := readAll(p.Stdin, "standard input")
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	} else {
		b.WriteString(f.Prompt)
	}
	if b.Len() == 0 {
		return "", Usagef("there is no prompt: give it as an argument, with --file, or on standard input")
	}
	return b.String(), nil
}

// ReadFlag reads the text file that a flag names, if it names one. Only text that the output may repeat can be empty.
func ReadFlag(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := ReadText(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if text == "" && flag != "--predict" {
		return "", Usagef("%s: %s is empty", flag, name)
	}
	return text, nil
}

// ReadText reads a text file.
func ReadText(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s is a folder: name a file in it", name)
	}
	return readAll(f, name)
}

func readAll(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxPrompt+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > MaxPrompt {
		return "", fmt.Errorf("%s: more than %s: no model takes that much: give a part of it", name, Size(MaxPrompt))
	}
	text := string(data)
	return strings.TrimPrefix(text, "\ufeff"), checkText(name, text) // Windows' editors begin texts with this mark
}

// checkText refuses a text that is not UTF-8.
func checkText(name, text string) error {
	for i, r := range text {
		if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
			return Usagef("%s: invalid UTF-8 at byte %d: convert the text to UTF-8 first", name, i)
		}
	}
	return nil
}
