package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/models"
)

func open(t *testing.T) *grove.Model {
	t.Helper()
	m, err := grove.OpenGGUF("embedded", models.Target(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// The drafter's text is that of plain decoding, in fewer passes.
func TestDrafter(t *testing.T) {
	m := open(t)
	for _, temperature := range []float32{0, 1} {
		var results []*grove.Result
		for _, name := range []string{"plain", drafter} {
			r, err := grove.Collect(m.Generate(context.Background(), "func main() {", grove.Request{
				MaxTokens: 128, Drafter: name, Uncontrolled: true, Sampling: grove.Sampling{Temperature: temperature, Seed: 5},
			}))
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		plain, drafted := results[0], results[1]
		if plain.Text != drafted.Text {
			t.Errorf("temperature %g: %q with the drafter, %q without", temperature, drafted.Text, plain.Text)
		}
		if drafted.Stats.Accepted == 0 || drafted.Stats.Rounds >= plain.Stats.Rounds {
			t.Errorf("temperature %g: %d rounds with the drafter, %d without", temperature,
				drafted.Stats.Rounds, plain.Stats.Rounds)
		}
	}
	if _, err := generate(context.Background(), m, "runners-up:width=99"); err == nil ||
		!strings.Contains(err.Error(), "1 to 16") {
		t.Errorf("an option out of bounds: %v", err)
	}
}

// The server answers with the drafter's text, that of the program itself.
func TestServe(t *testing.T) {
	m := open(t)
	want, err := generate(context.Background(), m, drafter)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- serveModel(ctx, m, l) }()
	body := `{"prompt":"func main() {","max_tokens":96,"temperature":0.8,"top_p":0.95,"seed":7}`
	response, err := http.Post("http://"+l.Addr().String()+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got struct{ Choices []struct{ Text string } }
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 1 || got.Choices[0].Text != want.Text {
		t.Errorf("the server answered %q, want %q", got.Choices, want.Text)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The drafter has at most 60 lines.
func TestDrafterIsShort(t *testing.T) {
	source, err := os.ReadFile("drafter.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := bytes.Cut(source, []byte("// runnersUp drafts"))
	if n := bytes.Count(code, []byte("\n")); !found || n > 60 {
		t.Errorf("the drafter has %d lines, want 60 at most", n)
	}
}
