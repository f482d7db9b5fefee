package grove

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/callform"
)

// Message is one turn of a conversation: a role (system, user, assistant) and its content.
type Message = chat.Message

// Chat answers a conversation, laid out by the chat template in the model's files. Messages are plain text: the name
// of a control token in a message does not become that token. The text of an answer includes the control tokens that
// the template puts around reasoning; earlier answers are laid out without their reasoning. See Generate.
func (m *Model) Chat(ctx context.Context, messages []Message, r Request) iter.Seq2[Chunk, error] {
	return m.chat(ctx, messages, r)
}

// Chat is Model.Chat within the session: as a conversation continues, only its new part is computed.
func (s *Session) Chat(ctx context.Context, messages []Message, r Request) iter.Seq2[Chunk, error] {
	return s.alone(s.m.chat(ctx, messages, s.of(r)))
}

func (m *Model) chat(ctx context.Context, messages []Message, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		layout, err := m.Layout()
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		r := r // each range has its own
		messages := messages
		if marks, answer := m.marks(); marks != callform.AllMarks[0] { // such marks are text, left to the template
			r.Reasoning = true
			messages = cutMarked(messages, marks, answer)
			for _, mark := range []string{answer.Begin, answer.End} {
				if id, ok := m.Tokenizer().Find(mark); ok && m.Tokenizer().IsSpecial(id) {
					r.hidden = append(r.hidden, id)
				}
			}
		}
		tokens, err := tokenizeChat(layout, messages)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		r.turnEnds = layout.Stop()
		m.generate(ctx, tokens, r)(yield)
	}
}

// Layout is how the model's conversations are laid out; chat.Layout has more options than Chat takes.
func (m *Model) Layout() (*chat.Layout, error) { return m.layout() }

// marks returns the marks around reasoning and around the answer, by the chat template.
func (m *Model) marks() (thought, answer callform.Marks) {
	if layout, err := m.Layout(); err == nil {
		thought = callform.MarksOf(layout)
		answer = callform.AnswerOf(layout)
	}
	if thought.End == "" {
		thought = callform.AllMarks[0]
	}
	return thought, answer
}

// cutMarked returns the messages without the reasoning, between marks, at the beginning of earlier answers, and without
// the marks around these.
func cutMarked(messages []Message, marks, answer callform.Marks) []Message {
	messages = slices.Clone(messages)
	for i := range messages {
		if messages[i].Role != "assistant" {
			continue
		}
		text := strings.TrimSpace(messages[i].Content)
		if strings.HasPrefix(text, strings.TrimSpace(marks.Begin)) || strings.HasPrefix(text, marks.End) {
			_, text, _ = strings.Cut(text, marks.End)
			text = strings.TrimSpace(text)
			messages[i].Content = text
		}
		if text, marked := strings.CutPrefix(text, answer.Begin); marked && answer.Begin != "" {
			messages[i].Content = strings.TrimSuffix(text, answer.End)
		}
	}
	return messages
}

// tokenizeChat returns the tokens of a conversation as Chat reads it, up to the beginning of the answer.
func tokenizeChat(layout *chat.Layout, messages []Message) ([]int32, error) {
	if len(messages) == 0 {
		return nil, optionf("Messages", "the list is empty: give at least one message, with role user")
	}
	for i, msg := range messages {
		if msg.Role == "" && msg.Extra == nil {
			return nil, optionf(fmt.Sprintf("Messages[%d].Role", i), "the role is empty: want system, user or assistant")
		}
		if err := validText(fmt.Sprintf("Messages[%d].Content", i), msg.Content); err != nil {
			return nil, err
		}
	}
	return layout.Encode(messages, chat.Options{Prompt: true})
}

// parseTemplate makes the layout of a template that replaces the model's own.
func (m *Model) parseTemplate(text string) (*chat.Layout, error) {
	if m.m.Tokenizer == nil {
		return nil, errNoTokenizer
	}
	if err := validText("ChatTemplate", text); err != nil {
		return nil, err
	}
	layout, err := chat.Parse(m.m.Tokenizer, text)
	if err != nil {
		return nil, optionf("ChatTemplate", "%v", err)
	}
	return layout, nil
}
