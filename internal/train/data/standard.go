package data

import (
	"fmt"
	"path/filepath"
	"strings"
)

// The templates of GSM8K: a problem and its worked answer, with calculator annotations (<<6*2=12>>)
// unchanged, and the same as a chat.
const (
	ProblemTemplate = "{question}\n{answer}\n"
	ChatTemplate    = "<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{answer}<|im_end|>\n"
)

// Licences of the standard sources.
const (
	goLicense    = "BSD-3-Clause, The Go Authors"
	proseLicense = "public domain in the United States (Project Gutenberg)"
	gsm8kLicense = "MIT, OpenAI"
)

// Standard lists the sources of grove's own models: Go's standard library, novels and grade-school
// problems. goroot is that of the toolchain, dir the folder with prose/ and math/. Weights are
// shares of the training rows.
func Standard(goroot, dir string) []Source {
	src := filepath.Join(goroot, "src")
	gsm8k := filepath.Join(dir, "math", "gsm8k_train.jsonl")
	return []Source{
		{Name: "go", Kind: Go, Path: src, Except: []string{"cmd"}, Weight: 0.70, License: goLicense},
		{Name: "prose", Path: filepath.Join(dir, "prose", "*.txt"),
			Except: []string{"alice_valid.txt", "wikitext2_valid.txt"}, Weight: 0.20, License: proseLicense},
		{Name: "gsm8k", Path: gsm8k, Template: ProblemTemplate, Weight: 0.05, License: gsm8kLicense},
		{Name: "gsm8k-chat", Path: gsm8k, Template: ChatTemplate, Weight: 0.05, License: gsm8kLicense},
	}
}

// StandardValidation lists the sources on which those models are measured and never trained.
func StandardValidation(goroot, dir string) []Source {
	return []Source{
		{Name: "go", Kind: Go, Path: filepath.Join(goroot, "src"), Except: []string{"cmd"}, Packages: Validation,
			Weight: 1, License: goLicense},
		{Name: "gsm8k", Path: filepath.Join(dir, "math", "gsm8k_test.jsonl"), Template: ProblemTemplate, Weight: 1,
			License: gsm8kLicense},
		{Name: "alice", Path: filepath.Join(dir, "prose", "alice_valid.txt"), Raw: true, Weight: 1,
			License: proseLicense},
	}
}

// Card describes sets for a model card, as a table in Markdown.
func Card(sources []Source, sets []*Set, reports []Report) string {
	var b strings.Builder
	b.WriteString("| source | licence | documents | bytes | tokens | share of rows |\n|---|---|---|---|---|---|\n")
	total := 0.0
	for _, s := range sets {
		total += s.Weight
	}
	for i, s := range sets {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %.1f %% |\n", s.Name, sources[i].License, reports[i].Documents,
			s.Bytes, s.Len(), 100*s.Weight/total)
	}
	return b.String()
}
