package bench

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// Save writes the report into a folder, which it makes: report.json, report.md and the figures. It
// returns the files' names.
func (r *SpecReport) Save(dir string, tables []TableView, figures []FigureView) ([]string, error) {
	files, err := saveReport(dir, r, func(w io.Writer) error { return r.Markdown(w, tables) })
	if err != nil {
		return files, err
	}
	drawn, err := r.Figures(dir, figures)
	return append(files, drawn...), err
}

// saveReport writes report.json and report.md.
func saveReport(dir string, report any, markdown func(io.Writer) error) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	asJSON := func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	for _, f := range []struct {
		name string
		fill func(io.Writer) error
	}{{"report.json", asJSON}, {"report.md", markdown}} {
		path := filepath.Join(dir, f.name)
		if err := atomicfile.Write(path, f.fill); err != nil {
			return files, err
		}
		files = append(files, path)
	}
	return files, nil
}

// WritePrompt writes a jsonl file with one prompt, which OpenSuite reads.
func WritePrompt(path string, p Prompt) error {
	object := map[string]string{"prompt": p.Text}
	if p.Forced != "" {
		object[forcedField] = p.Forced
	}
	line, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(line, '\n'), 0o666)
}
