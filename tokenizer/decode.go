package tokenizer

import (
	"github.com/grovellm/grove/internal/files/tokenkind"
	"strings"
	"unicode/utf8"
)

// DecodeOptions says how ids become text.
type DecodeOptions struct {
	Special  bool // show special tokens by their names; they are left out otherwise
	Continue bool // the ids continue a text, so the leading space of SentencePiece models is kept
}

// Decode returns the exact bytes that the ids stand for. If the ids end within a character, the text is
// not valid UTF-8; that of a Decoder always is.
func (t *Tokenizer) Decode(ids []int32, o DecodeOptions) string {
	var b strings.Builder
	start := !o.Continue
	for _, id := range ids {
		b.WriteString(t.pieceAt(id, o.Special, &start))
	}
	return b.String()
}

// pieceAt returns the text of id. start says that the space which encoding put in front of the text
// must come off again if id begins with one, and is updated. Encoding puts it in front of every stretch
// of text between special tokens (spaceSegments); after tokens that are left out it stays, so that the
// words on both sides do not run together.
func (t *Tokenizer) pieceAt(id int32, special bool, start *bool) string {
	if !t.has(id) {
		return ""
	}
	p, ty := t.piece[id], t.types[id]
	if ty == tokenkind.Normal || ty == tokenkind.Byte {
		if *start && t.space != spaceNever && ty == tokenkind.Normal {
			p = strings.TrimPrefix(p, " ")
		}
		*start = false
		return p
	}
	if t.IsSpecial(id) && !special {
		return ""
	}
	// Without byte tokens, the unknown token stands within text.
	*start = t.space == spaceSegments && !(ty == tokenkind.Unknown && t.byteTok[0] == none)
	return p
}

// A Decoder turns ids into text as they come. The text is always valid UTF-8: the bytes of an
// incomplete character, at most three, are held back, and bytes that cannot belong to a character
// become U+FFFD.
type Decoder struct {
	t       *Tokenizer
	o       DecodeOptions
	start   bool
	pending []byte
	out     []byte
}

// NewDecoder starts a text.
func (t *Tokenizer) NewDecoder(o DecodeOptions) *Decoder {
	return &Decoder{t: t, o: o, start: !o.Continue}
}

// Push takes the next id and returns the text that is now complete, often none.
func (d *Decoder) Push(id int32) string {
	d.pending = append(d.pending, d.t.pieceAt(id, d.o.Special, &d.start)...)
	return d.take(false)
}

// Flush returns U+FFFD for bytes that were held back and never completed.
func (d *Decoder) Flush() string { return d.take(true) }

func (d *Decoder) take(all bool) string {
	d.out = d.out[:0]
	p := d.pending
	for len(p) > 0 && (all || utf8.FullRune(p)) {
		r, n := utf8.DecodeRune(p)
		d.out = utf8.AppendRune(d.out, r)
		p = p[n:]
	}
	d.pending = append(d.pending[:0], p...)
	return string(d.out)
}
