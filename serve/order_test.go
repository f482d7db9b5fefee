package serve_test

import (
	"testing"

	"github.com/grovellm/grove/serve"
)

// Where keys are needed, the header of a gateway parts a key's tenant: prompts are not shared
// between its values. Without keys it does not.
func TestFairnessHeader(t *testing.T) {
	const body = `{"prompt":"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen one two three four five six","max_tokens":2}`
	for _, header := range []string{"X-Gateway-Inference-Fairness-Id", "X-Llm-D-Inference-Fairness-Id"} {
		for _, keys := range [][]string{nil, {"key"}} {
			s := start(t, tiny(t, "tiny-qwen3", 1024), serve.Options{Keys: keys})
			cached := func(user string) float64 {
				status, _, text := s.send("POST", "/v1/completions", body, "X-Api-Key", "key", header, user)
				if status != 200 {
					t.Fatal(text)
				}
				n, _ := at(object(t, text), "usage.prompt_tokens_details.cached_tokens").(float64)
				return n
			}
			first := cached("a")
			again := cached("a")
			other := cached("b")
			if first != 0 || again == 0 || (other == 0) != (keys != nil) {
				t.Errorf("%s with keys %q: %v, %v and %v tokens are from the cache", header, keys, first, again, other)
			}
		}
	}
}
