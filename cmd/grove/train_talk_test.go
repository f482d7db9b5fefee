package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	layouts "github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

// Templates in which the user's turn stands in different places.
var talkTemplates = []string{
	"{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
	"{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}{% endif %}{% endfor %}",
	"{% if messages[0].role != 'system' %}System: be brief.\n\n{% endif %}{% for m in messages %}{{ m.role|title }}: {{ m.content }}\n\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}",
}

// Every conversation is laid out by the template: its given tokens are exactly the prompt of the
// messages so far, the model's text follows, and is never empty; a prompt that the model makes up
// follows the header of the user's turn, which is the same whatever the user says.
func TestTalk(t *testing.T) {
	m, err := grove.OpenGGUF(command.Embedded, models.Target(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rapid.Check(t, func(t *rapid.T) {
		layout, err := layouts.Parse(m.Tokenizer(), rapid.SampledFrom(talkTemplates).Draw(t, "template"))
		if err != nil {
			t.Fatal(err)
		}
		words := rapid.StringMatching(`[A-Za-z]{1,6}( [a-z0-9.,"]{1,6}){1,8}`)
		var prompts [][]grove.Message
		for range rapid.IntRange(1, 3).Draw(t, "prompts") {
			var list []grove.Message
			for range rapid.IntRange(1, 3).Draw(t, "turns") {
				list = append(list, grove.Message{Role: "user", Content: words.Draw(t, "prompt")})
			}
			prompts = append(prompts, list)
		}
		tt := &talker{m: m, layout: layout, prompts: prompts,
			ownShare: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "own share"),
			ownTurns: 2, temperatures: []float64{0, 1}, longest: 40, longestAsk: 40}
		var asked [][]int32
		tt.say = func(_ context.Context, prompt []int32, most int, _ float32, _ uint64) ([]int32, bool, error) {
			text, err := m.Tokenize(rapid.OneOf(words, rapid.SampledFrom([]string{"", "\n", "?"})).Draw(t, "said"))
			asked = append(asked, slices.Clone(prompt))
			return text[:min(len(text), most)], rapid.Bool().Draw(t, "ended"), err
		}
		for number := range 8 {
			asked = nil
			talk, err := tt.talk(context.Background(), number)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range talk {
				prompt := c.Tokens[:c.From]
				if len(c.Tokens) < c.From+2 || !slices.ContainsFunc(asked, func(p []int32) bool { return slices.Equal(p, prompt) }) {
					t.Fatalf("conversation %d has %d tokens from %d on, behind a prompt that the model was not asked", number, len(c.Tokens), c.From)
				}
			}
			if rest, _ := tt.given(number); rest != nil {
				first, err := layout.Encode(rest[:1], layouts.Options{Prompt: true})
				if err != nil || len(talk) > len(rest) || len(talk) > 0 && !slices.Equal(talk[0].Tokens[:talk[0].From], first) {
					t.Fatalf("conversation %d of %d turns has %d answers: %v", number, len(rest), len(talk), err)
				}
				continue
			}
			header := asked[0]
			other, err := layout.Encode([]grove.Message{{Role: "user", Content: words.Draw(t, "other")}}, layouts.Options{})
			if err != nil || len(header) >= len(other) || !slices.Equal(header, other[:len(header)]) {
				tok, o := m.Tokenizer(), tokenizer.DecodeOptions{}
				t.Fatalf("a prompt stands behind %q, in %q", tok.Decode(header, o), tok.Decode(other, o))
			}
		}
	})
}

// An answer ends with one token that ends it: the model's own, else the template's, else the end of a text.
func TestTalkEnds(t *testing.T) {
	m, err := grove.OpenGGUF(command.Embedded, models.Target(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tok := m.Tokenizer()
	turn, _ := tok.Find("<|im_end|>")
	for _, c := range []struct {
		template, said string
		want           int32
	}{{talkTemplates[0], "a b", turn}, {talkTemplates[0], "a b<|im_end|>", turn}, {talkTemplates[1], "a b", tok.EOS()},
		{talkTemplates[1], "a b<|im_end|>", turn}} {
		layout, err := layouts.Parse(tok, c.template)
		if err != nil {
			t.Fatal(err)
		}
		tt := &talker{m: m, layout: layout, prompts: [][]grove.Message{{{Role: "user", Content: "Why not"}}},
			temperatures: []float64{0}, longest: 40}
		tt.say = func(context.Context, []int32, int, float32, uint64) ([]int32, bool, error) {
			return tok.Encode(c.said, tokenizer.EncodeOptions{ParseSpecial: true}), true, nil
		}
		talk, err := tt.talk(context.Background(), 0)
		if err != nil || len(talk) != 1 {
			t.Fatalf("%d answers: %v", len(talk), err)
		}
		answer := talk[0].Tokens[talk[0].From:]
		if last := len(answer) - 1; slices.IndexFunc(answer, tok.IsEOG) != last || answer[last] != c.want {
			t.Errorf("%q ends as %v, want %d at its end alone", c.said, answer, c.want)
		}
	}
}

// Without a template, all that was said before an answer is the text that it continues.
func TestTalkWithoutTemplate(t *testing.T) {
	m, err := grove.OpenGGUF(command.Embedded, models.Target(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tt := &talker{m: m, prompts: [][]grove.Message{{{Role: "system", Content: "Be brief."},
		{Role: "user", Content: "a b"}, {Role: "user", Content: "c d"}}}, temperatures: []float64{0}, longest: 40}
	tt.say = func(context.Context, []int32, int, float32, uint64) ([]int32, bool, error) {
		text, err := m.Tokenize("x y")
		return text, true, err
	}
	talk, err := tt.talk(context.Background(), 0)
	if err != nil || len(talk) != 2 {
		t.Fatalf("%d answers: %v", len(talk), err)
	}
	for i, want := range []string{"Be brief.\n\na b", "Be brief.\n\na b\n\nx y\n\nc d"} {
		got := m.Tokenizer().Decode(talk[i].Tokens[:talk[i].From], tokenizer.DecodeOptions{})
		if got != want {
			t.Errorf("answer %d continues %q, want %q", i+1, got, want)
		}
	}
}

// A model that can think before it answers does so in half of the conversations, at each temperature.
func TestTalkThinks(t *testing.T) {
	m, err := grove.OpenGGUF(command.Embedded, models.Target(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	layout, err := layouts.Parse(m.Tokenizer(), talkTemplates[0]+
		"{% if add_generation_prompt and enable_thinking is defined and not enable_thinking %}no thought{% endif %}")
	if err != nil {
		t.Fatal(err)
	}
	tt := &talker{m: m, layout: layout, prompts: [][]grove.Message{{{Role: "user", Content: "Why not"}}},
		temperatures: []float64{0, 1}, longest: 40}
	without := map[float32]int{}
	tt.say = func(_ context.Context, prompt []int32, _ int, temperature float32, _ uint64) ([]int32, bool, error) {
		if strings.HasSuffix(m.Tokenizer().Decode(prompt, tokenizer.DecodeOptions{}), "no thought") {
			without[temperature]++
		}
		answer, err := m.Tokenize("a b")
		return answer, true, err
	}
	for number := range 16 {
		if _, err := tt.talk(context.Background(), number); err != nil {
			t.Fatal(err)
		}
	}
	if without[0] != 4 || without[1] != 4 {
		t.Errorf("by temperature, of 8 answers each, without a thought: %v, want 4", without)
	}
	if tt.layout, err = layouts.Parse(m.Tokenizer(),
		talkTemplates[0]+"{% if enable_thinking is defined %}{{ raise_exception('it always thinks') }}{% endif %}"); err != nil {
		t.Fatal(err)
	}
	if talk, err := tt.talk(context.Background(), 4); err != nil || len(talk) != 1 {
		t.Errorf("%d answers where the template has a model think: %v", len(talk), err)
	}
}

// A line that the model's template refuses is named before the model answers any.
func TestPromptsThatTemplatesRefuse(t *testing.T) {
	m, err := grove.OpenGGUF(command.Embedded, models.Target(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	layout, err := layouts.Parse(m.Tokenizer(), "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"+
		"{% if messages|length > 3 %}{{ raise_exception('too long') }}{% endif %}{{ messages[-1].content }}")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{`{"prompt":"a b"}`: "", `{"system":"s","prompt":"a b"}`: "no system",
		`{"turns":["a","b"]}`: "", `{"turns":["a","b","c"]}`: "too long"} {
		_, err := readPrompts(writeFile(t, `{"prompt":"c d"}`+"\n\n"+line+"\n"), 9, (&talker{m: m, layout: layout}).check)
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) ||
			err != nil && !strings.Contains(err.Error(), "prompts.jsonl, line 3") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// Answers that are kept belong to the same prompts in the same layout, however many other prompts there are.
func TestTalkKept(t *testing.T) {
	m, layout := talkModel(t)
	given := func(texts ...string) (list [][]grove.Message) {
		for _, text := range texts {
			list = append(list, []grove.Message{{Role: "user", Content: text}})
		}
		return list
	}
	tt, raw := talker{m: m, layout: layout, prompts: given("a", "b")}, talker{m: m, prompts: given("a", "b")}
	more := talker{m: m, layout: layout, prompts: given("a", "c", "b")}
	if tt.source("m", "w") == raw.source("m", "w") {
		t.Error("answers in the chat template's layout are kept for prompts that are continued as they are")
	}
	if tt.source("m", "w") != more.source("m", "w") || tt.key(0) != more.key(0) {
		t.Error("an answer is given anew beside other prompts")
	}
	if tt.key(1) == more.key(1) || tt.key(0) == tt.key(1) {
		t.Error("an answer is kept for another prompt")
	}
}

// Whatever the share of prompts of the model's own, these and the others are answered at each temperature, with and
// without thoughts, and a prompt that comes again is answered in another way.
func TestTalkKinds(t *testing.T) {
	prompts := [][]grove.Message{{{Role: "user", Content: "a b"}}, {{Role: "user", Content: "c d"}}}
	for _, share := range []float64{0, .125, .5, .75, 1} {
		tt, last := talker{prompts: prompts, ownShare: share}, map[string]int{}
		own, given := map[int]int{}, map[int]int{}
		for number := range 512 {
			rest, kind := tt.given(number)
			if rest == nil {
				own[kind%8]++
				continue
			}
			given[kind%8]++
			if before, ok := last[rest[0].Content]; ok && before%2 == kind%2 {
				t.Fatalf("share %g: %q comes again at the temperature that it had", share, rest[0].Content)
			}
			last[rest[0].Content] = kind
		}
		for kind := range 8 {
			if share > 0 && own[kind] < own[0]-1 || share < 1 && given[kind] < given[0]-8 {
				t.Errorf("share %g: kinds of its own prompts %v, of others %v", share, own, given)
			}
		}
	}
}

// One in four conversations of the model's own has two turns, at each temperature alike.
func TestTalkTurns(t *testing.T) {
	m, layout := talkModel(t)
	tt := &talker{m: m, layout: layout, ownShare: 1, ownTurns: 2, temperatures: []float64{0, 1}, longest: 40,
		longestAsk: 40}
	tt.say = func(context.Context, []int32, int, float32, uint64) ([]int32, bool, error) {
		text, err := m.Tokenize("Yes, yes")
		return text, true, err
	}
	turns := map[bool]int{}
	for number := range 64 {
		talk, err := tt.talk(context.Background(), number)
		if err != nil {
			t.Fatal(err)
		}
		if len(talk) == 2 {
			turns[talk[1].Greedy]++
		}
	}
	if turns[true] != 8 || turns[false] != 8 {
		t.Errorf("of 64 conversations %d greedy and %d sampled ones have two turns, want 8 each", turns[true], turns[false])
	}
}

// Prompts are read in all forms in use; text of an assistant in them is left out.
func TestPromptLines(t *testing.T) {
	for line, want := range map[string]string{
		`{"prompt":"a b"}`:                             "user:a b",
		`{"question":"a b"}`:                           "user:a b",
		`{"instruction":"a","input":"b","output":"c"}`: "user:a\n\nb",
		`{"turns":["a","b"],"system":"s"}`:             "system:s|user:a|user:b",
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"x"},{"role":"user","content":"b"}]}`: "system:s|user:a|user:b",
		`{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"x"}]}`:                                                                   "user:a",
		`{"prompt":"a","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"x"},{"role":"user","content":"b"}]}`:                    "user:a|user:b",
		"\ufeff" + `{"prompt":"a"}`: "user:a",
		`{"prompt":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"chosen":"x"}`:                            "system:s|user:a",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a "},{"type":"image"},{"type":"text","text":"b"}]}]}`: "user:a b",
		`{"text":"a"}`: "error", `[1]`: "error", `{"prompt":[1]}`: "error", `{"prompt":null}`: "error",
		`{"messages":[{"role":"assistant","content":"x"}]}`: "error",
	} {
		file := writeFile(t, line+"\n\n")
		list, err := readPrompts(file, 9, func([]grove.Message) error { return nil })
		got := "error"
		if err == nil {
			var parts []string
			for _, m := range list[0] {
				parts = append(parts, m.Role+":"+m.Content)
			}
			got = strings.Join(parts, "|")
		} else if !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: the error does not say which line: %v", line, err)
		}
		if got != want {
			t.Errorf("%s is read as %q, want %q", line, got, want)
		}
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// talkModel is a model and the layout of conversations with it.
func talkModel(t *testing.T) (*grove.Model, *layouts.Layout) {
	t.Helper()
	m, err := grove.OpenGGUF(command.Embedded, models.Target(), grove.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	layout, err := layouts.Parse(m.Tokenizer(), talkTemplates[0])
	if err != nil {
		t.Fatal(err)
	}
	return m, layout
}
