package serve

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/tokenizer"
)

// chatOptions are the fields of requests to answer a conversation, in every protocol, in addition to options.
type chatOptions struct {
	options
	Logprobs          field[bool]                       `json:"logprobs"`
	TopLogprobs       field[int]                        `json:"top_logprobs"`
	ParallelToolCalls field[bool]                       `json:"parallel_tool_calls"`
	ContinueFinal     field[bool]                       `json:"continue_final_message"`
	AddPrompt         field[bool]                       `json:"add_generation_prompt"`
	Truncate          field[bool]                       `json:"truncate"`
	Vars              field[map[string]json.RawMessage] `json:"chat_template_kwargs"`
	ReasoningFormat   field[string]                     `json:"reasoning_format"`
	ReasoningBudget   field[int]                        `json:"reasoning_budget"`
	LlamaBudget       field[int]                        `json:"reasoning_budget_tokens"` // names in llama.cpp
	LlamaBudgetOld    field[int]                        `json:"thinking_budget_tokens"`
	VLLMBudget        field[int]                        `json:"thinking_token_budget"` // names in vLLM
	Suffix            refused                           `json:"suffix" neutral:"\"\""`
}

// conversation is a request to answer a conversation, in any protocol.
type conversation struct {
	*chatOptions
	several
	path     string // of the field that holds the messages
	messages []message
	earlier  int // number of calls in them
	tools    toolset
}

// message is one message of a conversation.
type message struct {
	path    string // its place in the body
	role    string
	content string

	name      string
	reasoning string
	calls     []calledTool
	result    string  // the id of the call whose result this is
	null      bool    // the chat template wants null for missing content
	more      unknown // further fields, for the chat template

	unread []field[string] // the types of parts for which a line of the content stands
}

// calledTool is an earlier call in the form of chat templates, with an object as its arguments.
type calledTool struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func newCalledTool(id, name string, arguments json.RawMessage) calledTool {
	c := calledTool{ID: id, Type: "function"}
	c.Function.Name = name
	c.Function.Arguments = arguments
	return c
}

// laidOut returns the message in the form that the chat template reads.
func (m *message) laidOut() grove.Message {
	extra := unknown{}
	maps.Copy(extra, m.more)
	put := func(name string, value any, given bool) {
		if given {
			extra[name], _ = json.Marshal(value)
		}
	}
	put("name", m.name, m.name != "")
	put("reasoning_content", m.reasoning, m.reasoning != "")
	put("tool_calls", m.calls, len(m.calls) > 0)
	put("tool_call_id", m.result, m.result != "")
	put("content", nil, m.null)
	out := grove.Message{Role: m.role, Content: m.content}
	if out.Role == "developer" { // OpenAI's name, which templates do not know
		out.Role = "system"
	}
	if len(extra) > 0 {
		out.Extra, _ = json.Marshal(extra)
	}
	return out
}

// layOut returns the conversation in the form that the model's chat template reads. It leaves out
// lines of system messages that match one of the patterns.
func (v *conversation) layOut(layout *chat.Layout, cut []*regexp.Regexp) ([]grove.Message, error) {
	if len(v.messages) == 0 {
		return nil, fieldError(v.path, "the list is empty: give at least one message, with role user")
	}
	if err := v.checkUnread(); err != nil {
		return nil, err
	}
	if err := v.shapeCalls(layout); err != nil {
		return nil, err
	}
	list := make([]grove.Message, len(v.messages))
	for i := range v.messages {
		list[i] = v.messages[i].laidOut()
	}
	cutLines(list, cut)
	return list, nil
}

// promptEnd returns how the prompt ends: with the introduction of an answer, or with the last
// message, for the model to continue.
func (o *chatOptions) promptEnd() (chat.Options, error) {
	options := chat.Options{Prompt: o.AddPrompt.or(true), Continue: o.ContinueFinal.value, Vars: o.Vars.value}
	if options.Continue && o.AddPrompt.value {
		return options, o.ContinueFinal.fail("add_generation_prompt is true too: set only one of them")
	}
	return options, nil
}

