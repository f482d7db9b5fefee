// What stands around reasoning and around the answer.

package callform

import (
	"regexp"
	"strings"
)

const probeThought = "qzthought"

// markBefore is the mark at the end of a text.
var markBefore = regexp.MustCompile(`(` + markup.String() + `)\s*$`)

// FindMarks finds what a template writes around the reasoning and the answer of a turn, by rendering turns that have
// them. Marks are empty if it writes none.
func FindMarks(t *Template) (thought, answer Marks) {
	p := probe{t: t, bare: true}
	prompt, err := p.render("")
	if err != nil {
		return thought, answer
	}
	said, err := p.render(quoteJSON(probeContent))
	intro, outro, ok := strings.Cut(said, probeContent)
	if err != nil || !ok {
		return thought, answer
	}
	answer.Begin = t.opening(intro, prompt)
	answer.End = markAtBeginning(outro)
	if id, known := t.Tokenizer.Find(answer.End); answer.Begin == "" || known && t.Tokenizer.IsEOG(id) {
		answer.End = ""
	}
	for _, content := range []string{probeContent, ""} { // some templates show reasoning only before calls
		var calls []probeCall
		if content == "" {
			calls = append(calls, plainCall(0, 1))
			p.bare = false
		}
		text, _ := p.render(quoteJSON(content)+`, "reasoning_content": `+quoteJSON(probeThought), calls...)
		before, behind, _ := strings.Cut(text, probeThought)
		begin, end := strings.TrimSpace(markBefore.FindString(before)), markAtBeginning(behind)
		if begin == "" || end == "" || strings.Contains(withoutThinking(intro), begin) {
			continue
		}
		if between, _, found := strings.Cut(behind, answer.Begin+probeContent); found {
			end = strings.TrimSpace(between) // with what begins a further message
		}
		return Marks{begin, end}, answer
	}
	return thought, answer
}

// markAtBeginning is the mark with which a text begins.
func markAtBeginning(text string) string {
	text = strings.TrimSpace(text)
	if at := markup.FindStringIndex(text); at != nil && at[0] == 0 {
		return text[:at[1]]
	}
	return ""
}
