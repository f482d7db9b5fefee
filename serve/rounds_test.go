package serve_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
)

// roundCounts counts the rounds in a stream's events for each choice.
type roundCounts struct {
	text   string
	tokens []any
	rounds []map[string]any
}

func rounds(t testing.TB, events []map[string]any, n int) []roundCounts {
	t.Helper()
	all := make([]roundCounts, n)
	for _, e := range events {
		r, ok := e["round"].(map[string]any)
		if !ok {
			continue
		}
		c := &all[int(r["choice"].(float64))]
		c.rounds = append(c.rounds, r)
		c.tokens = append(c.tokens, r["tokens"].([]any)...)
		for _, p := range r["pieces"].([]any) {
			c.text += at(p, "text").(string)
		}
	}
	return all
}

// check reports errors in a choice's rounds: a tree's parents precede their children, its path goes from the
// root down, the path's tokens and one more are the round's, and the next tree's root is the last of them.
func (c *roundCounts) check(plain bool) error {
	if len(c.rounds) == 0 {
		return fmt.Errorf("there are no rounds")
	}
	clock, last := 0.0, any(nil)
	for i, r := range c.rounds {
		tokens := r["tokens"].([]any)
		if now := r["clock_ms"].(float64); now < clock {
			return fmt.Errorf("round %d: the clock goes from %v back to %v", i, clock, now)
		} else {
			clock = now
		}
		tree, _ := r["tree"].(map[string]any)
		if (tree == nil) != (i == 0) {
			return fmt.Errorf("round %d has the tree %v", i, tree)
		}
		if tree != nil {
			nodes := tree["tokens"].([]any)
			parents := tree["parents"].([]any)
			path := r["path"].([]any)
			if n := len(nodes); len(parents) != n || len(tree["texts"].([]any)) != n || len(tree["logprobs"].([]any)) != n ||
				n > int(r["budget"].(float64)) || plain && n != 1 || nodes[0] != last {
				return fmt.Errorf("round %d: after token %v: %v", i, last, r)
			}
			for k, p := range parents {
				if int(p.(float64)) >= k || k > 0 && p.(float64) < 0 {
					return fmt.Errorf("round %d: node %d has parent %v", i, k, p)
				}
			}
			for k, node := range path {
				if k == 0 && node != 0.0 || k > 0 && (parents[int(node.(float64))] != path[k-1] ||
					nodes[int(node.(float64))] != tokens[k-1]) {
					return fmt.Errorf("round %d: path %v of %v, tokens %v", i, path, tree, tokens)
				}
			}
			if len(tokens) != len(path) || r["next"] == nil {
				return fmt.Errorf("round %d: %d tokens, path %v", i, len(tokens), path)
			}
		}
		last = tokens[len(tokens)-1]
	}
	return nil
}

// endOfText matches the name of a token that ends a text, at the text's end.
var endOfText = regexp.MustCompile(`<\|\w+\|>$`)

// The rounds of a stream give the same text and tokens, choice by choice, and change neither.
func TestRounds(t *testing.T) {
	s := start(t, nil, serve.Options{})
	cases.Check(t, 25, func(rt *rapid.T) {
		n := rapid.IntRange(1, 2).Draw(rt, "n")
		drafter := rapid.SampledFrom([]string{"plain", "lookup", "eagle3", "best-first"}).Draw(rt, "drafter")
		body := map[string]any{"prompt": rapid.SampledFrom([]string{"a b a b", "// Close closes the", "ü€ü€"}).Draw(rt,
			"prompt"),
			"n": n, "drafter": drafter, "seed": rapid.IntRange(0, 99).Draw(rt, "seed"),
			"temperature": rapid.SampledFrom([]float64{0, 1}).Draw(rt, "temperature"),
			"budget":      rapid.IntRange(2, 20).Draw(rt, "budget"), "max_tokens": rapid.IntRange(1, 24).Draw(rt, "max")}
		if rapid.Bool().Draw(rt, "stops") {
			body["stop"] = []string{"e", "\n\t"}
		}
		without := s.events("/v1/completions", body)
		for _, e := range without {
			if e["round"] != nil {
				rt.Fatalf("nobody asked for the round of %v", e)
			}
		}
		events := s.events("/v1/completions", with(body, "rounds", true))
		want := assemble(t, without, n)
		for i, c := range assemble(t, events, n) {
			if c.text != want[i].text || c.finish != want[i].finish {
				rt.Fatalf("choice %d with rounds: %+v, without: %+v", i, c, want[i])
			}
		}
		for i, c := range rounds(t, events, n) {
			if err := c.check(drafter == "plain"); err != nil {
				rt.Fatal(err)
			}
			text := s.post("/detokenize", map[string]any{"tokens": c.tokens})["content"].(string)
			text = endOfText.ReplaceAllString(text, "")
			if c.text != want[i].text || body["stop"] == nil && text != c.text &&
				!strings.Contains(text, "\ufffd") { // if the text ends within a character, the two differ
				rt.Fatalf("choice %d: its rounds have %q, their tokens are %q, want %q", i, c.text, text, want[i].text)
			}
		}
	})
}

// A race generates the same tokens, those of the seed, twice: plainly, and with trees.
func TestRace(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for _, temperature := range []float64{0, 1} {
		for _, prompt := range []any{"// Close closes the", []string{"func main() {", "a b a b a b"}} {
			body := map[string]any{"prompt": prompt, "seed": 5, "temperature": temperature, "max_tokens": 30, "drafter": "eagle3"}
			prompts := 1
			if list, ok := prompt.([]string); ok {
				prompts = len(list)
			}
			whole := s.post("/v1/completions", with(body, "speculate", false))
			events := s.events("/v1/completions", with(body, "race", true, "rounds", true))
			for i, c := range rounds(t, events, 2*prompts) {
				if err := c.check(i%2 == 0); err != nil {
					t.Errorf("choice %d: %v", i, err)
				}
				if want := at(whole, fmt.Sprintf("choices.%d.text", i/2)); c.text != want {
					t.Errorf("choice %d is %q, want %q", i, c.text, want)
				}
				if other := rounds(t, events, 2*prompts)[i^1]; !reflect.DeepEqual(c.tokens, other.tokens) {
					t.Errorf("choice %d has the tokens %v, the other %v", i, c.tokens, other.tokens)
				}
			}
		}
	}
}

func TestRoundsRefused(t *testing.T) {
	s := start(t, nil, serve.Options{})
	for _, c := range []struct{ fields, param, says string }{
		{`"rounds": true`, "stream", "stream: true"},
		{`"race": true`, "stream", "stream: true"},
		{`"race": true, "stream": true, "n": 2`, "race", "leave out n"},
		{`"race": 1, "stream": true`, "race", "true or false"},
	} {
		status, _, text := s.send("POST", "/v1/completions", `{"prompt": "a", `+c.fields+`}`)
		if e := object(t, text)["error"]; status != 400 || at(e, "param") != c.param ||
			!strings.Contains(at(e, "message").(string), c.says) {
			t.Errorf("%s: status %d: %s", c.fields, status, text)
		}
	}
}
