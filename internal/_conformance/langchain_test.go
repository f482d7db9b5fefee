package conformance

import (
	"context"
	"testing"

	"github.com/grovellm/grove/serve"
	"github.com/tmc/langchaingo/llms"
	langchain "github.com/tmc/langchaingo/llms/openai"
)

// langchaingo's pieces are its answer.
func TestLangChain(t *testing.T) {
	model, err := langchain.New(langchain.WithBaseURL(start(t, serve.Options{})), langchain.WithToken("secret"), langchain.WithModel("grove/model"))
	if err != nil {
		t.Fatal(err)
	}
	pieces := ""
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "func main() {")}
	options := []llms.CallOption{llms.WithMaxTokens(20), llms.WithTemperature(0), llms.WithSeed(1)}
	streamed, err := model.GenerateContent(t.Context(), messages, append(options, llms.WithStreamingFunc(func(_ context.Context, b []byte) error {
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
