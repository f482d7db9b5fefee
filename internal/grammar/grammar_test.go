package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/lab/grammars"
	_ "github.com/grovellm/grove/internal/testing/testfile" // collects garbage less often
	"pgregory.net/rapid"
)

func draw(t *rapid.T) func(n int) int {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
}

// unambiguous skips cases that are too ambiguous, and fails for other errors.
func unambiguous(t *rapid.T, err error) {
	if errors.Is(err, errAmbiguous) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// At every state of a random walk the mask has exactly the tokens whose bytes the automaton takes
// one by one, every allowed token leads to a state that can be completed, and what is forced is the
// only way on.
func TestMaskIsEveryAllowedToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := GBNF(grammars.Random(draw(t)))
		if err != nil {
			t.Skip(err)
		}
		pieces := grammars.Vocab(rapid.IntRange(1, 40).Draw(t, "tokens"), draw(t))
		v := NewVocab(pieces)
		s, err := g.Start()
		for range 12 {
			unambiguous(t, err)
			if rapid.IntRange(0, 3).Draw(t, "forget") == 0 {
				g.reset() // states outlive what is remembered
			}
			var mask *Mask
			mask, err = g.Mask(v, s)
			unambiguous(t, err)
			forced, failed := g.Forced(s)
			unambiguous(t, failed)
			var allowed []int32
			for token, piece := range pieces {
				next, err := g.Next(v, s, int32(token))
				unambiguous(t, err)
				slow := s
				for _, b := range piece {
					slow, err = g.slow(slow, b)
					unambiguous(t, err)
					if slow == dead {
						break
					}
				}
				want := len(piece) > 0 && slow != dead
				if want != (next != nil) || want != mask.Has(int32(token)) {
					t.Fatalf("token %q: mask %v, next %v, byte by byte %v", piece, mask.Has(int32(token)), next != nil, want)
				}
				if !want {
					continue
				}
				if len(next.configs) != len(slow.configs) {
					t.Fatalf("token %q: %d configurations, byte by byte %d", piece, len(next.configs), len(slow.configs))
				}
				if len(next.configs) == 0 && !next.accepting {
					t.Fatalf("token %q leads nowhere", piece)
				}
				if n := min(len(forced), len(piece)); string(forced[:n]) != string(piece[:n]) {
					t.Fatalf("token %q is allowed where %q is forced", piece, forced)
				}
				allowed = append(allowed, int32(token))
			}
			if mask.Count() != len(allowed) {
				t.Fatalf("%d tokens counted, %d allowed", mask.Count(), len(allowed))
			}
			if len(allowed) == 0 {
				return
			}
			s, err = g.Next(v, s, rapid.SampledFrom(allowed).Draw(t, "token"))
		}
	})
}

// slow is the state after a byte, computed with nothing remembered.
func (g *Grammar) slow(s *State, b byte) (*State, error) {
	fresh := &Grammar{nodes: g.nodes, start: g.start, root: g.root}
	fresh.classify()
	fresh.reset()
	return fresh.step(&State{configs: s.configs, accepting: s.accepting}, b)
}

var patterns = []string{
	"a*b", "(ab|a)(b|bc)?", "[a-c]{2,3}d", "a.c", "(?i)aBc", "é+|語", "", "a|", "x{0}", "[^a]b?",
	`\d+\.\d`, "^ab$", "^(a|b)*c$",
	"(a|b)*", "((a))", "[é-語]a", `\x61\x62`, "(a+)+b", `(?s).b`,
}

var searched = []string{"a", "^a", "a$", "^a$", "(^|b)a", "a(b|$)", "^", "$", "^a|b$", "(^a)|c", "x*", "^$", "[ab]c|^d"}

