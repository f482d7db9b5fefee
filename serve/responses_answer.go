package serve

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
)

// OpenAI's responses, as one object or as events.

// responseForm presents responses.
type responseForm struct {
	a       *answering
	id      string
	body    *responseBody
	echoed  echoed
	store   *responseStore // nil if it is not to be kept
	summary bool           // show the reasoning as a summary
	sent    int            // events
	blocks
}

func newResponseForm(a *answering, b *responseBody) form {
	f := &responseForm{a: a, id: rand.Text(), body: b, echoed: echoOf(a.body), store: a.s.stored,
		summary: b.Reasoning.Summary.given}
	if !b.Store.or(true) {
		f.store = nil
	}
	if tools := a.call.request.Tools; tools != nil && tools.Single {
		f.echoed.Parallel = json.RawMessage("false") // whatever the request asks for
	}
	return f
}

// responseObject is an answer, or its state when it begins.
type responseObject struct {
	ID         string              `json:"id"`
	Object     string              `json:"object"`
	Created    int64               `json:"created_at"`
	Status     string              `json:"status"`
	Model      string              `json:"model"`
	Error      *apiError           `json:"error"`
	Incomplete *responseIncomplete `json:"incomplete_details"`
	Output     []any               `json:"output"` // items
	Usage      *responseUsage      `json:"usage,omitempty"`
	Store      bool                `json:"store"`
	echoed
}

type responseIncomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	Output       int `json:"output_tokens"`
	Total        int `json:"total_tokens"`
	InputDetails struct {
		Cached     int `json:"cached_tokens"`
		CacheWrite int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// echoed are the fields of a request that its answer repeats.
type echoed struct {
	Instructions    json.RawMessage `json:"instructions"`
	MaxOutputTokens json.RawMessage `json:"max_output_tokens"`
	Metadata        json.RawMessage `json:"metadata"`
	Parallel        json.RawMessage `json:"parallel_tool_calls"`
	Reasoning       json.RawMessage `json:"reasoning"`
	Temperature     json.RawMessage `json:"temperature"`
	Text            echoedText      `json:"text"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Tools           []echoedTool    `json:"tools"`
	TopP            json.RawMessage `json:"top_p"`
	Truncation      json.RawMessage `json:"truncation"`
	Previous        json.RawMessage `json:"previous_response_id"`
}

type echoedText struct {
	Format    json.RawMessage `json:"format"`
	Verbosity json.RawMessage `json:"verbosity,omitempty"`
}

// echoOf reads them from a body. Missing ones get their defaults.
func echoOf(body json.RawMessage) echoed {
	e := echoed{Metadata: json.RawMessage("{}"), Parallel: json.RawMessage("true"), Temperature: json.RawMessage("1"),
		Text:       echoedText{Format: json.RawMessage(`{"type":"text"}`)},
		ToolChoice: json.RawMessage(`"auto"`), Tools: []echoedTool{},
		TopP: json.RawMessage("1"), Truncation: json.RawMessage(`"disabled"`)}
	_ = new(decoder).read("", body, &e) // it was read once before
	return e
}

// echoedTool is a tool as it arrived. Clients expect all fields of a function.
type echoedTool struct{ raw json.RawMessage }

// echoedFunction is a function with the fields that clients expect.
type echoedFunction struct {
	Type        string          `json:"type"`
	Name        json.RawMessage `json:"name"`
	Description json.RawMessage `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      json.RawMessage `json:"strict"`
}

func (t *echoedTool) readJSON(_ *decoder, _ string, raw json.RawMessage) error {
	t.raw = raw
	return nil
}

// MarshalJSON writes the tool.
func (t echoedTool) MarshalJSON() ([]byte, error) {
	f := echoedFunction{Strict: json.RawMessage("true")}
	if err := new(decoder).read("tools", t.raw, &f); err != nil || f.Type != "function" {
		return t.raw, nil
	}
	return json.Marshal(f)
}

// Items of an answer.
type (
	reasoningItem struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Status  string `json:"status"`
		Summary []any  `json:"summary"` // parts
		Content []any  `json:"content,omitzero"`
	}
	messageItem struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Status  string `json:"status"`
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	functionItem struct {
		calledItem
		Status    string `json:"status"`
		Arguments string `json:"arguments"`
	}
	customItem struct {
		calledItem
		Input string `json:"input"`
	}
	calledItem struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
	}
)

