// Suites that are files of questions: the GSM8K test set, Spec-Bench, EAGLE's sets, any jsonl.

package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

func readMath(o *SuiteOptions, q query) ([]Prompt, error) {
	path, err := o.data("math", "gsm8k_test.jsonl")
	if err != nil {
		return nil, err
	}
	prompts, err := readQuestions(path, q)
	for i := range prompts {
		prompts[i].Text += "\n" // an answer begins on a line of its own (data.ProblemTemplate)
	}
	return prompts, err
}

// readFileSuite reads the file that a suite's name stands for.
func readFileSuite(o *SuiteOptions, q query) (about string, prompts []Prompt, err error) {
	if strings.ContainsRune(q.name, filepath.Separator) || strings.HasSuffix(q.name, ".jsonl") ||
		strings.HasSuffix(q.name, ".jsonl.gz") {
		prompts, err = readQuestions(q.name, q)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no %s: name a jsonl file, or a suite that grove bench spec --list lists", q.name)
		}
		return "prompts of " + q.name, prompts, err
	}
	for _, end := range []string{".jsonl", ".jsonl.gz"} {
		path := filepath.Join(o.Data, "prompts", q.name+end)
		if _, err := os.Stat(path); err == nil {
			prompts, err = readQuestions(path, q)
			return "first turns of prompts/" + q.name + end, prompts, err
		}
	}
	var names []string
	for _, s := range SuiteNames(o.Data) {
		names = append(names, s[0])
	}
	return "", nil, fmt.Errorf("there is no such suite: want the path of a jsonl file, or one of %s (of the data folder, which --data or GROVE_DATA name)",
		strings.Join(names, ", "))
}

// fileSuite returns the name of a file's suite.
func fileSuite(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".jsonl")
}

// promptFields are the fields that may have the text of a question, in order of preference: Spec-Bench
// and EAGLE have turns, of which the first is used, HumanEval has a prompt, GSM8K a question.
var promptFields = []string{"turns", "prompt", "text", "question"}

// maxLine is the maximum length of a line in a file of questions.
const maxLine = 16 << 20

// readQuestions reads one prompt per line.
func readQuestions(path string, q query) ([]Prompt, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r = z
	}
	var prompts []Prompt
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(line) == 0 {
			continue
		}
		text, forced, err := question(line, q.field)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if q.chars > 0 {
			text = cut(text, q.chars)
		}
		prompts = append(prompts, Prompt{Name: fmt.Sprintf("%s:%d", filepath.Base(path), n), Text: text,
			Question: true, Forced: forced})
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s: a line is longer than %d MB: want one JSON object on each line", path, maxLine>>20)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(prompts) == 0:
		return nil, fmt.Errorf("%s: no prompt in it", path)
	}
	return prompts, nil
}

// forcedField has the text that the target is made to write.
const forcedField = "forced_output"

// question finds the text in an object, and the output that the target is made to write, if there is one.
func question(line []byte, field string) (text, forced string, err error) {
	if !utf8.Valid(line) {
		return "", "", errors.New("the line is not UTF-8")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return "", "", fmt.Errorf("want one JSON object on each line: %w", err)
	}
	if value, ok := object[forcedField]; ok {
		if err := json.Unmarshal(value, &forced); err != nil {
			return "", "", fmt.Errorf("field %q: want a string", forcedField)
		}
	}
	fields := promptFields
	if field != "" {
		fields = []string{field}
	}
	for _, name := range fields {
		value, ok := object[name]
		if !ok {
			continue
		}
		var turns []string
		switch {
		case json.Unmarshal(value, &text) == nil:
		case json.Unmarshal(value, &turns) == nil && len(turns) > 0:
			text = turns[0]
		case field == "" && firstSaid(line) != "":
			text = firstSaid(line)
		default:
			return "", "", fmt.Errorf("field %q: want a string, or a list of strings", name)
		}
		if strings.TrimSpace(text) == "" {
			return "", "", fmt.Errorf("field %q: the text is empty", name)
		}
		return text, forced, nil
	}
	if text := firstSaid(line); field == "" && text != "" {
		return text, forced, nil
	}
	have := slices.Sorted(maps.Keys(object))
	return "", "", fmt.Errorf("no field %s in the object, which has %.200q: name the one with the prompt as in FILE:field=NAME",
		strings.Join(fields, ", "), have)
}

// firstSaid returns what the user says first in a line that grove train --prompts takes; "": nothing.
func firstSaid(line []byte) string {
	var p PromptLine
	if json.Unmarshal(line, &p) != nil {
		return ""
	}
	messages := p.Messages()
	if at := slices.IndexFunc(messages, IsUser); at >= 0 {
		return messages[at].Content
	}
	return ""
}
