package grove_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/models"
)

// tinyModel writes a seeded random model, so that the examples run anywhere. A program has the path of a real one.
func tinyModel() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "grove-example-")
	if err != nil {
		log.Fatal(err)
	}
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		log.Fatal(err)
	}
	path = filepath.Join(dir, "tiny.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Seed: 1}); err != nil {
		log.Fatal(err)
	}
	return path, func() { os.RemoveAll(dir) }
}

// Text streams as it is generated, a round of speculation at a time.
func Example() {
	path, remove := tinyModel()
	defer remove()

	m, err := grove.Open(path, grove.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request := grove.Request{MaxTokens: 16, Drafter: "lookup", IgnoreEnd: true}
	for chunk, err := range m.Generate(ctx, "once upon a time", request) {
		if err != nil {
			log.Fatal(err)
		}
		_ = chunk.Text // print it, send it
		if r := chunk.Result; r != nil {
			fmt.Println(len(r.Tokens), "tokens, ended by", r.Finish)
		}
	}
	// Output: 16 tokens, ended by length
}

// Speculation changes the speed, not the text.
func ExampleCollect() {
	path, remove := tinyModel()
	defer remove()
	m, err := grove.Open(path, grove.Options{Threads: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	r := grove.Request{MaxTokens: 24, Sampling: grove.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 7}}
	plain, err := grove.Collect(m.Generate(context.Background(), "the same", r))
	if err != nil {
		log.Fatal(err)
	}
	r.Drafter, r.Predict = "lookup", plain.Text
	drafted, err := grove.Collect(m.Generate(context.Background(), "the same", r))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(drafted.Text == plain.Text)
	// Output: true
}

// Package models has a small model that writes Go, and its draft model. A program that does not import it does not
// carry them.
func ExampleOpenGGUF() {
	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{DraftGGUF: models.Draft()})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	r := grove.Request{MaxTokens: 32, Drafter: "best-first"}
	drafted, err := grove.Collect(m.Generate(context.Background(), "func main() {\n", r))
	if err != nil {
		log.Fatal(err)
	}
	r.Drafter = "plain"
	plain, err := grove.Collect(m.Generate(context.Background(), "func main() {\n", r))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(drafted.Text == plain.Text)
	// Output: true
}

// In a Session, a prompt that begins like the last one and its answer is read from where they part.
func ExampleSession() {
	path, remove := tinyModel()
	defer remove()
	m, err := grove.Open(path, grove.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	s := m.NewSession()
	defer s.Close()
	for _, prompt := range []string{"one two three", "one two three four five six"} {
		r, err := grove.Collect(s.Generate(context.Background(), prompt, grove.Request{MaxTokens: 1}))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Stats.Reused > 0)
	}
	// Output:
	// false
	// true
}

// A conversation with tools is laid out with their descriptions, generated with the form in which the model writes
// calls, and read in that form again.
func ExampleTools() {
	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{ChatTemplate: "{{ tools }}" +
		"{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}" +
		"<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}{% endfor %}"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	layout, err := m.Layout()
	if err != nil {
		log.Fatal(err)
	}
	form, err := layout.CallForm()
	if err != nil {
		log.Fatal(err)
	}
	const parameters = `{"type": "object", "properties": {"celsius": {"type": "integer", "maximum": 99}}, "required": ["celsius"]}`
	described := `[{"type": "function", "function": {"name": "heat", "parameters": ` + parameters + `}}]`
	prompt, err := layout.Encode([]grove.Message{{Role: "user", Content: "Heat it."}},
		chat.Options{Prompt: true, Tools: json.RawMessage(described)})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := grove.Collect(m.GenerateTokens(context.Background(), prompt, grove.Request{MaxTokens: 100,
		Stop: layout.Stop(), // the ends of a turn
		Tools: &grove.Tools{Form: form, Required: true, Single: true,
			List: []grove.Tool{{Name: "heat", Parameters: parameters}}}}))
	if err != nil {
		log.Fatal(err)
	}
	_, _, calls := form.NewReader(nil).Add(answer.Text, true)
	var arguments struct{ Celsius *int }
	for _, c := range calls {
		err := json.Unmarshal([]byte(c.Arguments), &arguments)
		fmt.Println(c.Name, arguments.Celsius != nil, err)
	}
	// Output: heat true <nil>
}