// A text is a whole match of a pattern, or has a match somewhere, as package regexp says.
func TestRegexIsRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "length") {
			text.WriteRune(rapid.SampledFrom([]rune("aabbccd1.é語AB\nx")).Draw(t, "letter"))
		}
		pattern := rapid.SampledFrom(patterns).Draw(t, "pattern")
		g, err := Regex(pattern)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		compare(t, g, regexp.MustCompile(`\A(?:`+pattern+`)\z`), text.String())
		pattern = rapid.SampledFrom(searched).Draw(t, "searched")
		e, err := schemaRegex(pattern)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		var rules grammar
		g, err = rules.compile(rules.add("root", e))
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		compare(t, g, regexp.MustCompile(pattern), text.String())
	})
}

// A text matches a pattern with a lookahead where it can be cut in two so that the parts match what stands on both
// sides, and the second one begins, or does not, as the lookahead says.
func TestLookaheads(t *testing.T) {
	letters := []rune("aabbcd1.x")
	sides := []string{"a*", "[a-c]*", "(a|b)?", ".*", "(ab|a)(b|bc)?", "", "x{0,2}", "[^a]b?", `(\d+\.)*`, "(a+)+b"}
	bodies := []string{"a", "b$", ".*b", "", "$", "[ab]{2}", "(ab)*c", ".{2,3}$", "a|bb$"}
	rapid.Check(t, func(t *rapid.T) {
		before, behind := rapid.SampledFrom(sides).Draw(t, "before"), rapid.SampledFrom(sides).Draw(t, "behind")
		body, sign := rapid.SampledFrom(bodies).Draw(t, "lookahead"), rapid.SampledFrom([]string{"=", "!"}).Draw(t, "sign")
		pattern := "^" + before + "(?" + sign + body + ")" + behind + "$"
		quoted, _ := json.Marshal(pattern)
		g, err := JSONSchema(`{"type": "string", "pattern": ` + string(quoted) + `}`)
		first, ahead := regexp.MustCompile(`\A(?:`+before+`)\z`), regexp.MustCompile(`\A(?:`+body+`)`)
		second := regexp.MustCompile(`\A(?:` + behind + `)\z`)
		for range 8 {
			text := string(rapid.SliceOfN(rapid.SampledFrom(letters), 0, 6).Draw(t, "text"))
			want := false
			for i := range len(text) + 1 {
				a, b := text[:i], text[i:]
				want = want || first.MatchString(a) && ahead.MatchString(b) == (sign == "=") && second.MatchString(b)
			}
			c := newSchemas()
			if got := c.matches(pattern, text); got != want || c.err != nil {
				t.Fatalf("%s matches %q: %v, %v", pattern, text, got, c.err)
			}
			if err != nil && !want && strings.Contains(err.Error(), "no text") {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", pattern, err)
			}
			if got, err := g.Accepts(`"` + text + `"`); got != want || err != nil {
				t.Fatalf("%s writes %q: %v, %v", pattern, text, got, err)
			}
		}
	})
}

func compare(t *rapid.T, g *Grammar, re *regexp.Regexp, text string) {
	got, err := g.Accepts(text)
	if err != nil || got != re.MatchString(text) {
		t.Fatalf("%s, text %q: accepted %v (%v)", re, text, got, err)
	}
}

// The encodings of a range of characters are those of UTF-8.
func TestCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := []rune{0, 1, 0x7f, 0x80, 0x7ff, 0x800, 0xfff, 0x1000, 0xd7ff, 0xd800, 0xdfff, 0xe000, 0xffff, 0x10000,
			0x3ffff, 0x40000, 0x10ffff}
		char := rapid.OneOf(rapid.SampledFrom(edges), rapid.Int32Range(0, 0x10ffff))
		a, b := char.Draw(t, "a"), char.Draw(t, "b")
		set := charSet{{min(a, b), max(a, b)}}
		if rapid.Bool().Draw(t, "not") {
			set = set.not()
			if len(set) == 0 {
				return
			}
		}
		var rules grammar
		g, err := rules.compile(rules.add("root", repeat(chars(set...), 0, 2)))
		if err != nil {
			t.Fatal(err)
		}
		c := rapid.OneOf(char, rapid.SampledFrom(edges), rapid.Just(set[0].lo)).Draw(t, "character")
		want := set.has(c) && !(c >= 0xd800 && c <= 0xdfff)
		if c >= 0xd800 && c <= 0xdfff {
			return
		}
		if got, err := g.Accepts(string(c)); err != nil || got != want {
			t.Fatalf("%x in %x: %v, %v", c, set, got, err)
		}
	})
}

