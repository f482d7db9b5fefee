package command

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/train/data"
)

// TextFlags name text to read.
type TextFlags struct {
	Text   []string `help:"Text file; may be repeated." placeholder:"FILE" sep:"none"`
	Source []string `help:"Text source: FILE.jsonl,template={field}, a folder, or FILE,kind=go; may be repeated." placeholder:"SPEC" sep:"none"`
}

// Documents reads every text and source.
func (cmd *TextFlags) Documents(p *Program) ([]data.Document, error) {
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
			return nil, Usagef("--source: %v", err)
		}
		sources = append(sources, s)
	}
	if len(sources) == 0 {
		return nil, Usagef("which text? Name a file with --text or a source with --source")
	}
	var docs []data.Document
	for _, s := range sources {
		d, report, err := s.Documents()
		if err != nil {
			return nil, err
		}
		p.Logf("%s: %v", s.Name, report)
		docs = append(docs, d...)
	}
	return docs, nil
}

// FindGoRoot returns the flag's value, or else asks the go command where its library is. It returns "" if that fails.
func FindGoRoot(flag string) string {
	if flag != "" {
		return flag
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// TokenText returns a function that returns the text of single tokens.
func TokenText(m *grove.Model) func(int32) string {
	t := m.Tokenizer()
	if t == nil {
		return func(token int32) string { return fmt.Sprint(token) }
	}
	return func(token int32) string { return strings.ToValidUTF8(t.Piece(token), "\uFFFD") }
}
