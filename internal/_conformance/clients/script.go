package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tensor"
)

// A scripted model answers by fixed texts, so that the outcome of a client's task is certain. Nothing
// of the server knows: it is a file of weights with a chat template.
//
// The template chooses an answer by the conversation, and ends the prompt with that answer's mark. The
// weights make each token of an answer the successor of the one before: the embedding of the i-th such
// token is the i-th unit vector, the only layer adds zero, and row j of the output matrix has its
// numbers where the tokens are that token j follows. Each token of the answers is new to the
// vocabulary and occurs once, so that a token has one successor.

// answer is what the model says where a condition holds.
type answer struct {
	when string // a Jinja expression over the variables of scriptHead; empty: always
	text string
}

// say answers with text.
func say(when, text string) answer { return answer{when, text} }

// call answers with a call of a tool. The arguments are JSON, in the order of the tool's schema.
func call(when, name, arguments string) answer { return answer{when, callText(name, arguments)} }

// callText is a call in the form of the scripted templates and of grove's generic form.
func callText(name, arguments string) string {
	n, _ := json.Marshal(name)
	var spaced bytes.Buffer
	space(&spaced, arguments)
	return fmt.Sprintf("\n<tool_call>\n{\"name\": %s, \"arguments\": %s}\n</tool_call>", n, spaced.String())
}

// space writes JSON on one line with a space behind commas and colons, as grove's grammars have it.
func space(out *bytes.Buffer, text string) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		panic(fmt.Sprintf("arguments of a script: %v: %s", err, text))
	}
	quoted, escaped := false, false
	for _, c := range b.Bytes() {
		out.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			out.WriteByte(' ')
		}
	}
}

// A template with calls, and one without, for which grove has its generic form.
const (
	withTools = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}" +
		"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}" +
		"\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}" +
		"<|im_end|>\n{% endfor %}"
	withoutTools = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)

// scriptHead sets what conditions may ask for: the texts of the system's and the last user's message and
// of the last result of a tool, how many results there were, and the JSON of the tools.
const scriptHead = "{% set s = namespace(system='', user='', result='', results=0) %}" +
	"{% for m in messages %}{% set text = m.content or '' %}{% if m.role == 'system' %}{% set s.system = s.system + text %}{% endif %}" +
	"{% if m.role == 'tool' or m.role == 'user' and '<tool_response>' in text %}{% set s.results = s.results + 1 %}{% set s.result = text %}" +
	"{% elif m.role == 'user' %}{% set s.user = text %}{% endif %}{% endfor %}" +
	"{% set offered = (tools or []) | tojson + s.system %}"

// template is a chat template that chooses among the answers.
func template(messages string, answers []answer) string {
	var b strings.Builder
	b.WriteString(messages + "{% if add_generation_prompt %}<|im_start|>assistant\n" + scriptHead)
	for i, a := range answers {
		if a.when == "" {
			a.when = "true"
		}
		fmt.Fprintf(&b, "{%% %s %s %%}%s", map[bool]string{true: "if", false: "elif"}[i == 0], a.when, mark(i))
	}
	b.WriteString("{% endif %}{% endif %}")
	return b.String()
}

// mark is the token that an answer follows.
func mark(i int) string { return fmt.Sprintf("<|answer-%d|>", i) }

// vocabulary is grove's own, and the tokens of the answers.
type vocabulary struct {
	tokens []string
	kinds  []int32
	known  map[string]bool
	first  int        // of the tokens of answers
	pairs  [][2]int32 // a token and its successor
}

const (
	normal  = 1
	control = 3
)

func (v *vocabulary) add(token string, kind int32) int32 {
	v.tokens = append(v.tokens, token)
	v.kinds = append(v.kinds, kind)
	v.known[token] = true
	return int32(len(v.tokens) - 1)
}

// addAnswer adds an answer's mark and its pieces, which end follows.
func (v *vocabulary) addAnswer(i int, text string, end int32) {
	last := v.add(mark(i), control)
	for text != "" {
		n := 1
		for n < len(text) && (text[n] != ' ' || v.known[asBytes(text[:n])]) {
			n++
		}
		next := v.add(asBytes(text[:n]), normal)
		v.pairs = append(v.pairs, [2]int32{last, next})
		last, text = next, text[n:]
	}
	v.pairs = append(v.pairs, [2]int32{last, end})
}

