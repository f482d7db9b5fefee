package synth

import (
	"fmt"
)

// llama.cpp's kinds of tokens (tokenizer.ggml.token_type).
const (
	normal  int32 = 1
	unknown int32 = 2
	control int32 = 3
	byteTok int32 = 6
)

// vocab is a tokenizer: the pieces of a generated vocabulary, and the merges or scores that lead to them.
type vocab struct {
	pieces []string
	kinds  []int32
	scores []float32   // SPM only
	merges [][2]string // best first; for an SPM vocabulary, those of tokenizer.json

	special       []string // the control tokens
	bos, eos, eot int32    // −1 for none
	addBOS        bool
	template      string // chat template; may be empty
}

// byFrequency lists the letters by their frequency in English: short words of frequent letters come first.
const byFrequency = "etaoinshrdlucmfwygpbvkxjqz"

// buildVocab makes n pieces: single bytes, then all words of two, three and four letters, with and without a
// space before them, until there are n. A word's merge joins the word without its last letter with that letter.
func buildVocab(kind Tokens, n int) (*vocab, error) {
	v := &vocab{bos: -1, eos: -1, eot: -1}
	space := "Ġ" // a space in byte-level BPE
	if kind == SPM {
		space = "▁"
		v.spmBytes()
	} else {
		for _, r := range byteRunes() {
			v.add(string(r), normal)
		}
	}
	var last []string
	switch kind {
	case SPM:
		v.bos = 1
		v.eos = 2
		v.addBOS = true
		v.template = llama2Template
		v.special = []string{"<unk>", "<s>", "</s>"}
	case Llama3:
		last = []string{"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
		v.addBOS, v.template = true, llama3Template
	case Qwen2:
		last = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
		v.template = chatMLTemplate
	case GPT2:
		last = []string{"<|endoftext|>"}
	}
	v.words(space, n-len(last))
	if len(v.pieces) != n-len(last) {
		return nil, fmt.Errorf("synth: a vocabulary of %d pieces: want %d to %d", n, minVocab, maxVocab)
	}
	id := int32(len(v.pieces))
	for _, s := range last {
		v.add(s, control)
	}
	v.special = append(v.special, last...)
	switch kind {
	case Llama3:
		v.bos = id
		v.eos = id + 1
		v.eot = id + 4
	case Qwen2:
		v.bos = id
		v.eos = id
		v.eot = id + 2
	case GPT2:
		v.bos = id
		v.eos = id
		v.eot = id
	}
	if kind == SPM { // pieces with higher scores are merged earlier
		v.scores = make([]float32, n)
		for i := range v.scores {
			if v.kinds[i] == normal {
				v.scores[i] = -float32(i)
			}
		}
	}
	return v, nil
}

func (v *vocab) add(piece string, kind int32) {
	v.pieces = append(v.pieces, piece)
	v.kinds = append(v.kinds, kind)
}

// spmBytes adds the pieces that every SentencePiece vocabulary of Llama's kind begins with, and ASCII's printable ones.
func (v *vocab) spmBytes() {
	v.add("<unk>", unknown)
	v.add("<s>", control)
	v.add("</s>", control)
	for b := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", b), byteTok)
	}
	v.add("▁", normal)
	for b := byte('!'); b <= '~'; b++ {
		v.add(string(rune(b)), normal)
	}
}

// words adds merged pieces until there are n pieces. Words of one length are ordered by their rarest letter.
func (v *vocab) words(space string, n int) {
	for length := 1; length <= 4; length++ {
		for rarest := range byFrequency {
			for _, prefix := range []string{space, ""} {
				if !v.wordsOf(prefix, length, rarest, n) {
					return
				}
			}
		}
	}
}

// wordsOf adds the words of a length whose rarest letter is the given one, ordered by the frequency
// of their letters. It returns false once there are n pieces.
func (v *vocab) wordsOf(prefix string, length, rarest, n int) bool {
	if prefix == "" && length == 1 {
		return len(v.pieces) < n // a letter is a byte, which the vocabulary has already
	}
	at := make([]int, length) // the word's letters
	word := make([]byte, length)
	for {
		top := 0
		for i, a := range at {
			word[i] = byFrequency[a]
			top = max(top, a)
		}
		if top == rarest {
			if len(v.pieces) >= n {
				return false
			}
			v.add(prefix+string(word), normal)
			v.merges = append(v.merges, [2]string{prefix + string(word[:length-1]), string(word[length-1:])})
		}
		i := length - 1
		for ; i >= 0 && at[i] == rarest; i-- {
			at[i] = 0
		}
		if i < 0 {
			return true
		}
		at[i]++
	}
}

// byteRunes returns GPT-2's alphabet: a printable rune for each byte, the byte itself if it is printable.
func byteRunes() []rune {
	rs := make([]rune, 256)
	next := rune(256)
	for b := range rs {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			rs[b] = rune(b)
		} else {
			rs[b] = next
			next++
		}
	}
	return rs
}

// Chat templates for the models of each kind.
const (
	chatMLTemplate = `{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`
	llama3Template = `{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>

{{ message['content'] }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}`
	llama2Template = `{% for message in messages %}{% if message['role'] == 'assistant' %} {{ message['content'] }} {{ eos_token }}{% else %}{{ bos_token }}[INST] {{ message['content'] }} [/INST]{% endif %}{% endfor %}`
)