func TestGBNF(t *testing.T) {
	for _, c := range []struct {
		grammar string
		yes, no []string
	}{
		{`root ::= "a" | "b" # either`, []string{"a", "b"}, []string{"", "ab"}},
		{"root ::= item+ # list\nitem ::= \"- \" [^\\n]+ \"\\n\"", []string{"- x\n- y\n"}, []string{"-", "- \n"}},
		{"root ::= (\"a\" |\n  \"b\")\n  \nx ::= \"unused\"", []string{"b"}, []string{"unused"}},
		{`root ::= [a-c-] [\x41-\u0043] "\"\\"`, []string{`-B"\`}, []string{`dB"\`}},
		{"root ::= \"(\" root \")\" | \"x\"", []string{"x", "((x))"}, []string{"((x)"}},
		{"root ::= col_1 \" is \" col_1\ncol_1 ::= \"a\" | \"b\"", []string{"a is b"}, []string{"a"}},
		{"root ::= \"x\" | \"y\" dead\ndead ::= \"z\" dead", []string{"x"}, []string{"y", "yz"}},
	} {
		g, err := GBNF(c.grammar)
		if err != nil {
			t.Errorf("%s: %v", c.grammar, err)
			continue
		}
		for i, text := range append(c.yes, c.no...) {
			if got, err := g.Accepts(text); err != nil || got != (i < len(c.yes)) {
				t.Errorf("%s: %q: %v, %v", c.grammar, text, got, err)
			}
		}
	}
	for grammar, want := range map[string]string{
		"":                            "there is no rule root",
		"root ::= x":                  "rule x is used and not defined",
		"root ::= root \"a\" | \"b\"": "begins with itself",
		"root ::= x root \"a\" | \"b\"\nx ::= \"\"": "begins with itself",
		"root ::= \"a\" root":                       "no text can complete it",
		"root ::= \"a":                              "line 1, column 12",
		"root ::= \"a\"{3,2}":                       "less than its least",
		"root ::= \"a\"{99999}":                     "want a number",
		"root = \"a\"":                              "want a rule",
		"root ::= (\"a\"":                           "want )",
		"root ::= <[1]>":                            "tokens by name",
		"root ::= [\\q]":                            "want an escape",
		"root ::= \"" + strings.Repeat("a", maxNodes) + "\"": "states",
	} {
		if _, err := GBNF(grammar); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v: want %q", grammar, err, want)
		}
	}
}

func FuzzGBNF(f *testing.F) {
	f.Add("root ::= \"a\" [b-c]* (x | .){1,2} # c\nx ::= root?", "ab")
	f.Add("root ::= ([\\x00-\\U0010ffff]+ \"é\")?", "\x00")
	f.Fuzz(func(t *testing.T, source, text string) {
		fuzz(t, func() (*Grammar, error) { return GBNF(source) }, text)
	})
}

func FuzzRegex(f *testing.F) {
	for _, pattern := range append(patterns, searched...) {
		f.Add(pattern, "abc")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		fuzz(t, func() (*Grammar, error) { return Regex(pattern) }, text)
	})
}

// fuzz compiles and walks. It must not panic, nor take long for a short source.
func fuzz(t *testing.T, compile func() (*Grammar, error), text string) {
	began := time.Now()
	g, err := compile()
	if err == nil {
		if len(g.nodes) > maxNodes {
			t.Errorf("%d nodes", len(g.nodes))
		}
		_, _ = g.Accepts(text[:min(len(text), 100)])
	}
	if took := time.Since(began); took > 20*time.Second { // far above what a slow machine takes
		t.Errorf("it took %v", took)
	}
}

