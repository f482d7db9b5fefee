package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/bench"
)

// readPrompts reads up to n conversations that check accepts from a JSONL file, or from a suite.
func readPrompts(name string, n int, check func([]grove.Message) error) (list [][]grove.Message, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		suite, suiteErr := openSuite(name, os.Getenv("GROVE_DATA"), n)
		if suiteErr != nil {
			return nil, fmt.Errorf("--prompts %s: no such file, and as a suite of %s: %w", name,
				cmp.Or(os.Getenv("GROVE_DATA"), "GROVE_DATA, which is not set"), suiteErr)
		}
		for _, p := range suite.Prompts {
			list = append(list, []grove.Message{{Role: "user", Content: p.Text}})
		}
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for at := 1; len(list) < n && lines.Scan(); at++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var p bench.PromptLine
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "\ufeff")), &p); err != nil {
			if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
				err = fmt.Errorf("%s is of type %s", cmp.Or(strings.ToLower(wrong.Field), "it"), wrong.Value)
			}
			return nil, fmt.Errorf("%s, line %d: %w: want an object with messages, conversations, turns, prompt, question or instruction", name, at, err)
		}
		m := p.Messages()
		if len(m) == 0 || m[len(m)-1].Role != "user" {
			return nil, fmt.Errorf("%s, line %d: the user says nothing: want an object with messages, conversations, turns, prompt, question or instruction", name, at)
		}
		if err := check(m); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w: leave the line out, or change it", name, at, err)
		}
		list = append(list, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: the file has no prompts", name)
	}
	return list, nil
}
