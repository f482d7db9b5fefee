package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"pgregory.net/rapid"
)

// A file's ids and types have precedence over a token's name: a token called </s> ends a text if
// the file says so by its id, its type or its template, or says nothing. If the file makes it
// user-defined, while other tokens are control tokens, it is text.
func TestEndsThatFilesName(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(eogNames).Draw(r, "name")
		ty := rapid.SampledFrom([]int32{tokenkind.Normal, tokenkind.Control, tokenkind.UserDefined}).Draw(r, "type")
		json := rapid.Bool().Draw(r, "from tokenizer.json")
		byID := rapid.Bool().Draw(r, "named by its id")
		byTemplate := rapid.Bool().Draw(r, "in the template")
		others := rapid.Bool().Draw(r, "other control tokens")
		s := bytesSpec(someMerges...)
		s.exactTypes = json
		id := s.addToken(name, ty, 0)
		if others {
			s.addToken("<start>", tokenkind.Control, 0)
		}
		if byID {
			s.eog = []int32{id}
		}
		if byTemplate {
			s.templates = []template{{"default", "{{ x }}" + name + "{{ y }}"}}
		}
		tok, err := build(s)
		if err != nil {
			r.Fatal(err)
		}
		isText := ty == tokenkind.UserDefined && others && !byID && !byTemplate || ty == tokenkind.Normal && json && !byID
		if tok.IsEOG(id) == isText {
			r.Fatalf("ends a text: %v", tok.IsEOG(id))
		}
		wantType := ty
		if !isText && !(json && ty == tokenkind.Normal) {
			wantType = tokenkind.Control
		}
		if name := s.tokens[id]; !slices.Contains(fimNames, name) && tok.kind(id) != wantType {
			r.Fatalf("type %d, want %d", tok.kind(id), wantType)
		}
		if text := "a" + name + "b"; isText && ty == tokenkind.UserDefined && tok.Decode(tok.Encode(text,
			EncodeOptions{}), DecodeOptions{}) != text {
			r.Fatal("the token is hidden")
		}
	})
}

// Bytes that a byte-level vocabulary lacks are left out of the text, and nothing else is.
func TestBytesThatAreMissing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		lacking := rapid.SliceOfDistinct(rapid.IntRange(0xc0, 0xff), rapid.ID[int]).Draw(r, "lacking")
		s := bytesSpec()
		for i, text := range s.tokens {
			if b, ok := alphabetBytes(nil, text); ok && len(b) == 1 && slices.Contains(lacking, int(b[0])) {
				s.tokens[i], s.types[i] = fmt.Sprintf("<gone%d>", i), tokenkind.Control
			}
		}
		tok, err := build(s)
		if err != nil {
			r.Fatal(err)
		}
		text := rapid.String().Draw(r, "text") + string(rune(rapid.IntRange(0x40000, 0xbffff).Draw(r, "character")))
		var want strings.Builder
		for i := range len(text) {
			if !slices.Contains(lacking, int(text[i])) {
				want.WriteByte(text[i])
			}
		}
		if got := tok.Decode(tok.Encode(text, EncodeOptions{}), DecodeOptions{}); got != want.String() {
			r.Fatalf("%q became %q, want %q", text, got, want.String())
		}
	})
}