// A mask of 150,000 tokens, computed anew and remembered, where a string goes on.
func BenchmarkMask(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := make([][]byte, 150_000)
	for i := range pieces {
		for range 1 + rng.IntN(8) {
			pieces[i] = append(pieces[i], " etaoinshrdlucmfwypvbgkqjxz\"{}[]:,.0123456789"[rng.IntN(45)])
		}
	}
	v := NewVocab(pieces)
	g, err := JSONSchema(`{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}`)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"new", "known"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if name == "new" {
					g.reset()
				}
				s, _ := g.Start()
				s, err := g.walk(s, []byte(`{"name": "A`))
				if err != nil {
					b.Fatal(err)
				}
				if m, err := g.Mask(v, s); err != nil || m.Count() == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}

// Regex is the grammar of a regular expression alone.
func Regex(pattern string) (*Grammar, error) {
	g, root, err := readRegex(pattern)
	if err != nil {
		return nil, err
	}
	return g.compile(root)
}

// Masks of counted repetitions are right near both ends and far from them, for tokens of every length, and far from
// both ends they are computed once.
func TestMasksOfCounts(t *testing.T) {
	var pieces [][]byte
	for _, piece := range []string{"a", "b", ",", `"`, "\\n", "é", "\xc3", "\xa9", "a,", `a"`, "ab,ab,", "b\"x"} {
		for _, n := range []int{1, 2, 7, 16, 31, 32, 33, 34, 64, 70} {
			if n == 1 || len(piece) < 3 {
				pieces = append(pieces, []byte(strings.Repeat(piece, n)))
			}
		}
	}
	v := NewVocab(pieces)
	for _, source := range []string{`root ::= [ab]{100,300}`, `root ::= ("a"? "b"?){40,90}`, `root ::= [^"]{0,200} "\"x"`,
		`root ::= (([ab]{1,50} ","){35,60} "\""){2,40}`, `root ::= item{0,120} "b"` + "\nitem ::= [ab]{2} \",\""} {
		g, err := GBNF(source)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			s, err := g.Start()
			length := rapid.IntRange(0, 120).Draw(t, "tokens")
			for range length {
				unambiguous(t, err)
				mask, err := g.Mask(v, s)
				unambiguous(t, err)
				var allowed []int32
				for token := range pieces {
					next, err := g.Next(v, s, int32(token))
					unambiguous(t, err)
					if (next != nil) != mask.Has(int32(token)) {
						t.Fatalf("token %q: %v", pieces[token], next != nil)
					}
					if next != nil {
						allowed = append(allowed, int32(token))
					}
				}
				if mask.Count() != len(allowed) {
					t.Fatalf("%d tokens, want %d", mask.Count(), len(allowed))
				}
				if len(allowed) == 0 {
					return
				}
				s, err = g.Next(v, s, rapid.SampledFrom(allowed).Draw(t, "token"))
				unambiguous(t, err)
			}
		})
	}
	g, err := JSONSchema(`{"type": "string", "minLength": 5, "maxLength": 2000}`)
	if err != nil {
		t.Fatal(err)
	}
	short := NewVocab(slices.DeleteFunc(pieces, func(p []byte) bool { return len(p) > shortPiece }))
	s, err := g.Start()
	if err != nil {
		t.Fatal(err)
	}
	masks := map[*Mask]bool{}
	for _, text := range []string{`"`, strings.Repeat("a", 2000)} {
		for _, b := range []byte(text) {
			m, err := g.Mask(short, s)
			if err != nil {
				t.Fatal(err)
			}
			masks[m] = true
			s, err = g.walk(s, []byte{b})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(masks) > 45 { // before the string, before its fifth character, and near its end
		t.Errorf("%d masks for 2,001 tokens", len(masks))
	}
}
