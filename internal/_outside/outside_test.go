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
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tree"
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

// The drafters' texts are those of plain decoding, in fewer passes. A second time the prompt comes from the cache.
func TestDrafters(t *testing.T) {
	m := open(t)
	for _, temperature := range []float32{0, 1} {
		request := grove.Request{MaxTokens: 128, Uncontrolled: true,
			Sampling: grove.Sampling{Temperature: temperature, Seed: 5}}
		plain := collect(t, m, request)
		for _, name := range []string{drafter, "joined:lookup,runners-up", "joined:lookup,runners-up"} {
			request.Drafter = name
			drafted := collect(t, m, request)
			if plain.Text != drafted.Text {
				t.Errorf("temperature %g: %q with %s, %q without", temperature, drafted.Text, name, plain.Text)
			}
			if drafted.Stats.Accepted == 0 || drafted.Stats.Rounds >= plain.Stats.Rounds {
				t.Errorf("temperature %g: %d rounds with %s, %d without", temperature,
					drafted.Stats.Rounds, name, plain.Stats.Rounds)
			}
		}
	}
	for name, want := range map[string]string{"runners-up:width=99": "1 to 16", "joined:lookup,no-such": `no "no-such"`} {
		if _, err := generate(context.Background(), m, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", name, err, want)
		}
	}
}

func collect(t *testing.T, m *grove.Model, request grove.Request) *grove.Result {
	t.Helper()
	r, err := grove.Collect(m.Generate(context.Background(), "func main() {", request))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A drafter called by hand, as the loop calls it: both parts' continuations are in the tree.
func TestProposal(t *testing.T) {
	d, err := open(t).Target().New("joined:lookup,lookup:min=1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Begin(draft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := d.Commit([]draft.Rows{{State: s, Tokens: []int32{1, 2, 3, 4, 5, 6, 7, 1, 2, 3}, Next: -1}}); err != nil {
		t.Fatal(err)
	}
	proposed := tree.New(4) // the last token of the text
	request := draft.Request{State: s, Tree: proposed, Budget: 16, Depth: 8}
	if _, err := d.Propose(context.Background(), []draft.Request{request}); err != nil {
		t.Fatal(err)
	}
	if proposed.Child(0, 5) < 0 || proposed.MaxDepth() < 2 {
		t.Errorf("proposed\n%vwant what followed 4 before", proposed)
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

// The drafters have at most 60 lines each.
func TestDraftersAreShort(t *testing.T) {
	for file, first := range map[string]string{"drafter.go": "// runnersUp drafts", "joined.go": "// joined runs"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, code, found := bytes.Cut(source, []byte(first))
		if n := bytes.Count(code, []byte("\n")); !found || n > 60 {
			t.Errorf("%s: the drafter has %d lines, want 60 at most", file, n)
		}
	}
}
