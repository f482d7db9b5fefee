package grove_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
)

// Embeddings have length 1 and are the same each time. With one token the mean equals the last
// token's; with several it differs; a further token changes the last.
func TestEmbed(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 2})
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(inside.Target(m).Vocab-1)), 1, 8,
			rapid.ID[int32]).Draw(rt, "tokens")
		mean, err := m.Embed(ctx, tokens, grove.EmbedOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		length := 0.0
		for _, x := range mean {
			length += float64(x) * float64(x)
		}
		if math.Abs(length-1) > 1e-5 || len(mean) != inside.Target(m).Model.Config.Hidden {
			rt.Fatalf("%d numbers of length² %v", len(mean), length)
		}
		last := grove.EmbedOptions{Last: true}
		end, err := m.Embed(ctx, tokens, last)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := m.Embed(ctx, tokens, last)
		if err != nil || !same(end, again) {
			rt.Fatalf("the same text has another embedding: %v", err)
		}
		if equal := same(mean, end); equal != (len(tokens) == 1) {
			rt.Fatalf("of %d tokens the mean and the last are equal: %v", len(tokens), equal)
		}
		if more, err := m.Embed(ctx, append(tokens[:len(tokens):len(tokens)], (tokens[0]+1)%int32(inside.Target(m).Vocab)),
			last); err != nil || same(more, end) {
			rt.Fatalf("a token more changes nothing: %v", err)
		}
	})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Embed(ended, []int32{1}, grove.EmbedOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	why := errors.New("why")
	for range 20 { // either it waits for its turn, or its pass has begun
		ended, cancel := context.WithCancelCause(ctx)
		cancel(why)
		if _, err := m.Embed(ended, []int32{1}, grove.EmbedOptions{}); !errors.Is(err, why) {
			t.Errorf("a context that has ended for a cause: %v", err)
		}
	}
	var option *grove.OptionError
	if short, err := m.Embed(ctx, []int32{5, 6}, grove.EmbedOptions{Width: 3}); err != nil || len(short) != 3 {
		t.Errorf("three numbers are %v, %v", short, err)
	}
	if _, err := m.Embed(ctx, []int32{5}, grove.EmbedOptions{Width: 1 << 20}); !errors.As(err, &option) ||
		option.Field != "Width" {
		t.Errorf("a width beyond the model's: %v", err)
	}
	for _, tokens := range [][]int32{nil, {-1}, {1 << 30}} {
		if _, err := m.Embed(ctx, tokens, grove.EmbedOptions{}); !errors.As(err, &option) || option.Field != "Prompt" {
			t.Errorf("%v: %v", tokens, err)
		}
	}
	var long *grove.ContextError
	if _, err := m.Embed(ctx, make([]int32, m.Context()+1), grove.EmbedOptions{}); !errors.As(err, &long) {
		t.Errorf("a long text: %v", err)
	}
}

func same(a, b []float32) bool {
	for i := range a {
		if math.Abs(float64(a[i]-b[i])) > 1e-6 {
			return false
		}
	}
	return true
}
