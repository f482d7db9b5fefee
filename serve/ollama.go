package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Ollama's API: POST /api/chat, /api/generate, /api/embed and /api/embeddings. Streams are lines of
// JSON, and requests stream by default.

// ollamaSettings are the fields that may be in a body or in its options.
type ollamaSettings struct {
	chatOptions
	oneChoice
	NumPredict field[int]          `json:"num_predict"`
	Format     field[ollamaFormat] `json:"format"`
	Think      field[ollamaThink]  `json:"think"`
	ToolChoice field[toolChoice]   `json:"tool_choice"`
}

// ollamaBody is the body of requests for chats and generations.
type ollamaBody struct {
	ollamaSettings
	Messages field[[]ollamaTurn] `json:"messages"` // of chats
	Tools    field[[]toolBody]   `json:"tools"`
	Prompt   field[string]       `json:"prompt"` // of generations
	Suffix   field[string]       `json:"suffix"`
	System   field[content]      `json:"system"`
	Raw      bool                `json:"raw"`
	Template refused             `json:"template" neutral:"\"\""`
	Context  refused             `json:"context" neutral:"[]" why:"send the conversation to /api/chat"`
	Images   refused             `json:"images" neutral:"[]" why:"this server reads text only"`
}

// readJSON reads the options first: fields of the body override them.
func (b *ollamaBody) readJSON(d *decoder, path string, raw json.RawMessage) error {
	in := struct {
		Options *ollamaSettings `json:"options"`
	}{}
	if err := d.read(path, raw, &in); err != nil {
		return err
	}
	if in.Options != nil {
		b.ollamaSettings = *in.Options
	}
	type object ollamaBody
	return d.read(path, raw, (*object)(b))
}

// ollamaFormat is json or a JSON schema. An empty string constrains nothing.
type ollamaFormat struct {
	json   bool
	schema json.RawMessage
}

func (f *ollamaFormat) readJSON(_ *decoder, path string, raw json.RawMessage) error {
	word, isWord := decode[string](raw)
	if isWord && word != "" && word != "json" {
		return fieldError(path, "%q: want json or a JSON schema", word)
	}
	f.json = word == "json"
	if !isWord {
		f.schema = raw
	}
	return nil
}

// ollamaThink says whether to reason, or how much.
type ollamaThink struct {
	on     bool
	effort string
}

func (t *ollamaThink) readJSON(_ *decoder, path string, raw json.RawMessage) error {
	on, isBool := decode[bool](raw)
	effort, isText := decode[string](raw)
	if !isBool && !isText {
		return fieldError(path, "want true, false, low, medium, high or max")
	}
	t.on = on || effort != ""
	t.effort = effort
	return nil
}

// ollamaTurn is a message. Its unknown fields go to the chat template.
type ollamaTurn struct {
	chatMessageBody
	Thinking field[string] `json:"thinking"`
	ToolName field[string] `json:"tool_name"`
	Images   ollamaImages  `json:"images"`
}

// ollamaImages are the places of images.
type ollamaImages []field[string]

func (l *ollamaImages) readJSON(d *decoder, path string, raw json.RawMessage) error {
	var list []string
	if err := d.read(path, raw, &list); err != nil {
		return err
	}
	*l = slices.Repeat(ollamaImages{{"image", true, path}}, len(list))
	return nil
}

// ollamaChat answers POST /api/chat.
func (s *Server) ollamaChat(x *exchange) error {
	var b ollamaBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	if len(b.Messages.value) == 0 {
		return x.writeJSON(http.StatusOK, (&ollamaForm{chat: true, model: m.Name}).loaded())
	}
	v, err := b.chat()
	if err != nil {
		return err
	}
	c, err := x.newChat(m, v)
	if err != nil {
		return err
	}
	return x.answer(c, func(a *answering) form { return &ollamaForm{a: a, chat: true, model: m.Name} })
}

// ollamaGenerate answers POST /api/generate, for a prompt that is laid out by the chat template or taken as it is.
func (s *Server) ollamaGenerate(x *exchange) error {
	var b ollamaBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	if b.Prompt.value+b.Suffix.value == "" {
		return x.writeJSON(http.StatusOK, (&ollamaForm{model: m.Name}).loaded())
	}
	b.setOptions()
	var c *call
	if b.Raw || b.Suffix.value != "" {
		c, err = x.newRaw(m, &b)
	} else {
		c, err = x.newChat(m, b.generation())
	}
	if err != nil {
		return err
	}
	return x.answer(c, func(a *answering) form { return &ollamaForm{a: a, model: m.Name} })
}

