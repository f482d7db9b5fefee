package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/grovellm/grove"
)

// promptLine is a line of a file of prompts, in the forms that are in use: the messages of a
// conversation (OpenAI's, or ShareGPT's "conversations"), the user's turns, or one prompt.
type promptLine struct {
	Messages                             []promptMessage
	Conversations                        []struct{ From, Value string }
	Turns                                []string
	Prompt                               promptField
	System, Question, Instruction, Input string
}

type promptMessage struct {
	Role    string
	Content spoken
}

// promptField is a text, or a list of messages, as in data sets for TRL.
type promptField struct {
	text     string
	messages []promptMessage
}

func (p *promptField) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &p.messages) == nil {
		return nil
	}
	return json.Unmarshal(data, &p.text)
}

// spoken is the content of a message: a text, or a list of parts, of which only texts count.
type spoken string

func (s *spoken) UnmarshalJSON(data []byte) error {
	var parts []struct{ Text string }
	if json.Unmarshal(data, &parts) != nil || parts == nil {
		return json.Unmarshal(data, (*string)(s))
	}
	*s = ""
	for _, part := range parts {
		*s += spoken(part.Text)
	}
	return nil
}

func isUser(m grove.Message) bool { return m.Role == "user" }

// messages returns the messages of the system and the user. It leaves out those of the assistant:
// the model that a head learns from writes its own.
func (p *promptLine) messages() (list []grove.Message) {
	add := func(role, text string) {
		switch strings.ToLower(role) {
		case "system", "developer":
			role = "system"
		case "user", "human":
			role = "user"
		default:
			return
		}
		if strings.TrimSpace(text) != "" {
			list = append(list, grove.Message{Role: role, Content: text})
		}
	}
	add("system", p.System)
	if p.Messages == nil {
		p.Messages = p.Prompt.messages
	}
	for _, m := range p.Messages {
		add(m.Role, string(m.Content))
	}
	for _, m := range p.Conversations {
		add(m.From, m.Value)
	}
	for _, text := range p.Turns {
		add("user", text)
	}
	for _, text := range []string{p.Prompt.text, p.Question, strings.TrimSpace(p.Instruction + "\n\n" + p.Input)} {
		if !slices.ContainsFunc(list, isUser) { // a prompt alongside a conversation is its first message
			add("user", text)
		}
	}
	return list
}

// readPrompts reads up to n conversations that check accepts from a JSONL file, or from a suite.
func readPrompts(name string, n int, check func([]grove.Message) error) (list [][]grove.Message, err error) {
	f, err := os.Open(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	} else if err != nil {
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
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for at := 1; len(list) < n && lines.Scan(); at++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var p promptLine
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "\ufeff")), &p); err != nil {
			if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
				err = fmt.Errorf("%s is of type %s", cmp.Or(strings.ToLower(wrong.Field), "it"), wrong.Value)
			}
			return nil, fmt.Errorf("%s, line %d: %w: want an object with messages, conversations, turns, prompt, question or instruction", name, at, err)
		}
		m := p.messages()
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
