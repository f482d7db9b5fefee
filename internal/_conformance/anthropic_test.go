package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/grovellm/grove/serve"
)

func anthropicClient(base, key string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(strings.TrimSuffix(base, "/v1")), option.WithAPIKey(key),
		option.WithMaxRetries(0))
}

func message(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "grove/model", MaxTokens: 60, Temperature: anthropic.Float(0),
		System:   []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

var schema = map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}},
	"required":             []string{"size"},
	"additionalProperties": false}

// What the client puts together of a stream is the answer that is not streamed: text, calls and
// structured output.
func TestAnthropicMessages(t *testing.T) {
	c := anthropicClient(start(t, serve.Options{Limits: serve.Limits{Ping: 1}}), "secret") // a stream of mostly pings
	for name, change := range map[string]func(*anthropic.MessageNewParams){
		"text":   func(*anthropic.MessageNewParams) {},
		"stop":   func(p *anthropic.MessageNewParams) { p.StopSequences = []string{"\n"} },
		"schema": func(p *anthropic.MessageNewParams) { p.OutputConfig.Format.Schema = schema },
		"tools": func(p *anthropic.MessageNewParams) {
			p.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
				Properties: schema["properties"], Required: []string{"size"}}, "resize")}
			p.ToolChoice = anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{Name: "resize"}}
		},
		"result": func(p *anthropic.MessageNewParams) {
			p.Messages = append(p.Messages, anthropic.NewAssistantMessage(anthropic.NewToolUseBlock("t1",
				map[string]any{"size": 1}, "resize")),
				anthropic.NewUserMessage(anthropic.NewToolResultBlock("t1", "done", false)))
		},
	} {
		p := message("func main() {")
		change(&p)
		whole, err := c.Messages.New(t.Context(), p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var all anthropic.Message
		stream := c.Messages.NewStreaming(t.Context(), p)
		for stream.Next() {
			if err := all.Accumulate(stream.Current()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(whole.Content) == 0 || len(all.Content) != len(whole.Content) || all.StopReason != whole.StopReason ||
			all.Usage.OutputTokens != whole.Usage.OutputTokens {
			t.Fatalf("%s: streamed %s, whole %s", name, all.RawJSON(), whole.RawJSON())
		}
		input := func(b *anthropic.ContentBlockUnion) string { // as JSON without spaces
			var v any
			_ = json.Unmarshal(b.Input, &v)
			text, _ := json.Marshal(v)
			return string(text)
		}
		for i := range whole.Content {
			got, want := &all.Content[i], &whole.Content[i]
			if got.Type != want.Type || got.Text != want.Text || got.Name != want.Name || input(got) != input(want) {
				t.Errorf("%s: streamed %s, whole %s", name, all.RawJSON(), whole.RawJSON())
			}
		}
		first := whole.Content[0]
		switch name {
		case "schema", "tools":
			text := first.Text
			if name == "tools" {
				text = string(first.Input)
			}
			var v struct{ Size *int }
			if err := json.Unmarshal([]byte(text), &v); err != nil || v.Size == nil {
				t.Errorf("%s: %s", name, whole.RawJSON())
			}
			if name == "tools" && (first.Type != "tool_use" || first.Name != "resize") {
				t.Errorf("%s: %s", name, whole.RawJSON())
			}
		case "stop":
			if strings.Contains(first.Text, "\n") {
				t.Errorf("%s: %s", name, whole.RawJSON())
			}
		}
		n, err := c.Messages.CountTokens(t.Context(),
			anthropic.MessageCountTokensParams{Model: p.Model, Messages: p.Messages,
				System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System}})
		if err != nil || len(p.Tools) == 0 && n.InputTokens != whole.Usage.InputTokens+whole.Usage.CacheReadInputTokens {
			t.Errorf("%s: counted %v, usage %s: %v", name, n, whole.Usage.RawJSON(), err)
		}
	}
}

// Errors reach the client with status and type; a stream that it cancels ends with its error, and
// the server goes on.
func TestAnthropicErrors(t *testing.T) {
	base := start(t, serve.Options{Keys: []string{"secret"}})
	c := anthropicClient(base, "secret")
	fails := func(what string, err error, status int, kind string) {
		var e *anthropic.Error
		if !errors.As(err, &e) || e.StatusCode != status || string(e.Type()) != kind || e.RequestID == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	p := message("x")
	p.TopP = anthropic.Float(2)
	_, err := c.Messages.New(t.Context(), p)
	fails("top_p", err, 400, "invalid_request_error")
	stream := c.Messages.NewStreaming(t.Context(), p)
	for stream.Next() {
	}
	fails("a stream", stream.Err(), 400, "invalid_request_error")
	wrong := anthropicClient(base, "wrong")
	_, err = wrong.Messages.New(t.Context(), message("x"))
	fails("a wrong key", err, 401, "authentication_error")

	ctx, cancel := context.WithCancel(t.Context())
	p = message("x")
	p.MaxTokens = 1500
	stream = c.Messages.NewStreaming(ctx, p, option.WithJSONSet("ignore_eos", true))
	for n := 0; stream.Next(); n++ {
		if n == 3 {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("the cancelled stream ends with %v", stream.Err())
	}
	cancel()
	if _, err := c.Messages.New(t.Context(), message("x")); err != nil {
		t.Error(err)
	}
}

// The client lists the models that are served, on one page, and finds one by its name.
func TestAnthropicModels(t *testing.T) {
	c := anthropicClient(start(t, serve.Options{}), "secret")
	var listed []anthropic.ModelInfo
	pages := c.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{})
	for pages.Next() {
		listed = append(listed, pages.Current())
	}
	if err := pages.Err(); err != nil || len(listed) != 1 || listed[0].MaxInputTokens != 2048 ||
		listed[0].CreatedAt.IsZero() {
		t.Fatalf("models %+v, %v", listed, err)
	}
	one, err := c.Models.Get(t.Context(), listed[0].ID, anthropic.ModelGetParams{})
	if err != nil || one.ID != listed[0].ID || one.DisplayName != one.ID {
		t.Errorf("one model is %+v, %v", one, err)
	}
	var failed *anthropic.Error
	if _, err := c.Models.Get(t.Context(), "none", anthropic.ModelGetParams{}); !errors.As(err, &failed) ||
		failed.StatusCode != 404 {
		t.Errorf("a model that is not there: %v", err)
	}
}
