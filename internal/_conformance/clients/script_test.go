package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// A scripted model gives its answers through the server, by the conversation's state, with every form of template.
func TestScript(t *testing.T) {
	const arguments = `{"path":"a b.go","text":"x, y: \"z\"\n"}`
	for name, messages := range map[string]string{"with tools": withTools, "without": withoutTools} {
		path := filepath.Join(t.TempDir(), "scripted.gguf")
		answers := []answer{call(offers("edit", 0), "edit", arguments), say("s.result == '' or 'written' in s.result",
			"It is done: well."), bystander}
		if err := writeModel(path, messages, answers, 4096); err != nil {
			t.Fatal(err)
		}
		m, err := grove.Open(path, grove.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s, err := serve.New(serve.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s.SetModel(&serve.Model{Model: m, Name: "scripted"})
		h := httptest.NewServer(s)
		defer h.Close()
		const tools = `"tools": [{"type": "function", "function": {"name": "edit", "parameters": {"type": "object",
			"properties": {"path": {"type": "string"}, "text": {"type": "string"}}, "required": ["path", "text"]}}}]`
		const ask = `{"role": "user", "content": "Edit."}`
		const called = `{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "edit", "arguments": "{}"}}]}`
		for _, c := range []struct{ messages, tools, content, arguments string }{
			{ask, tools, "", arguments},
			{ask, `"tools": []`, "It is done: well.", ""},
			{ask + "," + called + `, {"role": "tool", "tool_call_id": "a", "content": "written"}`, tools, "It is done: well.", ""},
			{ask + "," + called + `, {"role": "tool", "tool_call_id": "a", "content": "lost"}`, tools, "A greeting", ""},
		} {
			content, got := chatOnce(t, h.URL, `{"messages": [`+c.messages+`], `+c.tools+`}`)
			if content != c.content || got != c.arguments {
				t.Errorf("%s: %s: %q with %q, want %q with %q", name, c.messages, content, got, c.content, c.arguments)
			}
		}
	}
}

// chatOnce asks for an answer, and returns its text and the arguments of its call without spaces.
func chatOnce(t *testing.T, url, body string) (content, arguments string) {
	t.Helper()
	r, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Choices []struct {
			Message struct {
				Content string
				Calls   []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal(text, &a); err != nil || len(a.Choices) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	said := a.Choices[0].Message
	if len(said.Calls) == 0 {
		return said.Content, ""
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(said.Calls[0].Function.Arguments)); err != nil {
		t.Fatal(err)
	}
	return said.Content, compact.String()
}
