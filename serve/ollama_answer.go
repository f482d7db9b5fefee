package serve

import (
	"encoding/json"
	"time"
)

// Answers of Ollama's API to chats, generations and requests for embeddings.

// ollamaFailure is an error in Ollama's form.
type ollamaFailure struct {
	Error string `json:"error"`
}

func ollamaError(_ *exchange, e *apiError) any { return ollamaFailure{e.Message} }

// ollamaForm presents Ollama's chats and generations.
type ollamaForm struct {
	a     *answering
	chat  bool
	model string
	blocks
}

// ollamaLine is an answer, or a piece of one.
type ollamaLine struct {
	Model    string         `json:"model"`
	Created  time.Time      `json:"created_at"`
	Message  *ollamaMessage `json:"message,omitempty"`  // of chats
	Response *string        `json:"response,omitempty"` // of generations
	Thinking string         `json:"thinking,omitempty"`
	Done     bool           `json:"done"`
	Reason   string         `json:"done_reason,omitempty"`
	Logprobs []chatLogprob  `json:"logprobs,omitempty"`
	*ollamaMetrics
}

type ollamaMessage struct {
	Role     string       `json:"role"`
	Content  string       `json:"content"`
	Thinking string       `json:"thinking,omitempty"`
	Calls    []ollamaCall `json:"tool_calls,omitempty"`
}

type ollamaCall struct {
	ID       string `json:"id"`
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// ollamaMetrics holds times in nanoseconds.
type ollamaMetrics struct {
	Total       time.Duration `json:"total_duration"`
	Load        time.Duration `json:"load_duration"`
	PromptCount int           `json:"prompt_eval_count"`
	Prompt      time.Duration `json:"prompt_eval_duration"`
	Count       int           `json:"eval_count"`
	Eval        time.Duration `json:"eval_duration"`
}

func (f *ollamaForm) line(content, thinking string, probs []logprob) *ollamaLine {
	l := &ollamaLine{Model: f.model, Created: time.Now()}
	if f.chat {
		l.Message = &ollamaMessage{Role: "assistant", Content: content, Thinking: thinking}
	} else {
		l.Response, l.Thinking = &content, thinking
	}
	if len(probs) > 0 {
		l.Logprobs = f.a.call.chatLogprobs(probs).Content
	}
	return l
}

// loaded answers a request without a prompt, which asks to load the model: it is loaded.
func (f *ollamaForm) loaded() *ollamaLine {
	l := f.line("", "", nil)
	l.Done, l.Reason = true, "load"
	return l
}

// finish turns a line into the last one.
func (f *ollamaForm) finish(l *ollamaLine, p *piece) *ollamaLine {
	l.Done, l.Reason = true, "stop"
	if p.finish == "length" {
		l.Reason = p.finish
	}
	s := f.a.stats()
	l.ollamaMetrics = &ollamaMetrics{Total: time.Since(f.a.began), Load: f.a.load, PromptCount: s.Prompt, Prompt: s.Prefill,
		Count: s.Tokens, Eval: s.Decode}
	return l
}

// addCall adds a call, unless it was cut short.
func (l *ollamaLine) addCall(b *block, index int) bool {
	if !json.Valid([]byte(b.text)) {
		return false
	}
	c := ollamaCall{ID: b.call.ID}
	c.Function.Index = index
	c.Function.Name = b.call.Function.Name
	c.Function.Arguments = json.RawMessage(b.text)
	l.Message.Calls = append(l.Message.Calls, c)
	return true
}

func (f *ollamaForm) whole(list []piece) any {
	p := &list[0]
	l := f.line(p.content, p.reasoning, p.probs)
	f.add(p)
	for _, b := range f.list {
		if b.kind == callBlock {
			l.addCall(b, len(l.Message.Calls))
		}
	}
	return f.finish(l, p)
}

func (f *ollamaForm) events(p *piece, last bool) (list []event) {
	for _, s := range f.add(p) {
		switch {
		case s.kind == adds && s.block.kind == reasoningBlock:
			list = append(list, event{data: f.line("", s.text, s.probs)})
		case s.kind == adds && s.block.kind == textBlock:
			list = append(list, event{data: f.line(s.text, "", s.probs)})
		case s.kind == closes && s.block.kind == callBlock: // calls are sent whole
			if l := f.line("", "", nil); l.addCall(s.block, *s.call.Index) {
				list = append(list, event{data: l})
			}
		}
	}
	if last {
		list = append(list, event{data: f.finish(f.line("", "", f.probs), p)})
	}
	return list
}
