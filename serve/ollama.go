package serve

import (
	"encoding/json"
	"strings"
	"time"
)

// Ollama's API: POST /api/chat and /api/generate. Streams are lines of JSON, and what is not asked
// for streams.

// ollamaChat answers POST /api/chat.
func (s *Server) ollamaChat(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	if list, ok := decode[[]any](o.fields["messages"]); !o.has("messages") || ok && len(list) == 0 {
		return x.writeJSON(200, (&ollamaForm{chat: true, model: m.Name}).loaded())
	}
	o.fromOllama()
	if !o.has("truncate") {
		o.put("truncate", true)
	}
	c, err := x.readConversation(o, m)
	if err != nil {
		return err
	}
	return x.answer(c, func(a *answering) form { return &ollamaForm{a: a, chat: true, model: m.Name} })
}

// ollamaGenerate answers POST /api/generate: a prompt that the chat template lays out, or as it is.
func (s *Server) ollamaGenerate(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	text := ""
	suffix := ""
	raw := false
	o.read("prompt", &text)
	o.read("suffix", &suffix)
	if text+suffix == "" && o.err == nil {
		return x.writeJSON(200, (&ollamaForm{model: m.Name}).loaded())
	}
	o.refuse("template", unlike, `""`)
	o.refuse("context", "send the conversation to /api/chat", "[]")
	o.refuseImages()
	o.read("raw", &raw)
	o.fromOllama()
	delete(o.fields, "tools") // which are for chats
	delete(o.fields, "tool_choice")
	var c *call
	if raw || suffix != "" {
		c = x.readCall(o, m)
		c.readLimits(o, x.s.o.MaxTokens)
		err = c.readPrompts(o, "prompt", 1)
	} else {
		var list []*object
		for _, f := range [][2]string{{"system", "system"}, {"prompt", "user"}} {
			if said := o.text(f[0]); said != "" {
				message := newObject(f[0])
				message.put("role", f[1])
				message.put("content", said)
				list = append(list, message)
			}
		}
		o.putList("messages", list)
		o.name("messages", "prompt")
		c, err = x.readConversation(o, m)
	}
	if err != nil {
		return err
	}
	return x.answer(c, func(a *answering) form { return &ollamaForm{a: a, model: m.Name} })
}

// ollamaError is an error in Ollama's form.
func ollamaError(_ *exchange, e *Error) any { return map[string]string{"error": e.Message} }

// fromOllama makes the body of a chat completion of one of Ollama's. The options become fields;
// defaults are Ollama's.
func (o *object) fromOllama() {
	if !o.has("stream") {
		o.put("stream", true)
	}
	if in := o.object("options"); in != nil {
		for name, raw := range in.fields {
			if !o.has(name) {
				o.fields[name] = raw
				o.name(name, "options."+name)
			}
		}
	}
	o.oneChoice()
	for name, value := range map[string]any{"temperature": 0.8, "top_k": 40, "top_p": 0.9, "repeat_last_n": 64} {
		if !o.has(name) {
			o.put(name, value)
		}
	}
	if n := 0; o.read("num_predict", &n) && n > 0 { // -1 and -2: no limit
		o.rename("num_predict", "max_completion_tokens")
	}
	if word, ok := decode[string](o.fields["format"]); ok && word == "json" {
		o.put("response_format", map[string]string{"type": "json_object"})
	} else if ok && word != "" {
		o.fail("format", "%q: want json or a JSON schema", word)
	} else if o.has("format") && !ok {
		o.setSchema(o.fields["format"], "format")
	}
	o.ollamaThink()
	list := o.objects("messages")
	for _, in := range list {
		in.refuseImages()
		in.rename("thinking", "reasoning_content")
		in.rename("tool_name", "name")
		if role := ""; in.read("role", &role) {
			in.put("role", strings.ToLower(role))
		}
	}
	if len(list) > 0 {
		o.continueAssistant(list)
		o.putList("messages", list)
	}
}

func (o *object) refuseImages() { o.refuse("images", "this server reads text only", "[]") }

// ollamaThink reads whether to reason, or how much, which is the chat template's to know.
func (o *object) ollamaThink() {
	if !o.has("think") {
		return
	}
	on, isBool := decode[bool](o.fields["think"])
	effort, isText := decode[string](o.fields["think"])
	if !isBool && !isText {
		o.fail("think", "want true, false, low, medium, high or max")
		return
	}
	o.setThinking(on || effort != "")
	if effort != "" {
		o.setVariable("reasoning_effort", effort)
	}
}

// ollamaForm is the form of Ollama's chats and generations.
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

// ollamaMetrics has times in nanoseconds.
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

// loaded is the answer to a request without a prompt, which asks for the model to be loaded: it is.
func (f *ollamaForm) loaded() *ollamaLine {
	l := f.line("", "", nil)
	l.Done, l.Reason = true, "load"
	return l
}

// finish makes a line the last one.
func (f *ollamaForm) finish(l *ollamaLine, p *piece) *ollamaLine {
	l.Done, l.Reason = true, "stop"
	if p.finish == "length" {
		l.Reason = p.finish
	}
	s := f.a.stats()
	l.ollamaMetrics = &ollamaMetrics{Total: time.Since(f.a.began), PromptCount: s.Prompt, Prompt: s.Prefill,
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
			list = append(list, event{data: f.line("", s.text, nil)})
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
