package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/adapt"
)

// questions writes a suite of a few questions.
func questions(t *testing.T, name string, texts ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".jsonl")
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(`{"prompt": "` + text + `"}` + "\n")
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenStream(t *testing.T) {
	a, b := questions(t, "a", "one", "two", "three"), questions(t, "b", "four")
	kinds := func(s Stream) (n map[string]int) {
		n = map[string]int{}
		for _, p := range s.Prompts {
			n[p.Kind]++
		}
		return n
	}
	s, err := OpenStream(a+"+"+b, 10, 1, SuiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := kinds(s); len(s.Prompts) != 10 || n[a] != 5 || n[b] != 5 {
		t.Errorf("ten prompts of two kinds: %v", n)
	}
	again, _ := OpenStream(a+"+"+b, 10, 1, SuiteOptions{})
	if !slices.Equal(s.Prompts, again.Prompts) {
		t.Error("the same seed gives another stream")
	}
	if s, err = OpenStream("attack*4>"+a, 10, 1, SuiteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, p := range s.Prompts {
		if (p.Kind == Attack) != (i < 4) || (p.Random > 0) != (i < 4) {
			t.Errorf("four of an attacker, then others: prompt %d is %+v", i, p)
		}
	}
	for _, text := range []string{"attack*x>" + a, filepath.Join(t.TempDir(), "none.jsonl"), "attack*0"} {
		if _, err := OpenStream(text, 10, 1, SuiteOptions{}); err == nil {
			t.Errorf("%s was opened", text)
		}
	}
}

// Every policy decodes the same tokens, and the report has what each came to.
func TestAdapt(t *testing.T) {
	stream, err := OpenStream("attack*3>"+questions(t, "q", "one two", "three"), 6, 1, SuiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := AdaptOptions{
		Target: tinyPair(t), Drafter: "jetspec:tree=ddtree", Streams: []Stream{stream}, Policies: []string{Frozen, "always", "osd"}, Epochs: 2, MaxTokens: 8, Uncontrolled: true,
	}
	done := 0
	o.Progress = func(n, total int) {
		if done++; n != done || total != 3*2*6 {
			t.Errorf("query %d of %d is said to be number %d", done, total, n)
		}
	}
	r, err := Adapt(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if done != 3*2*6 || len(r.Streams) != 1 || len(r.Streams[0].Policies) != 3 {
		t.Fatalf("%d queries, %d streams", done, len(r.Streams))
	}
	for i, p := range r.Streams[0].Policies {
		if p.Mismatches != 0 || p.Tau < 1 || p.TokensPerS <= 0 || len(p.Epochs) != 2 || len(p.Kinds) != 2 || (p.Learning == nil) != (i == 0) {
			t.Errorf("%+v", p)
		}
		if l := p.Learning; l != nil && (l.Error != "" || l.Queries != 12 || l.Updates[adapt.Full] == 0) {
			t.Errorf("%s: %+v", p.Name, l)
		}
	}
	var b bytes.Buffer
	if err := r.Markdown(&b); err != nil || !strings.Contains(b.String(), "| always |") || !strings.Contains(b.String(), "τ by epoch") {
		t.Errorf("%v\n%s", err, b.String())
	}
	if files, err := r.Save(filepath.Join(t.TempDir(), "out")); err != nil || len(files) != 4 {
		t.Errorf("%v, %v", files, err)
	}
	for _, bad := range []func(*AdaptOptions){
		func(o *AdaptOptions) { o.Drafter = "lookup" },
		func(o *AdaptOptions) { o.Policies = []string{"greed"} },
		func(o *AdaptOptions) { o.Target.Model = nil },
	} {
		x := o
		x.Progress = nil
		bad(&x)
		if _, err := Adapt(context.Background(), x); err == nil {
			t.Errorf("%+v was measured", x.Policies)
		}
	}
}
