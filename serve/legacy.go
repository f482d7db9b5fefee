package serve

import "encoding/json"

// OpenAI's first form of tools: functions and function_call in the request, function_call in messages
// of the assistant, and results in messages of the role function.

// oldFunctions are the fields of a request.
type oldFunctions struct {
	Functions    field[[]functionBody] `json:"functions"`
	FunctionCall field[oldChoice]      `json:"function_call"`
}

// oldChoice is a word, or the function to call.
type oldChoice struct {
	word string
	Name field[string] `json:"name"`
}

func (c *oldChoice) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if word, isWord := decode[string](raw); isWord {
		c.word = word
		return nil
	}
	type object oldChoice
	return d.read(path, raw, (*object)(c))
}

// offerOld offers functions. The answer has one call, in the same form. If there are tools too,
// these fields are not supported and must change nothing.
func (v *conversation) offerOld(o *oldFunctions, tools bool) error {
	choice := &o.FunctionCall
	if len(o.Functions.value) == 0 || tools {
		switch {
		case len(o.Functions.value) > 0:
			return o.Functions.fail(unlike)
		case choice.given && choice.value.word != "none" && choice.value.word != "auto":
			return choice.fail(unlike)
		}
		return nil
	}
	v.tools.path = o.Functions.path
	v.tools.list = o.Functions.value
	v.tools.old = true
	v.ParallelToolCalls.set(false)
	switch {
	case !choice.given:
		return nil
	case choice.value.word != "":
		return v.tools.chooseMode(choice.value.word, choice.path)
	}
	return v.tools.chooseOne(choice.value.Name.value, choice.value.Name.path)
}

// oldCalled is an earlier call.
type oldCalled struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// oldCall returns the call of an answer in the old form, or nil if there is none.
func (c *call) oldCall(calls []toolCall) *calledFunction {
	if !c.oldFunctions || len(calls) == 0 {
		return nil
	}
	return &calls[0].Function
}

// oldFinish returns why an answer in the old form ended.
func (c *call) oldFinish(reason string) string {
	if c.oldFunctions && reason == "tool_calls" {
		return "function_call"
	}
	return reason
}
