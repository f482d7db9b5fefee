package conformance

import (
	"math"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"

	"github.com/grovellm/grove/serve"
)

// Both clients get the same embeddings, of length 1.
func TestEmbeddings(t *testing.T) {
	texts := []string{"func main() {", "type T struct {"}
	base := client(start(t, serve.Options{}))
	a, err := base.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "grove/model",
		Input:          openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat})
	if err != nil {
		t.Fatal(err)
	}
	b, err := ollamaClient(t, serve.Options{}).Embed(t.Context(), &api.EmbedRequest{Model: "grove/model", Input: texts})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Data) != 2 || len(b.Embeddings) != 2 || a.Usage.PromptTokens == 0 {
		t.Fatalf("%s; %d", a.RawJSON(), len(b.Embeddings))
	}
	for i := range texts {
		square := 0.0
		for j, x := range a.Data[i].Embedding {
			square += x * x
			if math.Abs(x-float64(b.Embeddings[i][j])) > 1e-6 {
				t.Fatalf("text %d, number %d: %v and %v", i, j, x, b.Embeddings[i][j])
			}
		}
		if math.Abs(square-1) > 1e-5 {
			t.Errorf("text %d: length² %v", i, square)
		}
	}
}
