package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/grovellm/grove/serve"
	"github.com/tmc/langchaingo/llms"
	langchain "github.com/tmc/langchaingo/llms/openai"
)

// langchaingo's pieces are its answer.
func TestLangChain(t *testing.T) {
	model, err := langchain.New(langchain.WithBaseURL(start(t, serve.Options{})), langchain.WithToken("secret"),
		langchain.WithModel("grove/model"))
	if err != nil {
		t.Fatal(err)
	}
	pieces := ""
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "func main() {")}
	options := []llms.CallOption{llms.WithMaxTokens(20), llms.WithTemperature(0), llms.WithSeed(1)}
	streamed, err := model.GenerateContent(t.Context(), messages,
		append(options, llms.WithStreamingFunc(func(_ context.Context, b []byte) error {
			pieces += string(b)
			return nil
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := model.GenerateContent(t.Context(), messages, options...)
	if err != nil {
		t.Fatal(err)
	}
	if want := whole.Choices[0].Content; want == "" || pieces != want || streamed.Choices[0].Content != want {
		t.Errorf("pieces %q, put together %q; want %q", pieces, streamed.Choices[0].Content, want)
	}
}

// langchaingo's calls of tools, structured output, errors and cancelling.
func TestLangChainTools(t *testing.T) {
	base := start(t, serve.Options{})
	open := func(o ...langchain.Option) *langchain.LLM {
		t.Helper()
		model, err := langchain.New(append(o, langchain.WithBaseURL(base), langchain.WithToken("secret"),
			langchain.WithModel("grove/model"))...)
		if err != nil {
			t.Fatal(err)
		}
		return model
	}
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "func main() {")}
	options := []llms.CallOption{llms.WithMaxTokens(60), llms.WithTemperature(0), llms.WithSeed(1)}
	size := func(text string) bool {
		var v struct{ Size *int }
		return json.Unmarshal([]byte(text), &v) == nil && v.Size != nil
	}
	tools := []llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "resize", Parameters: schema}}}
	a, err := open().GenerateContent(t.Context(), messages,
		append(options, llms.WithTools(tools), llms.WithToolChoice("required"))...)
	if err != nil {
		t.Fatal(err)
	}
	if calls := a.Choices[0].ToolCalls; len(calls) == 0 || calls[0].FunctionCall.Name != "resize" ||
		!size(calls[0].FunctionCall.Arguments) {
		t.Errorf("%+v", a.Choices[0])
	}
	format := &langchain.ResponseFormat{Type: "json_schema",
		JSONSchema: &langchain.ResponseFormatJSONSchema{Name: "x", Strict: true,
			Schema: &langchain.ResponseFormatJSONSchemaProperty{
				Type: "object", Properties: map[string]*langchain.ResponseFormatJSONSchemaProperty{"size": {Type: "integer"}},
				Required: []string{"size"}}}}
	a, err = open(langchain.WithResponseFormat(format)).GenerateContent(t.Context(), messages, options...)
	if err != nil || !size(a.Choices[0].Content) {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := open().GenerateContent(t.Context(), messages,
		append(options, llms.WithPresencePenalty(5000))...); err == nil ||
		!strings.Contains(err.Error(), "presence_penalty") {
		t.Errorf("presence_penalty: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pieces := 0 // the client ends without an error
	if _, err := open().GenerateContent(ctx, messages,
		append(options, llms.WithStreamingFunc(func(context.Context, []byte) error {
			pieces++
			cancel()
			return nil
		}))...); err != nil && !errors.Is(err, context.Canceled) || pieces == 0 || pieces > 12 {
		t.Errorf("cancelled: %d pieces, %v", pieces, err)
	}
	if _, err := open().GenerateContent(t.Context(), messages, options...); err != nil {
		t.Error(err)
	}
}
