package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func templateOf(t testing.TB, name string) *Layout {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata/templates", name))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Parse(toy(t, `{"bos_token": "<s>", "eos_token": "</s>"}`, "<s>", "</s>"), string(source))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A last message that is gone on with is rendered as transformers renders it. testdata/continued.py
// writes the values.
func TestContinuedByPython(t *testing.T) {
	var golden struct {
		Rendered []struct{ Template, Content, Text string }
	}
	b, err := os.ReadFile("testdata/continued.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	for _, want := range golden.Rendered {
		o := Options{Continue: true, Prompt: true, Now: time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)}
		got, err := templateOf(t, want.Template).Render([]Message{{Role: "user", Content: "Hi"},
			{Role: "assistant", Content: want.Content}}, o)
		if err != nil || got != want.Text {
			t.Errorf("%s, %q: %q, %v, want %q", want.Template, want.Content, got, err, want.Text)
		}
	}
}

// A conversation whose last message is gone on with is a beginning of the closed one, which ends in
// that message's content.
func TestContinue(t *testing.T) {
	var layouts []*Layout
	for _, name := range []string{"chatml.jinja", "headers.jinja", "spaces.jinja", "strict.jinja", "tools.jinja"} {
		layouts = append(layouts, templateOf(t, name))
	}
	words := rapid.StringMatching(`[a-z é{}<>|"]{0,12}`)
	rapid.Check(t, func(rt *rapid.T) {
		l := rapid.SampledFrom(layouts).Draw(rt, "layout")
		var messages []Message
		for range rapid.IntRange(1, 3).Draw(rt, "turns") {
			messages = append(messages, Message{Role: "user", Content: words.Draw(rt, "question")},
				Message{Role: "assistant", Content: words.Draw(rt, "answer")})
		}
		o := Options{Now: time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)}
		closed, err := l.Render(messages, o)
		if err != nil {
			rt.Fatal(err)
		}
		o.Continue = true
		open, err := l.Render(messages, o)
		if err != nil {
			rt.Fatal(err)
		}
		last := strings.TrimSpace(messages[len(messages)-1].Content)
		if !strings.HasPrefix(closed, strings.TrimRight(open, " ")) || !strings.HasSuffix(strings.TrimSpace(open), last) {
			rt.Fatalf("%q, closed %q", open, closed)
		}
	})
	if _, err := layouts[0].Render([]Message{{Role: "user", Content: "a", Extra: json.RawMessage(`{"content": null}`)}},
		Options{Continue: true}); err == nil {
		t.Error("a message without content is continued")
	}
	if _, err := layouts[0].Render(nil, Options{Continue: true}); err == nil {
		t.Error("no message is continued")
	}
}
