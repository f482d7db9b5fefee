package bench

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/models"
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

// A stream's prompts are encoded as the suites' are in all cases: questions with and without the
// chat template, and forced texts, which every policy then writes.
func TestAdaptPrompts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q.jsonl")
	lines := `{"prompt": "one two", "forced_output": "three four five"}` + "\n" + `{"prompt": "six"}` + "\n"
	if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	suite, err := OpenSuite(path, SuiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := OpenStream(path, 6, 1, SuiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.OpenGGUF("embedded", models.Target(), model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, chat := range []bool{false, true} {
		o := AdaptOptions{Target: registry.Target{Model: m, Vocab: m.Config.Vocab}, MaxTokens: 8, Chat: chat}
		got, err := o.prompts(stream)
		if err != nil {
			t.Fatal(err)
		}
		b := bench{o: SpecOptions{Target: o.Target, MaxTokens: o.MaxTokens, Chat: chat}}
		encode, err := b.encoder()
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range stream.Prompts {
			at := slices.IndexFunc(suite.Prompts, func(q Prompt) bool { return q.Text == p.Text })
			want, _, err := encode(suite.Prompts[at])
			if err != nil || !reflect.DeepEqual(got[i], want) {
				t.Errorf("chat %v, prompt %d is %v, of the suite %v, %v", chat, i, got[i], want, err)
			}
		}
	}
	o := AdaptOptions{Target: tinyPair(t), Drafter: "jetspec:tree=ddtree",
		Policies: []string{Frozen, "always"}, MaxTokens: 8,
		Uncontrolled: true}
	prompts, err := o.prompts(stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range o.Policies {
		l, err := o.learning(policy)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range prompts {
			q, err := l.decode(context.Background(), p, &o)
			if want := p.forced[:min(len(p.forced), o.MaxTokens)]; err != nil || len(want) > 0 && !slices.Equal(q.tokens, want) {
				t.Errorf("%s: %v, %v, want %v", policy, q.tokens, err, want)
			}
		}
		if l.adapter != nil {
			if err := l.adapter.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Every policy decodes the same tokens, and the report has each one's results.
func TestAdapt(t *testing.T) {
	stream, err := OpenStream("attack*3>"+questions(t, "q", "one two", "three"), 6, 1, SuiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := AdaptOptions{
		Target: tinyPair(t), Drafter: "jetspec:tree=ddtree", Streams: []Stream{stream}, Policies: []string{Frozen, "always",
			"osd"}, Epochs: 2, MaxTokens: 8, Uncontrolled: true,
	}
	done := 0
	o.Progress = func(n, total int) {
		done++
		if n != done || total != 3*2*6 {
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
		if p.Mismatches != 0 || p.Tau < 1 || p.TokensPerS <= 0 || len(p.Epochs) != 2 || len(p.Kinds) != 2 ||
			(p.Learning == nil) != (i == 0) {
			t.Errorf("%+v", p)
		}
		if l := p.Learning; l != nil && (l.Error != "" || l.Queries != 12 || l.Updates[adapt.Full] == 0) {
			t.Errorf("%s: %+v", p.Name, l)
		}
	}
	var b bytes.Buffer
	if err := r.Markdown(&b); err != nil || !strings.Contains(b.String(), "| always |") ||
		!strings.Contains(b.String(), "τ by epoch") {
		t.Errorf("%v\n%s", err, b.String())
	}
	if files, err := r.Save(filepath.Join(t.TempDir(), "out")); err != nil || len(files) != 4 {
		t.Errorf("%v, %v", files, err)
	}
	// An interrupted run reports the queries of the turns that all policies have finished.
	for stop, queries := range map[int]int{7: 0, 31: 10} {
		ctx, cancel := context.WithCancel(context.Background())
		o.Progress = func(n, _ int) {
			if n == stop {
				cancel()
			}
		}
		r, err := Adapt(ctx, o)
		if !errors.Is(err, context.Canceled) || !r.Interrupted || (len(r.Streams) > 0) != (queries > 0) {
			t.Fatalf("ended at query %d: %v, %d streams", stop, err, len(r.Streams))
		}
		for _, s := range r.Streams {
			for _, p := range s.Policies {
				if len(p.Windows) != 1 || p.Windows[0].Queries != queries || len(p.Epochs) != 2 || p.Epochs[1].Queries != queries-6 {
					t.Errorf("ended at query %d: %+v", stop, p)
				}
			}
			b.Reset()
			if err := r.Markdown(&b); err != nil || !strings.Contains(b.String(), "Interrupted") {
				t.Errorf("%v\n%s", err, b.String())
			}
		}
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

// What the updates that are waited for would have cost decoding is in the turn's time, once.
func TestAdaptChargesWhatItWaitedFor(t *testing.T) {
	o := AdaptOptions{Target: tinyPair(t), Drafter: "jetspec:tree=ddtree", MaxTokens: 8, Uncontrolled: true,
		Adapt: adapt.Options{Wait: true, Tuning: adapt.DefaultTuning()}}
	l, err := o.learning("always")
	if err != nil {
		t.Fatal(err)
	}
	defer l.adapter.Close()
	decoded := 0.0
	for range 3 {
		q, err := l.decode(context.Background(), encoded{prompt: []int32{5, 6, 7, 5, 6}}, &o)
		if err != nil {
			t.Fatal(err)
		}
		decoded += q.seconds
		l.queries = append(l.queries, q)
		l.rest(&o)
	}
	all := 0.0
	for _, q := range l.queries {
		all += q.seconds
	}
	if lost := l.adapter.Stats().Lost; !(lost > 0) || math.Abs(all-decoded-lost) > 1e-9 {
		t.Errorf("%g s beside %g s of decoding: want the %g s that learning cost", all-decoded, decoded, lost)
	}
}