// continueAssistant makes the model continue a last message of the assistant, if the protocol means
// that and the request does not say otherwise. Calls of tools cannot be continued.
func (v *conversation) continueAssistant() {
	if len(v.messages) == 0 || v.ContinueFinal.given || v.AddPrompt.given {
		return
	}
	last := &v.messages[len(v.messages)-1]
	if last.role == "assistant" && len(last.calls) == 0 {
		v.ContinueFinal.set(true)
	}
}

// setVariable sets a variable of the chat template.
func (o *chatOptions) setVariable(name string, value any) {
	vars := maps.Clone(o.Vars.value)
	if vars == nil {
		vars = map[string]json.RawMessage{}
	}
	vars[name], _ = json.Marshal(value)
	o.Vars.set(vars)
}

// budget returns the field that limits the tokens of reasoning.
func (o *chatOptions) budget() *field[int] {
	for _, f := range []*field[int]{&o.ReasoningBudget, &o.LlamaBudget, &o.LlamaBudgetOld, &o.VLLMBudget} {
		if f.given {
			return f
		}
	}
	return &o.ReasoningBudget
}

// thinkingVariables are the names by which chat templates know whether to reason: the usual one, Granite's and
// DeepSeek's, Cohere's, and MiniMax M3's, which is a word.
var thinkingVariables = []string{"enable_thinking", "thinking", "reasoning", "thinking_mode"}

// setThinking turns the model's reasoning on or off: by the variables of chat templates, and, for
// models that reason regardless, by a budget of 0.
func (o *chatOptions) setThinking(on bool) {
	for _, name := range thinkingVariables {
		o.setVariable(name, on)
	}
	o.setVariable("thinking_mode", "enabled")
	if !on {
		o.setVariable("thinking_mode", "disabled")
		o.ReasoningBudget.set(0)
	}
}

// choosesThinking reports whether variables of the chat template turn reasoning on or off.
func (o *chatOptions) choosesThinking() bool {
	return slices.ContainsFunc(thinkingVariables, func(name string) bool { return o.Vars.value[name] != nil })
}

// setEffort sets how much the model reasons, by one of OpenAI's levels. It keeps variables of the
// chat template that the request sets itself.
func (o *chatOptions) setEffort(effort string) {
	if effort == "" {
		return
	}
	if !o.choosesThinking() {
		o.setThinking(effort != "none")
	}
	if effort != "none" && o.Vars.value["reasoning_effort"] == nil {
		o.setVariable("reasoning_effort", effort)
	}
}

// newChat makes the call that answers a conversation.
func (x *exchange) newChat(m *Model, v *conversation) (*call, error) {
	c, err := x.newCall(m, &v.options, v.several)
	if err != nil {
		return nil, err
	}
	c.chat = true
	c.offered = v.tools.offered
	c.oldFunctions = v.tools.old
	c.promptPath = v.path
	if err := c.setLimits(v.chatOptions, x.s.o.MaxTokens); err != nil {
		return nil, err
	}
	ctx, end := x.limit()
	defer end(nil)
	warnings, err := c.setConversation(ctx, v, x.s.o.CutLines)
	x.warn(append(v.tools.warnings, warnings...))
	return c, err
}

// setLimits sets the most tokens and which log-probabilities are wanted, by the fields of chats.
func (c *call) setLimits(o *chatOptions, most int) error {
	c.logprobsPath = o.TopLogprobs.path
	c.request.Logprobs = o.Logprobs.value
	c.request.TopLogprobs = o.TopLogprobs.value
	budget, format := o.budget(), o.ReasoningFormat.value
	switch {
	case c.request.TopLogprobs > 0 && !c.request.Logprobs:
		return o.TopLogprobs.fail("the field needs logprobs: true")
	case budget.value < -1:
		return budget.fail("%d: want 0 or more tokens, or -1 for no limit", budget.value)
	case o.ReasoningFormat.given && !slices.Contains([]string{"", "none", "auto", "deepseek", "deepseek-legacy"}, format):
		return o.ReasoningFormat.fail("%q: want none, auto or deepseek", format)
	}
	return c.setLength(most, 0, &o.NPredict, &o.MaxCompletionTokens, &o.MaxTokens)
}

