package grove_test

import (
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

// The text of n tokens is a prefix of the text of more: if the last character is incomplete, it is left out.
func TestTextCutWithinCharacters(t *testing.T) {
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	whole, cut := "", 0
	for n := 40; n > 0; n-- {
		r, err := grove.Collect(m.Generate(t.Context(), "x", grove.Request{MaxTokens: n, Regex: "(é|日|🙂){40}",
			Sampling: grove.Sampling{Temperature: 1, Seed: 5}}))
		if err != nil {
			t.Fatal(err)
		}
		if whole == "" {
			whole = r.Text
		}
		if !strings.HasPrefix(whole, r.Text) || strings.Contains(r.Text, "\ufffd") {
			t.Errorf("%d tokens: %q is no beginning of %q", n, r.Text, whole)
		}
		streamed := ""
		for chunk, err := range m.Generate(t.Context(), "x", grove.Request{MaxTokens: n, Regex: "(é|日|🙂){40}",
			Sampling: grove.Sampling{Temperature: 1, Seed: 5}}) {
			if err != nil {
				t.Fatal(err)
			}
			streamed += chunk.Text
		}
		if streamed != r.Text {
			t.Errorf("%d tokens: streamed %q, whole %q", n, streamed, r.Text)
		}
		if len(r.Tokens) > 0 && m.Tokenizer().Decode(r.Tokens, tokenizer.DecodeOptions{}) != r.Text {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no text was cut within a character: the test shows nothing")
	}
}
