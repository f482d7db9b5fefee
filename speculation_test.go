package grove_test

import (
	"context"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
)

// Near temperature 0 the text is that of temperature 0, and every drafter gets as many of its
// tokens accepted.
func TestNearTemperatureZeroAsMuchIsAccepted(t *testing.T) {
	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{Threads: 1, DraftGGUF: models.Draft(),
		HeadGGUF: models.Heads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompts := []string{"package sort\n\nimport \"fmt\"\n\n", "func (r *Reader) Read(p []byte) (n int, err error) {\n"}
	for i, drafter := range []string{"dynatree", "dynamic", "eagle3", "medusa", "jetspec", "peagle", "falcon", "specblock",
		"lookup"} {
		tau := func(temperature float32) float64 {
			r, err := grove.Collect(m.Generate(context.Background(), prompts[i%2], grove.Request{MaxTokens: 48,
				Drafter: drafter, Uncontrolled: true, Sampling: grove.Sampling{Temperature: temperature}}))
			if err != nil {
				t.Fatalf("%s: %v", drafter, err)
			}
			return float64(r.Stats.Tokens-1) / float64(r.Stats.Rounds)
		}
		cold := tau(0)
		if warm := tau(.01); warm < .98*cold {
			t.Errorf("%s: %.3f tokens a pass at temperature 0.01, %.3f at 0: want .98 of it", drafter, warm, cold)
		}
	}
}