// setConversation makes the prompt with the model's chat template.
func (c *call) setConversation(ctx context.Context, v *conversation, cut []*regexp.Regexp) (warnings []string,
	err error) {
	if c.model.Tokenizer() == nil {
		return nil, errNoTokenizer
	}
	layout, err := c.model.Layout()
	if err != nil {
		return nil, err
	}
	options, err := v.promptEnd()
	if err != nil {
		return nil, err
	}
	messages, err := v.layOut(layout, cut)
	if err != nil {
		return nil, err
	}
	c.earlier = v.earlier
	warnings, err = c.setTools(ctx, v, layout)
	if err != nil {
		return warnings, err
	}
	if c.request.Tools != nil {
		options.Tools = v.tools.shown(layout)
	} else if c.constraint.grammar == "" && options.Prompt && !options.Continue {
		c.request.Tools = channels(layout)
	}
	tokens, leftOut, err := c.model.encode(layout, messages, options, v.Truncate.value)
	if leftOut > 0 {
		warnings = append(warnings, warning(v.path,
			"the conversation is longer than the context: its oldest %d messages were dropped", leftOut))
	}
	var long *longError
	switch {
	case errors.As(err, &long):
		return warnings, err
	case err != nil:
		return warnings, fieldError(v.path, "%v", err)
	}
	c.prompts = []prompt{{tokens: tokens}}
	begun := ""
	if options.Continue {
		begun = messages[len(messages)-1].Content
	}
	c.setReasoning(v.chatOptions, layout, begun)
	for _, end := range layout.Stop() {
		if !slices.Contains(c.request.Stop, end) {
			c.request.Stop = append(c.request.Stop, end)
			c.turnEnds = append(c.turnEnds, end)
		}
	}
	return warnings, nil
}

// channels returns an empty set of tools in the form of a model that marks reasoning and the answer
// by channels, or nil for other models.
func channels(layout *chat.Layout) *grove.Tools {
	if callform.MarksOf(layout) != callform.Channels {
		return nil
	}
	form, err := layout.CallForm()
	if err != nil || len(callform.Of(form).Thought.Assign) == 0 {
		return nil
	}
	return &grove.Tools{Form: form}
}

// setReasoning determines whether the model may reason before it answers: if its chat template
// knows the mark that ends reasoning, and the answer, whose beginning is in the prompt, is not past
// it. A prompt may have begun reasoning.
func (c *call) setReasoning(o *chatOptions, layout *chat.Layout, begun string) {
	budget := o.budget().or(-1)
	c.marks = callform.MarksOf(layout)
	c.answer = callform.AnswerOf(layout)
	if c.marks == callform.Channels {
		if c.request.Tools == nil {
			return
		}
		c.marks.End = "<|end|>" // of the message
	}
	begin := strings.TrimSpace(c.marks.Begin)
	open := strings.LastIndex(begun, begin) > strings.LastIndex(begun, c.marks.End)
	if strings.TrimSpace(begun) != "" && !open {
		c.answer.Begin = ""
		return
	}
	if begin == "" {
		return
	}
	r := &c.request
	c.verbatim = o.ReasoningFormat.value == "none"
	if c.verbatim && (budget < 0 || r.Grammar+r.JSONSchema+r.Regex != "") { // only the content must match
		return
	}
	r.Reasoning = true
	r.StopInReasoning = c.verbatim
	switch {
	case budget == 0:
		r.ReasoningBudget = -1
	case budget > 0:
		r.ReasoningBudget = budget
	}
	tokens := c.prompts[0].tokens
	text := c.model.Tokenizer().Decode(tokens[max(0, len(tokens)-24):], tokenizer.DecodeOptions{Special: true})
	r.ReasoningOpen = open || strings.HasSuffix(strings.TrimSpace(text), begin)
}
