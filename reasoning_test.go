package grove_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// Where marks of reasoning are control tokens, an answer has them, so that reasoning and answer are told apart; the
// reasoning of earlier answers is in no prompt.
func TestChatShowsReasoning(t *testing.T) {
	dir := t.TempDir()
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.WriteHF(context.Background(), dir, s, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.ReplaceAll(data, []byte("<|im_start|>"), []byte("[THINK]"))
		data = bytes.ReplaceAll(data, []byte("<|endoftext|>"), []byte("[/THINK]"))
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := grove.Open(dir, grove.Options{Threads: 1, Context: 256,
		ChatTemplate: "{# [/THINK] #}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}A: "})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mark, ok := m.Tokenizer().Find("[THINK]")
	if !ok || !m.Tokenizer().IsSpecial(mark) {
		t.Fatal("the mark is no control token")
	}
	answer := func(earlier string, bias float32) *grove.Result {
		t.Helper()
		r, err := grove.Collect(m.Chat(context.Background(), []grove.Message{{Role: "user", Content: "x"},
			{Role: "assistant", Content: earlier}, {Role: "user", Content: "y"}}, grove.Request{MaxTokens: 8,
			Sampling: grove.Sampling{Temperature: 1, Seed: 3, LogitBias: map[int32]float32{mark: bias}}}))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	plain := answer("yes", 0)
	for _, earlier := range []string{"[THINK]so\n[/THINK]\n\nyes", "\n[THINK]\n[/THINK]yes\n", "[/THINK] yes"} {
		if got := answer(earlier, 0); !slices.Equal(got.Tokens, plain.Tokens) || got.Stats.Prompt != plain.Stats.Prompt {
			t.Errorf("behind %q: %v, want %v", earlier, got.Tokens, plain.Tokens)
		}
	}
	thinks := answer("yes", 12)
	text := m.Tokenizer().Decode(thinks.Tokens, tokenizer.DecodeOptions{Continue: true, Special: true})
	if !slices.Contains(thinks.Tokens, mark) || thinks.Text != text {
		t.Errorf("%q, want the marks too: %q", thinks.Text, text)
	}
}

// What a constraint lets gpt-oss say is the answer: stop strings count from its beginning.
func TestConstrainedChannels(t *testing.T) {
	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{Threads: 1,
		ChatTemplate: "{# <|channel|>final<|message|> #}{{ messages[0].content }}"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := grove.Collect(m.Chat(context.Background(), []grove.Message{{Role: "user", Content: "x"}},
		grove.Request{Regex: "abcd", Stop: []string{"c"}}))
	if err != nil || r.Text != "ab" || r.Finish != grove.FinishStop {
		t.Errorf("%+v, %v", r, err)
	}
}

// Control tokens around the answer are not part of its text. An earlier answer may have them as text.
func TestChatHidesMarks(t *testing.T) {
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := grove.Open(path, grove.Options{Threads: 1, Context: 256, ChatTemplate: "{# [/THINK] #}" +
		"{% for m in messages %}{{ m.role }}: {{ '<|im_start|>' if m.role == 'assistant' }}{{ m.content }}\n{% endfor %}" +
		"{% if add_generation_prompt %}assistant: {% endif %}"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mark, _ := m.Tokenizer().Find("<|im_start|>")
	size := 0
	for _, earlier := range []string{"yes", "<|im_start|>yes", "[THINK]so[/THINK]<|im_start|>yes"} {
		r, err := grove.Collect(m.Chat(context.Background(), []grove.Message{{Role: "user", Content: "<|im_start|>"},
			{Role: "assistant", Content: earlier}, {Role: "user", Content: "x"}}, grove.Request{
			MaxTokens: 9, Sampling: grove.Sampling{Temperature: 1, Seed: 3, LogitBias: map[int32]float32{mark: 12}}}))
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			size = r.Stats.Prompt
		}
		if r.Text == "" || strings.Contains(r.Text, "im_start") || !slices.Contains(r.Tokens, mark) || r.Stats.Prompt != size {
			t.Errorf("%q: %v: %q; a prompt of %d tokens, want %d", earlier, r.Tokens, r.Text, r.Stats.Prompt, size)
		}
	}
}

// A control token that is part of no mark is left out of an answer with reasoning too.
func TestStrayControlTokens(t *testing.T) {
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for _, marked := range []bool{false, true} {
		turn := "{{ m.content }}"
		if marked {
			turn = "{% if m.reasoning_content %}<|im_start|>{{ m.reasoning_content }}</musing>{% endif %}" + turn
		}
		m, err := grove.Open(path, grove.Options{Threads: 1, Context: 256,
			ChatTemplate: "{% for m in messages %}{{ m.role }}: " + turn + "\n{% endfor %}"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		stray, _ := m.Tokenizer().Find("<|im_start|>")
		r, err := grove.Collect(m.Generate(context.Background(), "x", grove.Request{Reasoning: true, MaxTokens: 12,
			Sampling: grove.Sampling{Temperature: 1, Seed: 3, LogitBias: map[int32]float32{stray: 20}}}))
		if err != nil {
			t.Fatal(err)
		}
		text := m.Tokenizer().Decode(r.Tokens, tokenizer.DecodeOptions{Continue: true, Special: marked})
		if !slices.Contains(r.Tokens, stray) || r.Text != text {
			t.Errorf("a mark: %v; %v: %q, want %q", marked, r.Tokens, r.Text, text)
		}
	}
}
