package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"github.com/grovellm/grove/serve"
)

func ollamaClient(t *testing.T, o serve.Options) *api.Client {
	t.Helper()
	u, err := url.Parse(strings.TrimSuffix(start(t, o), "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	return api.NewClient(u, http.DefaultClient)
}

func ollamaChat() *api.ChatRequest {
	return &api.ChatRequest{Model: "grove/model", Messages: []api.Message{{Role: "system", Content: "Be brief."},
		{Role: "user", Content: "func main() {"}},
		Options: map[string]any{"num_predict": 60, "temperature": 0, "repeat_penalty": 1.1, "num_ctx": 512}}
}

// What the client gets in pieces is what it gets whole: text, calls, structured output and
// log-probabilities.
func TestOllamaChat(t *testing.T) {
	c := ollamaClient(t, serve.Options{})
	var tools api.Tools
	parameters, _ := json.Marshal(schema)
	if err := json.Unmarshal([]byte(`[{"type":"function","function":{"name":"resize","parameters":`+string(parameters)+`}}]`),
		&tools); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*api.ChatRequest){
		"text":     func(*api.ChatRequest) {},
		"stop":     func(r *api.ChatRequest) { r.Options["stop"] = []string{"\n"} },
		"schema":   func(r *api.ChatRequest) { r.Format = parameters },
		"logprobs": func(r *api.ChatRequest) { r.Logprobs, r.TopLogprobs = true, 2 },
		"tools": func(r *api.ChatRequest) {
			r.Tools, r.Options["tool_choice"] = tools, "required"
			r.Options["parallel_tool_calls"] = false
		},
		"result": func(r *api.ChatRequest) {
			arguments := api.NewToolCallFunctionArguments()
			arguments.Set("size", 1)
			r.Messages = append(r.Messages, api.Message{Role: "assistant",
				ToolCalls: []api.ToolCall{{Function: api.ToolCallFunction{Name: "resize", Arguments: arguments}}}},
				api.Message{Role: "tool", Content: "done", ToolName: "resize"})
		},
	} {
		ask := func(stream bool) (all api.ChatResponse) {
			r := ollamaChat()
			change(r)
			r.Stream = &stream
			n := 0
			if err := c.Chat(t.Context(), r, func(p api.ChatResponse) error {
				n++
				before := all
				all = p
				all.Message.Content = before.Message.Content + p.Message.Content
				all.Message.ToolCalls = append(before.Message.ToolCalls, p.Message.ToolCalls...)
				all.Logprobs = append(before.Logprobs, p.Logprobs...)
				return nil
			}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !all.Done || !stream && n != 1 {
				t.Errorf("%s: %d answers, the last %+v", name, n, all)
			}
			return all
		}
		streamed, whole := ask(true), ask(false)
		if streamed.Message.Content != whole.Message.Content || streamed.DoneReason != whole.DoneReason ||
			len(streamed.Message.ToolCalls) != len(whole.Message.ToolCalls) ||
			len(streamed.Logprobs) != len(whole.Logprobs) || streamed.EvalCount != whole.EvalCount ||
			whole.EvalCount == 0 || whole.TotalDuration <= 0 {
			t.Errorf("%s: streamed %+v, whole %+v", name, streamed, whole)
		}
		switch name {
		case "schema":
			var v struct{ Size *int }
			if err := json.Unmarshal([]byte(whole.Message.Content), &v); err != nil || v.Size == nil {
				t.Errorf("%s: %+v", name, whole)
			}
		case "tools":
			if len(whole.Message.ToolCalls) != 1 || whole.Message.ToolCalls[0].Function.Name != "resize" ||
				whole.Message.ToolCalls[0].Function.Arguments.Len() != 1 {
				t.Errorf("%s: %+v", name, whole)
			}
		case "logprobs":
			if len(whole.Logprobs) < whole.EvalCount-1 || len(whole.Logprobs[0].TopLogprobs) != 2 {
				t.Errorf("%s: %+v", name, whole)
			}
		}
	}
}

// The client's other calls: a generation, and what it asks about models.
func TestOllamaModels(t *testing.T) {
	c := ollamaClient(t, serve.Options{})
	text := ""
	if err := c.Generate(t.Context(), &api.GenerateRequest{Model: "grove/model", Prompt: "func main() {", Raw: true,
		Options: map[string]any{"num_predict": 10}},
		func(r api.GenerateResponse) error { text += r.Response; return nil }); err != nil || text == "" {
		t.Errorf("generated %q, %v", text, err)
	}
	if err := c.Heartbeat(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := c.Version(t.Context()); err != nil || v == "" {
		t.Errorf("version %q, %v", v, err)
	}
	if list, err := c.List(t.Context()); err != nil || len(list.Models) != 1 ||
		list.Models[0].Name != "grove/model" || list.Models[0].ModifiedAt.IsZero() {
		t.Errorf("models %+v, %v", list, err)
	}
	if list, err := c.ListRunning(t.Context()); err != nil || len(list.Models) != 1 ||
		list.Models[0].ContextLength == 0 {
		t.Errorf("running %+v, %v", list, err)
	}
	if m, err := c.Show(t.Context(), &api.ShowRequest{Model: "grove/model"}); err != nil || m.Details.Family == "" ||
		len(m.Capabilities) < 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := c.Pull(t.Context(), &api.PullRequest{Model: "a/b"},
		func(api.ProgressResponse) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "grove pull a/b") {
		t.Errorf("pull: %v", err)
	}
}

// Errors reach the client with status and message; a chat that it cancels ends, and the server goes
// on.
func TestOllamaErrors(t *testing.T) {
	c := ollamaClient(t, serve.Options{})
	r := ollamaChat()
	r.Options["top_p"] = 2
	var e api.StatusError
	if err := c.Chat(t.Context(), r, func(api.ChatResponse) error { return nil }); !errors.As(err, &e) ||
		e.StatusCode != 400 || !strings.HasPrefix(e.ErrorMessage, "options.top_p: ") {
		t.Errorf("top_p: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r = ollamaChat()
	r.Options = map[string]any{"num_predict": 1500, "ignore_eos": true}
	n := 0
	err := c.Chat(ctx, r, func(api.ChatResponse) error {
		n++
		if n == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled chat ends with %v", err)
	}
	cancel()
	if err := c.Chat(t.Context(), ollamaChat(), func(api.ChatResponse) error { return nil }); err != nil {
		t.Error(err)
	}
}
