package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/grovellm/grove/serve"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func client(base string) openai.Client {
	return openai.NewClient(option.WithBaseURL(base), option.WithAPIKey("secret"), option.WithMaxRetries(0))
}

func chat(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:               "grove/model",
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage(text)},
		MaxCompletionTokens: openai.Int(24), Seed: openai.Int(1), Temperature: openai.Float(0.7),
	}
}

// A streamed answer, put together by the client, is the answer that is not streamed.
func TestOpenAIChat(t *testing.T) {
	c := client(start(t, serve.Options{}))
	p := chat("func main() {")
	p.N = openai.Int(2)
	p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(3)
	whole, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 2 || whole.Usage.CompletionTokens == 0 || whole.Model != "grove/model" {
		t.Errorf("%s", whole.RawJSON())
	}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Fatalf("the client does not take %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all.Choices) != 2 || all.Usage.TotalTokens != whole.Usage.TotalTokens {
		t.Fatalf("streamed %d choices, %d tokens; want %d", len(all.Choices), all.Usage.TotalTokens, whole.Usage.TotalTokens)
	}
	for i, got := range all.Choices {
		want := whole.Choices[i]
		if got.Message.Content != want.Message.Content || got.FinishReason != want.FinishReason ||
			got.Message.Role != want.Message.Role {
			t.Errorf("choice %d: streamed %q, %s; want %q, %s", i, got.Message.Content, got.FinishReason,
				want.Message.Content, want.FinishReason)
		}
		text := ""
		for _, l := range want.Logprobs.Content {
			text += l.Token
			if len(l.TopLogprobs) != 3 || l.TopLogprobs[0].Logprob < l.Logprob || l.Logprob > 0 {
				t.Errorf("choice %d: %s", i, l.RawJSON())
			}
		}
		if len(want.Logprobs.Content) == 0 || !strings.HasPrefix(text, want.Message.Content) {
			t.Errorf("choice %d: the tokens with log-probabilities are %q, want %q", i, text, want.Message.Content)
		}
	}
	if whole.Choices[0].Message.Content == whole.Choices[1].Message.Content {
		t.Error("both choices are the same")
	}
}

func TestOpenAICompletions(t *testing.T) {
	c := client(start(t, serve.Options{}))
	p := openai.CompletionNewParams{
		Model: "grove/model", Prompt: openai.CompletionNewParamsPromptUnion{
			OfArrayOfStrings: []string{"func main() {", "type T struct {"}},
		MaxTokens: openai.Int(12), Temperature: openai.Float(0), Echo: openai.Bool(true), Logprobs: openai.Int(2),
		Stop: openai.CompletionNewParamsStopUnion{OfString: openai.String("}")},
	}
	a, err := c.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Choices) != 2 || !strings.HasPrefix(a.Choices[0].Text, "func main() {") ||
		len(a.Choices[0].Logprobs.TokenLogprobs) < 3 {
		t.Errorf("%s", a.RawJSON())
	}
	list, err := c.Models.List(t.Context())
	if err != nil || len(list.Data) != 1 || list.Data[0].ID != "grove/model" {
		t.Errorf("models: %v, %v", list, err)
	}
	if m, err := c.Models.Get(t.Context(), "grove/model"); err != nil || m.ID != "grove/model" {
		t.Errorf("model: %v, %v", m, err)
	}
}

// Errors reach the client with status, code and the name of the field.
func TestOpenAIErrors(t *testing.T) {
	base := start(t, serve.Options{Keys: []string{"secret"}})
	c := client(base)
	fails := func(what string, err error, status int, param, code string) {
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != status || e.Param != param || e.Code != code || e.Message == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	p := chat("x")
	p.TopP = openai.Float(2)
	_, err := c.Chat.Completions.New(t.Context(), p)
	fails("top_p", err, 400, "top_p", "")
	_, err = c.Chat.Completions.New(t.Context(), chat(strings.Repeat("long ", 5000)))
	fails("a long prompt", err, 400, "messages", "context_length_exceeded")
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	for stream.Next() {
	}
	fails("a stream", stream.Err(), 400, "top_p", "")
	_, err = c.Models.Get(t.Context(), "other")
	fails("another model", err, 404, "", "model_not_found")
	other := openai.NewClient(option.WithBaseURL(base), option.WithAPIKey("wrong"), option.WithMaxRetries(0))
	_, err = other.Chat.Completions.New(t.Context(), chat("x"))
	fails("a wrong key", err, 401, "", "invalid_api_key")
}

// A client that cancels gets its own error, and the server goes on.
func TestOpenAICancel(t *testing.T) {
	c := client(start(t, serve.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	p := chat("x")
	p.MaxCompletionTokens = openai.Int(1500)
	stream := c.Chat.Completions.NewStreaming(ctx, p, option.WithJSONSet("ignore_eos", true))
	for n := 0; stream.Next(); n++ {
		if n == 3 {
			cancel()
		}
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("the cancelled stream ends with %v", stream.Err())
	}
	cancel()
	if _, err := c.Chat.Completions.New(t.Context(), chat("x")); err != nil {
		t.Error(err)
	}
}
