// Package callform knows the formats of models' tool calls. Input: a chat template and, later, the
// model's text. Output: the format of its calls, which grammars enforce, and the calls themselves.
// Read form.go first, then find.go, which finds the form by rendering calls through the template,
// and reader.go, which reads calls back as their text comes.
package callform

import "strings"

// Of is the form that a *chat.CallForm holds. Package chat sets it.
var Of func(form any) *Form

// MarksOf are those that a *chat.Layout's template knows; empty where it knows none. Package chat sets it.
var MarksOf func(layout any) Marks

// Marks are what stands around reasoning.
type Marks struct{ Begin, End string }

// AllMarks are those that models have, the commonest first.
var AllMarks = []Marks{{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<seed:think>", "</seed:think>"},
	{"<|channel>thought\n", "<channel|>"}, Channels}

// Cut splits a text that begins with reasoning at the end of the reasoning: at the mark End, or at a call, since some
// models sometimes omit the mark. opens is Form.Opens, or empty; rest begins with the call. If the reasoning has not
// ended, rest is the part that may still become its end.
func (m Marks) Cut(text, opens string) (thought, mark, rest string, ended bool) {
	at := strings.Index(text, m.End)
	mark = m.End
	if call := strings.Index(text, opens); opens != "" && call >= 0 && (at < 0 || call < at) {
		at, mark = call, ""
	}
	if at >= 0 {
		return text[:at], mark, text[at+len(mark):], true
	}
	at = len(text) - max(Overlap(text, m.End), Overlap(text, opens))
	return text[:at], "", text[at:], false
}

// Channels are gpt-oss's: behind reasoning there are a further message and its channel. A form knows them.
var Channels = Marks{"<|channel|>analysis<|message|>", "<|channel|>final<|message|>"}
