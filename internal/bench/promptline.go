package bench

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/grovellm/grove"
)

// PromptLine is a line of a file of prompts, in the forms that are in use: the messages of a
// conversation (OpenAI's, or ShareGPT's "conversations"), the user's turns, or one prompt.
type PromptLine struct {
	Talk                                 []promptMessage `json:"messages"`
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

// Messages returns the messages of the system and the user. It leaves out those of the assistant:
// the model that a head learns from writes its own.
func (p *PromptLine) Messages() (list []grove.Message) {
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
	if p.Talk == nil {
		p.Talk = p.Prompt.messages
	}
	for _, m := range p.Talk {
		add(m.Role, string(m.Content))
	}
	for _, m := range p.Conversations {
		add(m.From, m.Value)
	}
	for _, text := range p.Turns {
		add("user", text)
	}
	for _, text := range []string{p.Prompt.text, p.Question, strings.TrimSpace(p.Instruction + "\n\n" + p.Input)} {
		if !slices.ContainsFunc(list, IsUser) { // a prompt alongside a conversation is its first message
			add("user", text)
		}
	}
	return list
}

// IsUser reports whether a message is the user's.
func IsUser(m grove.Message) bool { return m.Role == "user" }
