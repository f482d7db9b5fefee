// Package callform knows the formats of models' tool calls. Input: a chat template and, later, the
// model's text. Output: the format of its calls, which grammars enforce, and the calls themselves.
// Read form.go first, then find.go, which finds the form by rendering calls through the template,
// and reader.go, which reads calls back as their text comes.
package callform

import "strings"

// Of is the form that a *chat.CallForm holds. Package chat sets it.
var Of func(form any) *Form

// MarksOf and AnswerOf are the marks around reasoning and around the answer in the turns of a *chat.Layout; empty where
// its template knows none. Package chat sets them.
var MarksOf, AnswerOf func(layout any) Marks

// Marks are what stands around a part of a turn.
type Marks struct{ Begin, End string }

// AllMarks are those around the reasoning of models whose templates may not show reasoning, the commonest first.
var AllMarks = []Marks{{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<seed:think>", "</seed:think>"},
	{"<|channel>thought", "<channel|>"}, Channels, {"<|inner_prefix|>", "<|inner_suffix|>"},
	{"Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"}, {"<thought>", "</thought>"}}

// Answers are the marks around the answer of models that write them behind reasoning alone. Known are the words of a
// template, the first of which ends reasoning: Granite 3.3's, Hunyuan's and Apriel 1.5's.
var Answers = []struct {
	Known [2]string
	Marks
}{
	{[2]string{"</think>", "<response></response>"}, Marks{"<response>", "</response>"}},
	{[2]string{"</think>", "</answer>"}, Marks{"<answer>", "</answer>"}},
	{[2]string{"[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"}, Marks{"", "[END FINAL RESPONSE]"}},
}

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
