package grove_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/models"
)

// Requests that cannot be served are refused, with the field and what to do.
func TestBadRequests(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1, Context: 64})
	long := strings.Repeat("word ", 200)
	var greedily grove.Request
	inside.RequestOptionsOf(&greedily).Accept = "greedily"
	for _, c := range []struct {
		name, prompt string
		r            grove.Request
		want         []string
	}{
		{"invalid UTF-8", "fine\nbad \xff\xfe", grove.Request{}, []string{"Prompt", "byte 9", "line 2", "UTF-8"}},
		{"empty prompt", "", grove.Request{}, []string{"Prompt", "no tokens"}},
		{"long prompt", long, grove.Request{}, []string{"64", "context", "shorten"}},
		{"negative length", "a", grove.Request{MaxTokens: -1}, []string{"MaxTokens", "-1"}},
		{"budget", "a", grove.Request{Budget: 1}, []string{"Budget", "2 to"}},
		{"empty stop", "a", grove.Request{Stop: []string{""}}, []string{"Stop", "empty"}},
		{"binary stop", "a", grove.Request{Stop: []string{"\x80"}}, []string{"Stop", "UTF-8"}},
		{"temperature", "a", grove.Request{Sampling: grove.Sampling{Temperature: -1}}, []string{"Temperature", "-1"}},
		{"top-p", "a", grove.Request{Sampling: grove.Sampling{TopP: 1.5}}, []string{"TopP", "1.5"}},
		{"bias", "a", grove.Request{Sampling: grove.Sampling{LogitBias: map[int32]float32{1 << 20: 1}}},
			[]string{"LogitBias", "1048576"}},
		{"drafter", "a", grove.Request{Drafter: "oracle"}, []string{"Drafter", "oracle", "lookup", "plain"}},
		{"drafter option", "a", grove.Request{Drafter: "lookup:mn=3"}, []string{"Drafter", "mn", "min"}},
		{"accept", "a", greedily, []string{"Accept", "greedily", "coupled or rejection"}},
		{"no draft model", "a", grove.Request{Drafter: "best-first"}, []string{"Drafter", "best-first", "draft model"}},
		{"draft model", "a", grove.Request{Drafter: "linear:model=none.gguf"}, []string{"Drafter", "none.gguf"}},
		{"predicted text", "a", grove.Request{Predict: "\xc3"}, []string{"Predict", "UTF-8"}},
		{"predicted tokens", "a", grove.Request{PredictTokens: []int32{-1}}, []string{"PredictTokens", "-1"}},
		{"both predictions", "a", grove.Request{Predict: "b", PredictTokens: []int32{1}}, []string{"Predict", "one of them"}},
	} {
		_, err := grove.Collect(m.Generate(ctx, c.prompt, c.r))
		checkError(t, c.name, err, c.want)
	}
	_, err := grove.Collect(m.GenerateTokens(ctx, []int32{5, 1 << 30}, grove.Request{}))
	checkError(t, "token", err, []string{"Prompt", "token 1"})
	var tooLong *grove.ContextError
	if _, err := grove.Collect(m.Generate(ctx, long, grove.Request{})); !errors.As(err, &tooLong) || tooLong.Limit != 64 {
		t.Errorf("a long prompt: %v, want a ContextError", err)
	}
}

// Wrong options of a model are refused before its weights load.
func TestBadOptions(t *testing.T) {
	for field, o := range map[string]grove.Options{
		"Threads": {Threads: -1}, "Context": {Context: -1}, "KV": {KV: "q4"}, "Queue": {Queue: -1},
	} {
		var option *grove.OptionError
		if _, err := grove.Open("none.gguf", o); !errors.As(err, &option) || option.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A conversation takes as many stop strings as a prompt does, in addition to those of the model's layout.
func TestChatStops(t *testing.T) {
	m := open(t, "tiny-gptneox", grove.Options{Threads: 1, Context: 64})
	layout, err := m.Layout()
	if err != nil || len(layout.Stop()) == 0 {
		t.Fatalf("the layout has no stop strings: %v", err)
	}
	var stops []string
	for range 65 {
		stops = append(stops, strings.Repeat("x", len(stops)+50))
	}
	messages := []grove.Message{{Role: "user", Content: "a"}}
	for n, want := range map[int]bool{64: true, 65: false} {
		_, err := grove.Collect(m.Chat(ctx, messages, grove.Request{MaxTokens: 2, Stop: stops[:n]}))
		if (err == nil) != want {
			t.Errorf("%d stop strings: %v", n, err)
		}
	}
}

func checkError(t *testing.T, name string, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", name, err, w)
		}
	}
}

// Files that are no models are refused, naming the file.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	s, err := synth.Lookup("tiny-llama3")
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.gguf")
	if err := synth.Write(ctx, good, s, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for name, path := range map[string]string{
		"missing":   filepath.Join(dir, "missing.gguf"),
		"folder":    filepath.Join(dir, "empty"),
		"text":      write("text.gguf", []byte("hello")),
		"empty":     write("empty.gguf", nil),
		"truncated": write("truncated.gguf", data[:len(data)/2]),
		"beheaded":  write("beheaded.gguf", data[:100]),
		"renamed":   write("renamed.gguf", []byte(strings.Replace(string(data[:2000]), "llama", "lamas", 1)+string(data[2000:]))),
		"noise":     write("noise.gguf", append([]byte("GGUF\x03\x00\x00\x00"), randomBytes(rng, 5000)...)),
	} {
		if m, err := grove.Open(path, grove.Options{}); err == nil {
			m.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: %q does not name the file", name, err)
		}
	}
	missing := filepath.Join(dir, "missing")
	for _, o := range []grove.Options{{Draft: missing}, {Heads: []string{missing}}} {
		if _, err := grove.Open(good, o); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
			t.Errorf("%+v: %v, want one of a file that is missing", o, err)
		}
	}
	for _, o := range []grove.Options{{Threads: -1}, {Threads: 1 << 20}, {Context: -5}} {
		var option *grove.OptionError
		if _, err := grove.Open(good, o); !errors.As(err, &option) {
			t.Errorf("%+v: %v, want an OptionError", o, err)
		}
	}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// An error about memory that holds no text is of that option, says how much would, and has no name from within.
func TestLittleCacheMemory(t *testing.T) {
	_, err := grove.OpenGGUF("target", models.Target(), grove.Options{CacheMemory: 1})
	var option *grove.OptionError
	if !errors.As(err, &option) || option.Field != "CacheMemory" || strings.Contains(option.Reason, "engine") {
		t.Fatalf("error %v", err)
	}
	var least int64
	if _, err := fmt.Sscanf(option.Reason, "1 bytes: want %d or more", &least); err != nil {
		t.Fatal(option.Reason, err)
	}
	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{CacheMemory: least})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}
