package grove

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/testing/calltest"
	"github.com/grovellm/grove/models"
)

// reference finds the stop string that is complete first by trying every end in the whole text, from one on.
func reference(text string, stops []string, from int) (string, bool) {
	for end := from; end <= len(text); end++ {
		longest := 0
		for _, s := range stops {
			if strings.HasSuffix(text[:end], s) {
				longest = max(longest, len(s))
			}
		}
		if longest > 0 {
			return text[:end-longest], true
		}
	}
	return text, false
}

// However the text is cut, the same part of it is let out, and nothing that belongs to a stop string.
func TestStopIsTheSameForEveryCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab]{0,24}`).Draw(t, "text")
		stops := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,5}`), 0, 4).Draw(t, "stops")
		after := rapid.IntRange(0, 8).Draw(t, "after")
		want, wantStopped := reference(text, stops, after+1)

		s := stopper{stops: stops, after: after}
		var got strings.Builder
		stopped := false
		for rest := text; rest != "" && !stopped; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			var out string
			out, stopped = s.push(rest[:n], got.Len())
			got.WriteString(out)
			rest = rest[n:]
			if !strings.HasPrefix(want, got.String()) {
				t.Fatalf("%q came out, which is no beginning of %q", got.String(), want)
			}
		}
		if !stopped {
			got.WriteString(s.flush())
		}
		if got.String() != want || stopped != wantStopped {
			t.Fatalf("got %q (stopped %v), want %q (stopped %v)", got.String(), stopped, want, wantStopped)
		}
	})
}

// Text is held back no longer than it must be.
func TestStopHoldsBackLittle(t *testing.T) {
	s := stopper{stops: []string{"\n\n", "END"}}
	for _, c := range []struct{ in, out string }{{"one\n", "one"}, {"two E", "\ntwo "}, {"N", ""}, {"D?", ""}} {
		if out, _ := s.push(c.in, 0); out != c.out {
			t.Errorf("after %q: %q came out, want %q", c.in, out, c.out)
		}
	}
}

// Stop strings count after reasoning and the white space that follows it, and from a call on that
// ends it, however the text is cut.
func TestStopBehindReasoning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"<think>", "</think>", "<call>", "a", "b", "\n", " ", "<", "</thin", "think>"})
		text := strings.Join(rapid.SliceOfN(words, 0, 12).Draw(t, "text"), "")
		stops := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "\n", "<", "think>", "</think>"}),
			0, 3).Draw(t, "stops")
		open := rapid.Bool().Draw(t, "open")
		thought, rest := "", text
		begun := strings.TrimLeft(text, " \n")
		if open || strings.HasPrefix(begun, "<think>") || strings.HasPrefix(begun, "</think>") {
			thought, rest = text, ""
			before, after, ended := strings.Cut(text, "</think>")
			if call := strings.Index(before, "<call>"); call >= 0 {
				ended, after = true, text[call:]
			}
			if ended {
				rest = strings.TrimLeft(after, " \n")
				thought = text[:len(text)-len(rest)]
			}
		}
		want, wantStopped := reference(rest, stops, 0)
		want = thought + want
		o := output{stopper: stopper{stops: stops}}
		o.thought = reasoned{marks: callform.AllMarks[0], opens: "<call>", state: mayReason}
		if open {
			o.thought.state = isReasoning
		}
		stopped := false
		for rest := text; rest != "" && !stopped; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			stopped = o.add(rest[:n])
			rest = rest[n:]
		}
		if !stopped {
			stopped = o.end()
		}
		if got := o.all.String(); got != want || stopped != wantStopped {
			t.Fatalf("got %q (stopped %v), want %q (stopped %v)", got, stopped, want, wantStopped)
		}
	})
}

// Stop strings count in the text that gpt-oss writes for the user between reasoning, and end there, however the text
// is cut.
func TestStopInPreamble(t *testing.T) {
	m, err := OpenGGUF("target", models.Target(), Options{Threads: 1, ChatTemplate: strings.Replace(
		calltest.Templates["gptoss"], "<|end|><|assistant|>", "<|end|><|start|>assistant", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	layout, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	form, err := layout.CallForm()
	if err != nil {
		t.Fatal(err)
	}
	g := generation{m: m, r: &Request{Reasoning: true, Tools: &Tools{Form: form}}}
	g.request()
	preamble := g.out.thought.preamble
	want := callform.Marks{Begin: "<|channel|>commentary<|message|>", End: "<|end|><|start|>assistant"}
	if preamble != want {
		t.Fatalf("a preamble stands between %q", preamble)
	}
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "ba", "<", "end"}), 0, 3).Draw(t, "stops")
		text, want := "", ""
		stopped := false
		words := rapid.StringMatching(`[ab ]{0,6}`)
		for _, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"analysis", "commentary"}), 0, 4).Draw(t, "messages") {
			begin, said := "<|channel|>"+kind+"<|message|>", words.Draw(t, "text")
			kept := said
			text += begin + said + preamble.End
			if !stopped {
				if kind == "commentary" {
					kept, stopped = reference(said, stops, 0)
				}
				want += begin + kept + preamble.End[:map[bool]int{false: len(preamble.End)}[stopped]]
			}
		}
		if said := words.Draw(t, "answer"); !stopped {
			kept, ended := reference(strings.TrimLeft(said, " "), stops, 0)
			spaces := said[:len(said)-len(strings.TrimLeft(said, " "))]
			text, stopped = text+callform.Channels.End+said, ended
			want += callform.Channels.End + spaces + kept
		}
		o := output{stopper: stopper{stops: stops}}
		o.thought = reasoned{marks: callform.Channels, preamble: preamble, state: isReasoning}
		got := false
		for rest := text; rest != "" && !got; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			got = o.add(rest[:n])
			rest = rest[n:]
		}
		if !got {
			got = o.end()
		}
		if o.all.String() != want || got != stopped {
			t.Fatalf("%q: got %q (stopped %v), want %q (stopped %v)", text, o.all.String(), got, want, stopped)
		}
	})
}