// setOptions sets the options that all protocols share, with Ollama's defaults.
func (b *ollamaBody) setOptions() {
	b.Stream.setDefault(true)
	b.Temperature.setDefault(0.8)
	b.TopK.setDefault(40)
	b.TopP.setDefault(0.9)
	b.RepeatLastN.setDefault(64)
	if b.NumPredict.value > 0 { // -1 and -2: no limit
		b.MaxCompletionTokens = b.NumPredict
	}
	b.format.param = b.Format.path
	if b.Format.value.json {
		b.format.schema = anyObject
	} else {
		b.format.schema = string(b.Format.value.schema)
	}
	if b.Think.given {
		b.setThinking(b.Think.value.on)
	}
	if effort := b.Think.value.effort; effort != "" {
		b.setVariable("reasoning_effort", effort)
	}
}

// chat returns the request that the body of a chat makes.
func (b *ollamaBody) chat() (*conversation, error) {
	b.setOptions()
	b.Truncate.setDefault(true)
	v := &conversation{chatOptions: &b.chatOptions, path: b.Messages.path}
	if err := v.tools.offerAll(&b.Tools, true); err != nil {
		return nil, err
	}
	if err := v.tools.chooseChat(&b.ToolChoice); err != nil {
		return nil, err
	}
	for i := range b.Messages.value {
		in := &b.Messages.value[i]
		in.Role.value = strings.ToLower(in.Role.value)
		m, err := in.message(fmt.Sprintf("%s[%d]", b.Messages.path, i))
		if err != nil {
			return nil, err
		}
		for _, image := range in.Images {
			m.content = strings.TrimPrefix(m.content+"\n"+lineOf(image.value), "\n")
			m.unread = append(m.unread, image)
		}
		m.name = in.ToolName.value
		m.reasoning = cmp.Or(in.Thinking.value, m.reasoning)
		v.messages = append(v.messages, m)
	}
	v.continueAssistant()
	return v, nil
}

// generation returns the request that the body of a generation makes: a conversation with its prompt.
func (b *ollamaBody) generation() *conversation {
	v := &conversation{chatOptions: &b.chatOptions, path: b.Prompt.path}
	if system := b.System.value.text(); system != "" {
		v.messages = append(v.messages, message{path: b.System.path, role: "system", content: system})
	}
	v.messages = append(v.messages, message{path: b.Prompt.path, role: "user", content: b.Prompt.value})
	return v
}

// newRaw makes the call of a generation that continues a prompt as it is, or fills the gap between it and a suffix.
func (x *exchange) newRaw(m *Model, b *ollamaBody) (*call, error) {
	c, err := x.newCall(m, &b.options, several{})
	if err != nil {
		return nil, err
	}
	c.promptPath = b.Prompt.path
	if err := c.setLimits(&b.chatOptions, x.s.o.MaxTokens); err != nil {
		return nil, err
	}
	prompts := field[promptList]{promptList{texts: []string{b.Prompt.value}}, b.Prompt.given, b.Prompt.path}
	if b.Suffix.value != "" {
		return c, c.setGap(&prompts, &b.Suffix)
	}
	return c, c.setPrompts(&prompts, 1, m.Context())
}

// ollamaEmbedBody is the body of requests for embeddings.
type ollamaEmbedBody struct {
	embedOptions
	Prompt   field[promptList] `json:"prompt"` // of POST /api/embeddings
	Truncate field[bool]       `json:"truncate"`
}

// ollamaEmbeddings is the answer to POST /api/embed.
type ollamaEmbeddings struct {
	Model      string        `json:"model"`
	Embeddings [][]float32   `json:"embeddings"`
	Prompt     int           `json:"prompt_eval_count"`
	Total      time.Duration `json:"total_duration"`
	Load       time.Duration `json:"load_duration"`
}

// ollamaEmbed answers POST /api/embed.
func (s *Server) ollamaEmbed(x *exchange) error {
	var b ollamaEmbedBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	a := ollamaEmbeddings{Model: m.Name, Embeddings: [][]float32{}}
	if !b.Input.value.empty() {
		a.Embeddings, a.Prompt, err = x.embed(m, &b.embedOptions, b.Truncate.or(true))
		if err != nil {
			return err
		}
	}
	a.Total, a.Load = time.Since(x.began), x.load
	return x.writeJSON(http.StatusOK, a)
}

// ollamaEmbedding is the answer to POST /api/embeddings.
type ollamaEmbedding struct {
	Embedding []float32 `json:"embedding"`
}

// ollamaOneEmbedding answers POST /api/embeddings, which /api/embed replaced.
func (s *Server) ollamaOneEmbedding(x *exchange) error {
	var b ollamaEmbedBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	a := ollamaEmbedding{[]float32{}}
	if !b.Prompt.value.empty() {
		b.Input = b.Prompt
		vectors, _, err := x.embed(m, &b.embedOptions, true)
		if err != nil {
			return err
		}
		a.Embedding = vectors[0]
	}
	return x.writeJSON(http.StatusOK, a)
}

// empty reports whether there is no text: Ollama's clients send such a request to load the model.
func (p *promptList) empty() bool {
	return len(p.lists) == 0 && (len(p.texts) == 0 || len(p.texts) == 1 && p.texts[0] == "")
}
