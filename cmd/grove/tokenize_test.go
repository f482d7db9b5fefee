package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/command"
)

// grove tokenize goes from text to ids and pieces and back, for any text.
func TestTokenize(t *testing.T) {
	model := tiny(t)
	for _, text := range []string{"one two", " é東😀\n", "<|im_end|>x"} {
		var got struct {
			Text   string
			IDs    []int32
			Pieces []string
		}
		out := must(t, "", "tokenize", "-m", model, "--json", text)
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Text != text ||
			len(got.IDs) != len(got.Pieces) || len(got.IDs) == 0 {
			t.Errorf("%q: %v\n%s", text, err, out)
		}
		ids, _ := json.Marshal(got.IDs)
		if back := must(t, "", "tokenize", model, "--ids", string(ids)); back != text+"\n" {
			t.Errorf("%q came back as %q", text, back)
		}
	}
	if code, _, stderr := runGrove("", "tokenize", "-m", model, "--ids", "1 99999"); code != command.ExitUsage ||
		!strings.Contains(stderr, "99999") {
		t.Errorf("an id that is none: status %d, %s", code, stderr)
	}
}

// A model is named by -m or as the first argument, whichever the command has.
func TestModelEitherWay(t *testing.T) {
	model := tiny(t)
	for _, c := range [][2][]string{
		{{"run", "-m", model, "-n", "5", "one"}, {"run", model, "-n", "5", "one"}},
		{{"inspect", model}, {"inspect", "-m", model}},
		{{"inspect", "--no-tensors", model}, {"inspect", "--model=" + model, "--no-tensors"}},
		{{"tokenize", "-m", model, "one"}, {"tokenize", model, "one"}},
	} {
		if a, b := must(t, "", c[0]...), must(t, "", c[1]...); a != b {
			t.Errorf("%q: %q\n%q: %q", c[0], a, c[1], b)
		}
	}
	// A file that is not there is missed by its name, and is no prompt.
	if code, _, stderr := runGrove("", "run", "no-such.gguf", "one"); code != 1 || !strings.Contains(stderr, "no-such.gguf") {
		t.Errorf("a model that is not there: status %d, %s", code, stderr)
	}
	to := t.TempDir() + "/to.gguf"
	if out := must(t, "", "quantize", "-m", model, to, "--type", "q4_k_m"); out != to+"\n" {
		t.Errorf("quantize -m: %q", out)
	}
}

// An instruct model is asked through its template, and --raw continues the text; a draft model that
// does not fit is blamed by its flag; a context beyond the model's is said.
func TestRunAsks(t *testing.T) {
	model := tiny(t)
	chat := strings.TrimSuffix(must(t, "one two\n", "chat", "-m", model, "-n", "12", "-t", "0"), "\n")
	if got := strings.TrimSuffix(must(t, "", "run", "-m", model, "-n", "12", "one two"), "\n"); got != chat {
		t.Errorf("run says %q, chat %q", got, chat)
	}
	if raw := must(t, "", "run", "-m", model, "--raw", "-n", "12", "one two"); raw == chat+"\n" {
		t.Errorf("--raw changes nothing: %q", raw)
	}
	if _, _, stderr := runGrove("", "run", "--draft-model", model, "x"); !strings.Contains(stderr, "--draft-model") ||
		strings.Contains(stderr, "--drafter") {
		t.Errorf("a draft model that does not fit: %s", stderr)
	}
	if _, _, stderr := runGrove("", "run", "-m", model, "--context", "99999", "-n", "1",
		"x"); !strings.Contains(stderr, "99999") {
		t.Errorf("a context beyond the model's: %q", stderr)
	}
	if _, _, stderr := runGrove("/stats\n/undo\n/system be brief\n/reset\n", "chat", "-m",
		model); strings.Count(stderr, "\n") != 4 {
		t.Errorf("commands of a chat answer:\n%s", stderr)
	}
}
