// Package xgrammar compares the next-token masks of package grammar with those of xgrammar, on JSON
// schemas.
//
//	npm ci && go test -v .
//
// Without its npm package the test is skipped.
package xgrammar

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

const prefixes = 200 // of each schema

// peer is xgrammar in a process of its own.
type peer struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// ask sends a line and returns the mask of the answer.
func (p *peer) ask(t *testing.T, line map[string]any) ([]byte, error) {
	t.Helper()
	data, err := json.Marshal(line)
	if err == nil {
		_, err = p.in.Write(append(data, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Mask, Error string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "" {
		return nil, errors.New("xgrammar: " + answer.Error)
	}
	mask, err := base64.StdEncoding.DecodeString(answer.Mask)
	if err != nil {
		t.Fatal(err)
	}
	return mask, nil
}

// byteLevel writes bytes as vocabularies of byte-level BPE do: one printable character for each
// byte.
func byteLevel(piece []byte) string {
	var s strings.Builder
	for _, b := range piece {
		switch c := rune(b); {
		case c >= '!' && c <= '~' || c >= 0xa1 && c <= 0xac || c >= 0xae:
			s.WriteRune(c)
		default: // the others are numbered from 256 on, in order
			at := c
			if c > '~' {
				at = c - '~' - 1 + '!'
			}
			if c == 0xad {
				at = 67
			}
			s.WriteRune(256 + at)
		}
	}
	return s.String()
}

// vocabulary is that of grove's small model.
func vocabulary(t *testing.T) (pieces [][]byte, texts []string, stop []int32) {
	f, err := gguf.Parse("embedded", models.Target())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	for id := range int32(tok.VocabSize()) {
		var piece []byte
		if tok.IsEOG(id) {
			stop = append(stop, id)
		} else if !tok.IsSpecial(id) {
			piece = []byte(tok.Piece(id))
		}
		pieces, texts = append(pieces, piece), append(texts, byteLevel(piece))
	}
	return pieces, texts, stop
}

func TestMasks(t *testing.T) {
	if _, err := os.Stat("node_modules"); err != nil {
		t.Skip("the npm package is not installed: npm ci")
	}
	cmd := exec.Command("node", "masks.mjs")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	p := &peer{in, bufio.NewReaderSize(out, 1<<20)}
	pieces, texts, stop := vocabulary(t)
	vocab := grammar.NewVocab(pieces)
	if _, err := p.ask(t, map[string]any{"vocab": texts, "stop": stop}); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	same, counts := 0, make([]int, len(explanations))
	for _, schema := range schemas {
		w := walk{T: t, peer: p, schema: schema, vocab: vocab, pieces: pieces, stop: stop[0], rng: rng}
		var err error
		if w.grammar, err = grammar.JSONSchema(schema); err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		w.begin(map[string]any{"schema": schema})
		for range prefixes {
			found := w.compare()
			if len(found) == 0 {
				same++
			}
			for i := range found {
				counts[i]++
			}
			w.step()
		}
	}
	t.Logf("%d schemas, %d prefixes: the masks of %d are equal", len(schemas), prefixes*len(schemas), same)
	for i, e := range explanations {
		t.Logf("%d differ where %s", counts[i], e.what)
		if counts[i] == 0 {
			t.Errorf("no mask differs where %s", e.what)
		}
	}
}

// explanation is a reason why masks differ, and which tokens one side has alone for it.
type explanation struct {
	what string
	is   func(schema, text, token string, ours bool) bool
}

// explanations are all reasons that there are.
var explanations = []explanation{
	{"xgrammar allows bytes that are no UTF-8", func(_, text, token string, ours bool) bool {
		return !ours &&
			!beginsUTF8(text+token)
	}},
	{"xgrammar allows an escape of a half of a surrogate pair alone", func(_, text, token string, ours bool) bool {
		return !ours && surrogate.MatchString(text+token)
	}},
	{"a number has more digits than grove allows: 18, 15 of a fraction, 2 of an exponent", func(_, text, token string, ours bool) bool {
		return !ours && longNumber.MatchString(text+token)
	}},
	{"xgrammar writes a constant object without spaces", func(schema, _, _ string, _ bool) bool {
		return strings.Contains(schema, `"const": {`)
	}},
	{"xgrammar allows escapes in names of additional properties", func(schema, _, token string, ours bool) bool {
		return !ours && strings.Contains(schema, "additionalProperties") && strings.Contains(token, `\`)
	}},
	{"grove allows escapes in strings of a length", func(schema, text, token string, ours bool) bool {
		return ours && strings.Contains(schema, "Length") && strings.Contains(text+token, `\`)
	}},
	{"xgrammar allows control characters in strings of a length, which JSON does not", func(schema, _, token string, ours bool) bool {
		return !ours && strings.Contains(schema, "Length") && strings.ContainsFunc(token, func(r rune) bool { return r < ' ' })
	}},
	{"the schema refers to itself as a whole, and xgrammar ends two objects by two tokens alone", func(schema, _, token string, ours bool) bool {
		return ours && strings.Contains(schema, `"$ref": "#"`) && strings.HasPrefix(token, "}}")
	}},
	{"xgrammar allows zeros before a number of an IPv4 address", func(schema, text, token string, ours bool) bool {
		return !ours && strings.Contains(schema, `"ipv4"`) && leadingZero.MatchString(text+token)
	}},
}

var (
	longNumber  = regexp.MustCompile(`\d{19}|\.\d{16}|[eE][+-]?\d{3}`)
	surrogate   = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	leadingZero = regexp.MustCompile(`["\.]0\d`)
)

// beginsUTF8 reports whether a text is the beginning of valid UTF-8.
func beginsUTF8(text string) bool {
	for len(text) > 0 && utf8.FullRuneInString(text) {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			return false
		}
		text = text[n:]
	}
	return true
}

// walk is a random text of a schema, which both sides follow.
type walk struct {
	*testing.T
	*peer
	schema  string
	grammar *grammar.Grammar
	vocab   *grammar.Vocab
	pieces  [][]byte
	stop    int32
	rng     *rand.Rand

	text   string
	tokens int
	state  *grammar.State
	theirs []byte  // their mask
	both   []int32 // tokens that both masks have
}

func (w *walk) begin(line map[string]any) {
	w.Helper()
	w.text, w.tokens = "", 0
	var err error
	if w.state, err = w.grammar.Start(); err == nil {
		w.theirs, err = w.ask(w.T, line)
	}
	if err != nil {
		w.Fatalf("%s: %v", w.schema, err)
	}
}

// compare returns the explanations of what differs between the masks. What has none is an error.
func (w *walk) compare() map[int]bool {
	mask, err := w.grammar.Mask(w.vocab, w.state)
	if err != nil {
		w.Fatal(err)
	}
	has := func(token int32) bool {
		return len(w.theirs) > 0 && binary.LittleEndian.Uint32(w.theirs[token/32*4:])>>(token%32)&1 == 1
	}
	if w.state.Accepting() != has(w.stop) {
		w.Errorf("%s: after %q the text may end %v, with xgrammar %v", w.schema, w.text, w.state.Accepting(), has(w.stop))
	}
	w.both = w.both[:0]
	found := map[int]bool{}
	for token, piece := range w.pieces {
		ours, theirs := mask.Has(int32(token)), has(int32(token))
		switch {
		case piece == nil || !ours && !theirs:
		case ours && theirs:
			w.both = append(w.both, int32(token))
		default:
			i := slices.IndexFunc(explanations, func(e explanation) bool { return e.is(w.schema, w.text, string(piece), ours) })
			found[i] = true
			if i < 0 {
				w.Errorf("%s: after %q, token %q: grove allows it %v, xgrammar %v", w.schema, w.text, piece, ours, theirs)
			}
		}
	}
	delete(found, -1)
	return found
}

// step adds a token that both allow, or begins anew.
func (w *walk) step() {
	if len(w.both) == 0 || w.tokens > 30 {
		w.begin(map[string]any{})
		return
	}
	token := w.both[w.rng.IntN(len(w.both))]
	for range 3 * w.rng.IntN(2) { // strings are to end
		if !strings.ContainsAny(string(w.pieces[token]), `",}]`) {
			token = w.both[w.rng.IntN(len(w.both))]
		}
	}
	w.text += string(w.pieces[token])
	w.tokens++
	var err error
	if w.state, err = w.grammar.Next(w.vocab, w.state, token); err == nil {
		w.theirs, err = w.ask(w.T, map[string]any{"token": token})
	}
	if err != nil {
		w.Fatalf("%s: %v", w.schema, err)
	}
}
