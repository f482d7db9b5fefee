package data

import (
	"regexp"
	"strings"
)

var functionStart = regexp.MustCompile(`(?m)^func .*\{\n`)

// FunctionPrompts cuts prompts from Go files: each ends with the line that opens a function, whose
// body a model is to write, and begins at the start of a line at most size bytes earlier. Tests are
// left out. Packages Prompts are for this: no model has seen them.
func FunctionPrompts(docs []Document, size int) (all []Document) {
	for _, d := range docs {
		if strings.HasSuffix(d.Name, "_test.go") {
			continue
		}
		text := d.Text()
		for _, at := range functionStart.FindAllStringIndex(text, -1) {
			from := 0
			if at[1] > size {
				from = at[1] - size
				from += strings.IndexByte(text[from:], '\n') + 1
			}
			if from < at[1] && at[0] > 0 {
				all = append(all, textDocument(d.Name, text[from:at[1]]))
			}
		}
	}
	return all
}
