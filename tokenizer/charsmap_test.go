package tokenizer

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// makeCharsmap returns rules as a precompiled map. Each node of the trie takes 256 units.
func makeCharsmap(rules map[string]string) []byte {
	units, texts := make([]uint32, 256), "\x00"
	for _, from := range slices.Sorted(maps.Keys(rules)) {
		at := uint32(0)
		for i := range len(from) {
			u := &units[at^uint32(from[i])]
			if *u == 0 {
				*u = (at^uint32(from[i])^uint32(len(units)))<<10 | uint32(from[i])
				units = append(units, make([]uint32, 256)...)
				u = &units[at^uint32(from[i])]
			}
			if i == len(from)-1 {
				*u |= 1 << 8
			}
			at ^= uint32(from[i]) ^ unitOffset(*u)
		}
		units[at] = 1<<31 | uint32(len(texts))
		texts += rules[from] + "\x00"
	}
	blob := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		blob = binary.LittleEndian.AppendUint32(blob, u)
	}
	return append(blob, texts...)
}

// A map replaces texts by its rules, the longest match first.
func TestCharsmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[abé中e\x{301}]{0,12}`)
		rules := rapid.MapOfN(rapid.StringMatching(`[abé中e\x{301}]{1,4}`), rapid.StringMatching(`[aé中 ]{0,3}`),
			1, 10).Draw(t, "rules")
		s := testSpec(unigram)
		s.growth = 1
		m, err := s.readCharsmap("map", makeCharsmap(rules))
		if err != nil {
			t.Fatal(err)
		}
		froms := slices.SortedFunc(maps.Keys(rules), func(a, b string) int { return len(b) - len(a) })
		in, want := text.Draw(t, "text")+"\xff", ""
		for rest := in; rest != ""; {
			n, to := char(rest), rest[:char(rest)]
			for _, from := range froms {
				if strings.HasPrefix(rest, from) {
					n, to = len(from), rules[from]
					break
				}
			}
			want, rest = want+to, rest[n:]
		}
		got := m.longest(in, false)
		if got != want {
			t.Fatalf("%q with %q becomes %q, want %q", in, rules, got, want)
		}
		if float64(len(got)) > s.growth*float64(len(in)) {
			t.Fatalf("%q becomes %q, more than %g times as long", in, got, s.growth)
		}
	})
}

// A damaged map is refused, or changes texts without leaving its bounds.
func TestCharsmapDamaged(t *testing.T) {
	_, real := unigramVocab(t, false)
	rapid.Check(t, func(t *rapid.T) {
		blob := slices.Clone(real)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			blob[rapid.IntRange(0, len(blob)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		blob = blob[:rapid.IntRange(0, len(blob)).Draw(t, "length")]
		if rapid.Bool().Draw(t, "whole") {
			blob = append(blob, real[len(blob):]...)
		}
		s := testSpec(unigram)
		s.growth = 1
		m, err := s.readCharsmap("map", blob)
		if err != nil {
			if !strings.Contains(err.Error(), "test: map: ") {
				t.Fatal(err)
			}
			return
		}
		for _, text := range []string{"e\u0301\u0301 ﷺ…２\u00a0\t", rapid.String().Draw(t, "text"), "\xef\xb7", string(blob)} {
			if got := max(len(m.longest(text, false)), len(m.graphemes(text, false))); float64(got) > s.growth*float64(len(text)) {
				t.Fatalf("%q becomes %d bytes, more than %g times as long", text, got, s.growth)
			}
		}
	})
}

// Errors say what is wrong with a map.
func TestCharsmapErrors(t *testing.T) {
	at := func(blob []byte, unit int, x uint32) []byte {
		binary.LittleEndian.PutUint32(blob[4+4*unit:], x)
		return blob
	}
	fresh := func() []byte { return makeCharsmap(map[string]string{"a": "b"}) }
	for want, blob := range map[string][]byte{
		"has no length":                   {1, 2},
		"trie does not fit":               fresh()[:100],
		"replacements are not terminated": append(fresh(), 'x'),
		"points outside itself":           at(fresh(), 'a', 1<<20|1<<8|'a'),
		"a rule has no replacement":       at(fresh(), 256, 1<<31|1000),
		"at most 64":                      makeCharsmap(map[string]string{"a": strings.Repeat("b", 65)}),
	} {
		s := testSpec(unigram)
		s.growth = 1
		if _, err := s.readCharsmap("map", blob); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}