// asBytes writes bytes as vocabularies of GPT-2's kind do.
func asBytes(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(byteRunes[text[i]])
	}
	return b.String()
}

// byteRunes are GPT-2's characters for bytes.
var byteRunes = func() (runes [256]rune) {
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !('!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ') {
			r = next
			next++
		}
		runes[b] = r
	}
	return runes
}()

// writeModel writes a model that gives the answers, with a context of so many tokens.
func writeModel(path, messages string, answers []answer, context uint32) error {
	own, err := gguf.Parse("grove's model", models.Target())
	if err != nil {
		return err
	}
	w := new(gguf.Writer)
	v := vocabulary{known: map[string]bool{}}
	var end int32
	for key, value := range own.Meta() {
		switch key {
		case "tokenizer.ggml.tokens":
			v.tokens, _ = gguf.As[[]string](value)
		case "tokenizer.ggml.token_type":
			kinds, _ := gguf.As[[]int64](value)
			for _, k := range kinds {
				v.kinds = append(v.kinds, int32(k))
			}
		case "tokenizer.ggml.eot_token_id":
			id, _ := gguf.As[uint64](value)
			end = int32(id)
			w.Set(key, value)
		case "tokenizer.chat_template":
		default:
			if strings.HasPrefix(key, "tokenizer.") {
				w.Set(key, value)
			}
		}
	}
	for _, t := range v.tokens {
		v.known[t] = true
	}
	v.first = len(v.tokens)
	for i, a := range answers {
		v.addAnswer(i, a.text, end)
	}
	w.Set("general.architecture", "llama")
	w.Set("general.name", "scripted")
	w.Set("tokenizer.ggml.tokens", v.tokens)
	w.Set("tokenizer.ggml.token_type", v.kinds)
	w.Set("tokenizer.chat_template", template(messages, answers))
	width := (len(v.tokens) - v.first + 63) / 64 * 64
	addWeights(w, &v, width, context)
	return w.WriteFile(path)
}

// addWeights describes a layer of zeros, and the successors of tokens.
func addWeights(w *gguf.Writer, v *vocabulary, width int, context uint32) {
	const head, inner = 32, 32
	for key, value := range map[string]uint32{
		"block_count": 1, "context_length": context, "embedding_length": uint32(width), "feed_forward_length": inner,
		"attention.head_count":    1,
		"attention.head_count_kv": 1, "attention.key_length": head, "attention.value_length": head,
		"rope.dimension_count": head,
		"vocab_size":           uint32(len(v.tokens)),
	} {
		w.Set("llama."+key, value)
	}
	w.Set("llama.attention.layer_norm_rms_epsilon", float32(1e-6))
	place := func(token int32) int { return int(token) - v.first }
	embedding, output := map[int][]int{}, map[int][]int{}
	for _, p := range v.pairs {
		embedding[int(p[0])] = []int{place(p[0])}
		output[int(p[1])] = append(output[int(p[1])], place(p[0]))
	}
	add := func(name string, rows, cols int, filled map[int][]int, all, value float32) {
		shape := []int{cols}
		if rows > 1 {
			shape = []int{rows, cols}
		}
		w.Add(name, tensor.F32, shape, func(out io.Writer) error {
			row := make([]float32, cols)
			for r := range rows {
				for i := range row {
					row[i] = all
				}
				for _, i := range filled[r] {
					row[i] = value
				}
				if err := binary.Write(out, binary.LittleEndian, row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	add("token_embd.weight", len(v.tokens), width, embedding, 0, 1)
	add("output.weight", len(v.tokens), width, output, 0, 8)
	add("output_norm.weight", 1, width, nil, 1, 1)
	add("blk.0.attn_norm.weight", 1, width, nil, 1, 1)
	add("blk.0.ffn_norm.weight", 1, width, nil, 1, 1)
	for _, name := range []string{"attn_q", "attn_k", "attn_v"} {
		add("blk.0."+name+".weight", head, width, nil, 0, 0)
	}
	add("blk.0.attn_output.weight", width, head, nil, 0, 0)
	add("blk.0.ffn_gate.weight", inner, width, nil, 0, 0)
	add("blk.0.ffn_up.weight", inner, width, nil, 0, 0)
	add("blk.0.ffn_down.weight", width, inner, nil, 0, 0)
}
