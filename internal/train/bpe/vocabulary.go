package bpe

import (
	"slices"
	"strings"
)

// Vocabulary is the result of learning: a token for every byte, one for every merge, then the
// special tokens. A token's id is its place.
type Vocabulary struct {
	Pre     string     // how text is split into words, by llama.cpp's name
	Tokens  []string   // the bytes of each, without special tokens
	Merges  [][2]int32 // Merges[i] makes Tokens[256+i]
	Special []string
}

// Special lists the control tokens of grove's vocabularies: end of text, the turns of a chat,
// fill-in-the-middle, and the mask that a block head puts where it predicts.
func Special() []string {
	return []string{EndOfText, TurnStart, TurnEnd, "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", Mask}
}

// Names of special tokens.
const (
	EndOfText = "<|endoftext|>"
	TurnStart = "<|im_start|>"
	TurnEnd   = "<|im_end|>"
	Mask      = "<|mask|>"
)

// ChatTemplate is ChatML.
const ChatTemplate = `{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// Size is the number of tokens.
func (v *Vocabulary) Size() int { return len(v.Tokens) + len(v.Special) }

// SpecialID returns the id of a special token, or −1 if there is none with that name.
func (v *Vocabulary) SpecialID(name string) int32 {
	if i := slices.Index(v.Special, name); i >= 0 {
		return int32(len(v.Tokens) + i)
	}
	return -1
}

// chats reports whether the vocabulary has the tokens that ChatTemplate writes.
func (v *Vocabulary) chats() bool { return v.SpecialID(TurnStart) >= 0 && v.SpecialID(TurnEnd) >= 0 }

// texts lists all tokens in the form of files.
func (v *Vocabulary) texts() []string {
	out := make([]string, 0, v.Size())
	for _, t := range v.Tokens {
		out = append(out, alphabet(t))
	}
	return append(out, v.Special...)
}

// byteOrder returns GPT-2's order: printable bytes first, then the others.
func byteOrder() []byte {
	var first, rest []byte
	for b := range 256 {
		if printable(b) {
			first = append(first, byte(b))
		} else {
			rest = append(rest, byte(b))
		}
	}
	return append(first, rest...)
}

func printable(b int) bool { return b > ' ' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }

// alphabet returns bytes in the form of vocabulary files: printable bytes as the characters with
// that number, the others, in order, as the characters from U+0100 on.
func alphabet(token string) string {
	var s strings.Builder
	for i := range len(token) {
		s.WriteRune(byteRunes[token[i]])
	}
	return s.String()
}

var byteRunes = func() (r [256]rune) {
	next := rune(256)
	for b := range 256 {
		r[b] = rune(b)
		if !printable(b) {
			r[b] = next
			next++
		}
	}
	return r
}()
