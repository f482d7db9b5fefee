package grove_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/models"
)

// bigram drafts the token that followed the last one earlier in the text, then the one that followed that, and so on.
type bigram struct{ draft.Base }

// bigramState is what it knows of one text.
type bigramState struct {
	next map[int32]int32 // the token that followed each token last
	last int32           // the last token read; -1: none yet
}

func (*bigramState) Close() {}

func (*bigram) Begin(draft.Options) (draft.State, error) {
	return &bigramState{next: map[int32]int32{}, last: -1}, nil
}

// Commit reads the text, in order and without gaps: prompts in chunks, then what each round accepted.
func (*bigram) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		s := r.State.(*bigramState)
		for _, token := range r.Tokens {
			if s.last >= 0 {
				s.next[s.last] = token
			}
			s.last = token
		}
	}
	return nil
}

// Propose appends a chain to each request's tree, whose root is the last token of the text and not committed yet.
func (d *bigram) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		s, node := r.State.(*bigramState), 0
		for r.Tree.Len() < r.Budget && int(r.Tree.Depth[node]) < r.Depth {
			token, known := s.next[r.Tree.Token[node]]
			if !known {
				break
			}
			node = r.Tree.Append(node, token, -0.7) // its own probability: e^-0.7, about a half
		}
	}
	return make([]draft.Proposal, len(requests)), ctx.Err()
}

func init() {
	draft.Register(draft.Family{
		Name: "bigram", Help: "the token that followed the last one before; no model",
		New: func(options string, _ draft.Target) (draft.Drafter, error) {
			return &bigram{}, draft.Parse(options, &struct{}{}) // it has no options
		},
	})
}

// The end of the drafter.

// A program's own drafter is used by its name. The text is that of plain decoding.
func Example_drafter() {
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	generate := func(drafter string) *grove.Result {
		r, err := grove.Collect(m.Generate(context.Background(), "func main() {",
			grove.Request{MaxTokens: 96, Drafter: drafter, Uncontrolled: true}))
		if err != nil {
			log.Fatal(err)
		}
		return r
	}
	plain, drafted := generate("plain"), generate("bigram")
	fmt.Println("same text:", plain.Text == drafted.Text)
	fmt.Println("fewer passes:", drafted.Stats.Rounds < plain.Stats.Rounds)
	// Output:
	// same text: true
	// fewer passes: true
}

// The drafter of docs/write-a-drafter.md is the one above, in at most 60 lines.
func TestWriteADrafter(t *testing.T) {
	source, err := os.ReadFile("drafter_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/write-a-drafter.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "// bigram drafts")
	code, _, _ = strings.Cut("// bigram drafts"+code, "\n// The end of the drafter.")
	if n := strings.Count(code, "\n"); n > 60 {
		t.Errorf("the drafter has %d lines, want 60 at most", n)
	}
	if !strings.Contains(string(page), "\n)\n\n"+code+"```") {
		t.Error("docs/write-a-drafter.md has another drafter than drafter_example_test.go")
	}
}