// Parts of items.
type (
	reasoningPart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	textPart struct {
		Type        string        `json:"type"`
		Text        string        `json:"text"`
		Annotations []any         `json:"annotations"` // always empty
		Logprobs    []chatLogprob `json:"logprobs"`
	}
)

// response returns the answer so far; p is nil when it begins.
func (f *responseForm) response(p *piece) *responseObject {
	r := &responseObject{ID: "resp_" + f.id, Object: "response", Created: f.a.began.Unix(), Status: "in_progress",
		Model: f.a.call.model.Name, Output: []any{}, Store: f.store != nil, echoed: f.echoed}
	if p == nil {
		return r
	}
	r.Status = "completed"
	if p.finish == "length" {
		r.Incomplete = &responseIncomplete{"max_output_tokens"}
	}
	if p.incomplete() {
		r.Status = "incomplete"
	}
	for i, b := range f.list {
		r.Output = append(r.Output, f.item(i, b, f.status(i, p)))
	}
	u := f.a.usage()
	r.Usage = &responseUsage{Input: u.Prompt, Output: u.Completion, Total: u.Total}
	r.Usage.InputDetails.Cached = u.PromptDetails.Cached
	r.Usage.OutputDetails.Reasoning = u.CompletionDetails.Reasoning
	if f.store != nil {
		f.keep(r)
	}
	return r
}

// keep stores an answer, with the new items of its request.
func (f *responseForm) keep(r *responseObject) {
	kept := &storedResponse{id: r.ID, tenant: f.a.tenant, previous: f.body.Previous.value}
	for i := range f.body.Input.value {
		kept.input = append(kept.input, f.body.Input.value[i].stored(fmt.Sprintf("in_%s_%d", f.id, i)))
	}
	for i, item := range r.Output {
		raw, _ := marshal(item)
		kept.output = append(kept.output, storedItem{f.itemID(i), raw})
	}
	kept.answer, _ = marshal(r)
	f.store.add(kept)
}

// incomplete reports whether an answer ended early. A stop string, too, may end it within a call.
func (p *piece) incomplete() bool { return p.finish == "length" || p.cut }

// status returns the status of a block that has ended.
func (f *responseForm) status(at int, p *piece) string {
	if p.incomplete() && at == len(f.list)-1 {
		return "incomplete"
	}
	return "completed"
}

// itemID returns the id of a block's item, with a prefix like OpenAI's.
func (f *responseForm) itemID(at int) string {
	kind := [...]string{"rs", "msg", "fc"}[f.list[at].kind]
	if f.list[at].call.Custom != nil {
		kind = "ctc"
	}
	return fmt.Sprintf("%s_%s_%d", kind, f.id, at)
}

// item returns a block as an item, without its text while it is in progress.
func (f *responseForm) item(at int, b *block, status string) any {
	text := ""
	parts := []any{}
	if status != "in_progress" {
		text = b.text
		parts = append(parts, f.part(b, text))
	}
	switch {
	case b.kind == reasoningBlock && f.summary:
		return reasoningItem{ID: f.itemID(at), Type: "reasoning", Status: status, Summary: parts}
	case b.kind == reasoningBlock:
		return reasoningItem{ID: f.itemID(at), Type: "reasoning", Status: status, Summary: []any{}, Content: parts}
	case b.kind == textBlock:
		return messageItem{ID: f.itemID(at), Type: "message", Status: status, Role: "assistant", Content: parts}
	}
	name := b.call.Function.Name
	as, known := f.a.call.offered[name]
	if !known {
		as.name = name
	}
	head := calledItem{ID: f.itemID(at), Type: "function_call", CallID: b.call.ID, Name: as.name, Namespace: as.namespace}
	if as.custom {
		head.Type = "custom_tool_call"
		return customItem{head, text}
	}
	return functionItem{head, status, text}
}

// part returns the content of a block.
func (f *responseForm) part(b *block, text string) any {
	switch {
	case b.kind == reasoningBlock && f.summary:
		return reasoningPart{"summary_text", text}
	case b.kind == reasoningBlock:
		return reasoningPart{"reasoning_text", text}
	}
	probs := b.probs
	if text == "" {
		probs = nil
	}
	return textPart{"output_text", text, []any{}, f.logprobs(probs)}
}

func (f *responseForm) logprobs(probs []logprob) []chatLogprob {
	if all := f.a.call.chatLogprobs(probs); all != nil {
		return all.Content
	}
	return []chatLogprob{}
}

func (f *responseForm) whole(list []piece) any {
	f.add(&list[0])
	return f.response(&list[0])
}
