package tokenizer

// Folders without a tokenizer.json: the tokenizer.json that Hugging Face's converters make of the file in its place,
// which is Mistral's tekken.json, tiktoken's tiktoken.model, or SentencePiece's tokenizer.model.

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"google.golang.org/protobuf/encoding/protowire"
)

// vocabFiles are the files that a folder's tokenizer may be in; the first that is there counts.
var vocabFiles = []string{"tokenizer.json", "tekken.json", "tiktoken.model", "tokenizer.model"}

// vocabFile returns the name of the file that a folder's tokenizer is read from, or "" if there is none.
func vocabFile(dir string) string {
	i := slices.IndexFunc(vocabFiles, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
	if i < 0 {
		return ""
	}
	return vocabFiles[i]
}

// object is an object of the JSON that is made.
type object = map[string]any

// made is the tokenizer.json of another file.
type made struct {
	vocab  map[string]int32
	merges [][2]string
	added  []addedToken
	model  object // fields of model other than these
	rest   object // fields other than model
	bos    string // the token before each text, or ""
}

// makeJSON makes the tokenizer.json of a folder that has none.
func (f *files) makeJSON() (err error) {
	var m *made
	switch {
	case f.Tekken != nil:
		f.Source = "tekken.json"
		m, err = f.readTekken()
	case f.Tiktoken != nil:
		f.Source = "tiktoken.model"
		m, err = f.readTiktoken()
	case f.SentencePiece != nil:
		f.Source = "tokenizer.model"
		m, err = f.readSentencePiece()
	default:
		return nil
	}
	if err == nil {
		f.Tokenizer, err = m.marshal()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(f.Name, f.Source), err)
	}
	return nil
}

func (m *made) marshal() ([]byte, error) {
	model := object{"type": "BPE", "vocab": m.vocab, "merges": m.merges}
	maps.Copy(model, m.model)
	file := object{"model": model, "added_tokens": m.added}
	maps.Copy(file, m.rest)
	if m.bos != "" {
		i := slices.IndexFunc(m.added, func(a addedToken) bool { return a.Content == m.bos })
		if i < 0 {
			return nil, fmt.Errorf("the token %q, which begins a text, is not in the vocabulary", m.bos)
		}
		token := object{"SpecialToken": object{"id": m.bos, "type_id": 0}}
		file["post_processor"] = object{"type": "TemplateProcessing",
			"single":         []object{token, {"Sequence": object{"id": "A", "type_id": 0}}},
			"special_tokens": object{m.bos: object{"id": m.bos, "ids": []int64{m.added[i].ID}, "tokens": []string{m.bos}}}}
	}
	return json.Marshal(file)
}

// addRanks takes a vocabulary of bytes, each token merged by its rank, which is its place in the list. Their ids begin
// with first.
func (m *made) addRanks(tokens []string, first int, pattern string) error {
	ranks := make(map[string]int32, len(tokens))
	m.vocab = make(map[string]int32, len(tokens))
	for rank, token := range tokens {
		if same, ok := ranks[token]; ok || token == "" {
			return fmt.Errorf("the token of rank %d is empty, or that of rank %d too", rank, same)
		}
		ranks[token] = int32(rank)
		m.vocab[alphabetText(token)] = int32(first + rank)
	}
	m.merges = mergesByRank(tokens, ranks, func(rank int32) float64 { return -float64(rank) })
	for i, pair := range m.merges {
		m.merges[i] = [2]string{alphabetText(pair[0]), alphabetText(pair[1])}
	}
	bytes := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	split := object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated", "invert": false}
	m.model = object{"ignore_merges": true}
	m.rest = object{"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{split, bytes}}, "decoder": bytes}
	return nil
}

// mergesByRank lists every pair of tokens that makes a token, the token with the best score first. Merging whichever
// neighbours make the token with the best score, as SentencePiece and tiktoken do, has the same effect.
func mergesByRank(tokens []string, ids map[string]int32, score func(id int32) float64) [][2]string {
	type merge struct{ made, left, right int32 }
	var list []merge
	for _, text := range tokens {
		id, ok := ids[text]
		if !ok {
			continue
		}
		for cut := 1; cut < len(text); cut++ {
			left, ok1 := ids[text[:cut]]
			right, ok2 := ids[text[cut:]]
			if ok1 && ok2 {
				list = append(list, merge{id, left, right})
			}
		}
	}
	slices.SortFunc(list, func(a, b merge) int {
		return cmp.Or(cmp.Compare(score(b.made), score(a.made)), cmp.Compare(a.made, b.made), cmp.Compare(a.left, b.left),
			cmp.Compare(a.right, b.right))
	})
	merges := make([][2]string, len(list))
	for i, m := range list {
		merges[i] = [2]string{tokens[m.left], tokens[m.right]}
	}
	return merges
}

// mergesByScore is lower.MergesByScore.
func mergesByScore(tok any, scores []float32) [][2]string {
	t, ids := tok.(*Tokenizer), map[string]int32{}
	for id, text := range t.text[:min(len(t.text), len(scores))] {
		if t.types[id] == tokenkind.Normal {
			ids[text] = int32(id)
		}
	}
	return mergesByRank(t.text, ids, func(id int32) float64 { return float64(scores[id]) })
}

// readTekken reads Mistral's file. Ids begin with the special tokens.
func (f *files) readTekken() (*made, error) {
	type special struct {
		Rank    int64  `json:"rank"`
		Text    string `json:"token_str"`
		Control *bool  `json:"is_control"`
	}
	var file struct {
		Config struct {
			Pattern  string `json:"pattern"`
			Size     int    `json:"default_vocab_size"`
			Specials int    `json:"default_num_special_tokens"`
			Version  string `json:"version"`
		} `json:"config"`
		Vocab []struct {
			Rank  int    `json:"rank"`
			Bytes []byte `json:"token_bytes"`
		} `json:"vocab"`
		Specials []special `json:"special_tokens"`
	}
	if err := json.Unmarshal(f.Tekken, &file); err != nil {
		return nil, jsonError(err)
	}
	c := file.Config
	if n := len(file.Vocab); c.Specials < 0 || c.Size <= c.Specials || c.Size-c.Specials > n || c.Specials > maxTokens {
		return nil, fmt.Errorf("config: default_vocab_size %d with %d special tokens and %d others", c.Size, c.Specials, n)
	}
	tokens := make([]string, c.Size-c.Specials)
	for i := range tokens {
		if file.Vocab[i].Rank != i {
			return nil, fmt.Errorf("vocab: entry %d has the rank %d: want ranks in order", i, file.Vocab[i].Rank)
		}
		tokens[i] = string(file.Vocab[i].Bytes)
	}
	if file.Specials == nil { // they were not in the file up to version 7
		for i, text := range strings.Fields(tekkenSpecials) {
			file.Specials = append(file.Specials, special{Rank: int64(i), Text: text})
		}
	}
	f.BOS, f.EOS = "<s>", "</s>"
	m := &made{bos: f.BOS}
	if err := m.addRanks(tokens, c.Specials, c.Pattern); err != nil {
		return nil, err
	}
	have := map[int64]bool{}
	for _, t := range file.Specials {
		m.added = append(m.added, addedToken{ID: t.Rank, Content: t.Text, Special: t.Control == nil || *t.Control})
		have[t.Rank] = true
	}
	for id := range int64(c.Specials) {
		if !have[id] {
			m.added = append(m.added, addedToken{ID: id, Content: fmt.Sprintf("<SPECIAL_%d>", id), Special: true})
		}
	}
	if version, err := strconv.Atoi(strings.TrimPrefix(c.Version, "v")); err == nil {
		thinks := slices.ContainsFunc(m.added, func(a addedToken) bool { return a.Content == "[THINK]" })
		f.Template = tekkenTemplate(version, thinks)
	}
	return m, nil
}

// tekkenSpecials are the special tokens of files that do not list theirs.
const tekkenSpecials = `<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS]
	[TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]`

// readTiktoken reads a list of tokens in base64, each with its rank. tokenizer_config.json has the special tokens.
func (f *files) readTiktoken() (*made, error) {
	var config struct {
		Class string                `json:"tokenizer_class"`
		Added map[string]addedToken `json:"added_tokens_decoder"`
	}
	if err := json.Unmarshal(f.Config, &config); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", jsonError(err))
	}
	const kimi, reserved = "TikTokenTokenizer", 256 // the tokens behind the others, those without a name included
	if config.Class != kimi {
		return nil, fmt.Errorf("tokenizer_config.json: tokenizer_class %q splits text in a way that grove does not know; "+
			"known is %s", config.Class, kimi)
	}
	var tokens []string
	for line := range bytes.Lines(f.Tiktoken) {
		text, rank, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		token, err := base64.StdEncoding.DecodeString(text)
		if n, err2 := strconv.Atoi(rank); err != nil || err2 != nil || n != len(tokens) {
			return nil, fmt.Errorf("line %d is not a token in base64 and the rank %d", len(tokens)+1, len(tokens))
		}
		tokens = append(tokens, string(token))
	}
	m := new(made)
	if err := m.addRanks(tokens, 0, kimiCut); err != nil {
		return nil, err
	}
	for id := len(tokens); id < len(tokens)+reserved; id++ {
		a, ok := config.Added[strconv.Itoa(id)]
		if !ok {
			a = addedToken{Content: fmt.Sprintf("<|reserved_token_%d|>", id), Special: true}
		}
		a.ID = int64(id)
		m.added = append(m.added, a)
	}
	return m, nil
}

// pieceFile is what grove reads of a SentencePiece model, under the names and with the defaults of its description
// (sentencepiece_model.proto).
type pieceFile struct {
	pieces []piece

	modelType    uint64
	suffixSpace  bool   // treat_whitespace_as_suffix
	charsmap     []byte // precompiled_charsmap
	dummyPrefix  bool   // add_dummy_prefix
	extraSpaces  bool   // remove_extra_whitespaces
	escapeSpaces bool   // escape_whitespaces
}

type piece struct {
	text  string
	score float32
	kind  uint64
}

// readSentencePiece reads a BPE model. tokenizer_config.json may rename tokens and say which begins a text.
func (f *files) readSentencePiece() (*made, error) {
	p := pieceFile{modelType: 1, dummyPrefix: true, extraSpaces: true, escapeSpaces: true}
	if err := p.read(f.SentencePiece); err != nil {
		return nil, fmt.Errorf("this is no SentencePiece model: %w", err)
	}
	const remedy = "make tokenizer.json from it with transformers"
	switch {
	case p.modelType != 2:
		return nil, fmt.Errorf("model_type %d is not BPE: %s", p.modelType, remedy)
	case p.suffixSpace || p.extraSpaces || !p.escapeSpaces:
		return nil, fmt.Errorf("treat_whitespace_as_suffix, remove_extra_whitespaces or no escape_whitespaces: %s", remedy)
	}
	var config struct {
		AddBOS *bool                 `json:"add_bos_token"`
		BOS    *tokenText            `json:"bos_token"`
		Added  map[string]addedToken `json:"added_tokens_decoder"`
	}
	if len(f.Config) > 0 {
		if err := json.Unmarshal(f.Config, &config); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", jsonError(err))
		}
	}
	f.BOS, f.EOS = "<s>", "</s>"
	m := &made{vocab: map[string]int32{}}
	m.model = object{"fuse_unk": true, "byte_fallback": slices.ContainsFunc(p.pieces, func(x piece) bool {
		return x.kind == uint64(tokenkind.Byte)
	})}
	texts, merged := make([]string, len(p.pieces)), map[string]int32{}
	for id, x := range p.pieces {
		a, named := config.Added[strconv.Itoa(id)]
		if !named {
			a = addedToken{Content: x.text, Special: x.kind != uint64(tokenkind.UserDefined)}
		}
		a.ID, texts[id] = int64(id), a.Content
		switch kind := int32(x.kind); {
		case kind == tokenkind.Unused && !named:
			continue
		case kind == tokenkind.Unknown:
			m.model["unk_token"] = a.Content
			m.added = append(m.added, a)
		case named || kind == tokenkind.Control || kind == tokenkind.UserDefined:
			m.added = append(m.added, a)
		case kind == tokenkind.Normal:
			merged[x.text] = int32(id)
		}
		if same, ok := m.vocab[a.Content]; ok {
			return nil, fmt.Errorf("pieces %d and %d are both %q", same, id, a.Content)
		}
		m.vocab[a.Content] = int32(id)
	}
	for id, a := range config.Added {
		if n, err := strconv.Atoi(id); err == nil && n >= len(p.pieces) {
			a.ID = int64(n)
			m.added = append(m.added, a)
		}
	}
	slices.SortFunc(m.added, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	m.merges = mergesByRank(texts, merged, func(id int32) float64 { return float64(p.pieces[id].score) })
	m.rest = pieceSteps(p.dummyPrefix)
	if len(p.charsmap) > 0 {
		m.rest["normalizer"] = object{"type": "Sequence", "normalizers": []any{
			object{"type": "Precompiled", "precompiled_charsmap": p.charsmap}, m.rest["normalizer"]}}
	}
	if config.AddBOS == nil || *config.AddBOS {
		m.bos = f.BOS
		if config.BOS != nil {
			m.bos = string(*config.BOS)
		}
	}
	return m, nil
}

// pieceSteps is lower.PieceSteps.
func pieceSteps(front bool) object {
	spaces := object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}
	decode := []object{{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
		{"type": "ByteFallback"}, {"type": "Fuse"}}
	normalizer := spaces
	if front {
		normalizer = object{"type": "Sequence", "normalizers": []object{{"type": "Prepend", "prepend": "▁"}, spaces}}
		decode = append(decode, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	return object{"normalizer": normalizer, "decoder": object{"type": "Sequence", "decoders": decode}}
}

// read reads the fields of a message in protocol buffers' format.
func (p *pieceFile) read(b []byte) error {
	return eachField(b, func(field protowire.Number, value uint64, part []byte) error {
		switch field {
		case 1:
			x := piece{kind: uint64(tokenkind.Normal)}
			err := eachField(part, func(field protowire.Number, value uint64, part []byte) error {
				switch field {
				case 1:
					x.text = string(part)
				case 2:
					x.score = math.Float32frombits(uint32(value))
				case 3:
					x.kind = value
				}
				return nil
			})
			p.pieces = append(p.pieces, x)
			return err
		case 2: // TrainerSpec
			return eachField(part, func(field protowire.Number, value uint64, _ []byte) error {
				switch field {
				case 3:
					p.modelType = value
				case 24:
					p.suffixSpace = value != 0
				}
				return nil
			})
		case 3: // NormalizerSpec
			return eachField(part, func(field protowire.Number, value uint64, part []byte) error {
				switch field {
				case 2:
					p.charsmap = part
				case 3:
					p.dummyPrefix = value != 0
				case 4:
					p.extraSpaces = value != 0
				case 5:
					p.escapeSpaces = value != 0
				}
				return nil
			})
		}
		return nil
	})
}

// eachField calls f with the fields of a message in turn: the value of a number, or the part of the message.
func eachField(b []byte, f func(field protowire.Number, value uint64, part []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		var value uint64
		var part []byte
		if n >= 0 {
			b = b[n:]
			switch kind {
			case protowire.VarintType:
				value, n = protowire.ConsumeVarint(b)
			case protowire.Fixed32Type:
				var v uint32
				v, n = protowire.ConsumeFixed32(b)
				value = uint64(v)
			case protowire.BytesType:
				part, n = protowire.ConsumeBytes(b)
			default:
				n = protowire.ConsumeFieldValue(field, kind, b)
			}
		}
		if n < 0 {
			return errors.Join(protowire.ParseError(n), errors.New("the file is cut or damaged: fetch it again"))
		}
		b = b[n:]
		if err := f(field, value, part); err != nil {
			return err
		}
	}
	return nil
}

// tekkenTemplate is the chat template of a version of Mistral's tokenizer, as mistral-common lays conversations out, or
// "" for versions whose models have a template of their own.
func tekkenTemplate(version int, thinks bool) string {
	if version < 3 || version > 13 {
		return ""
	}
	pick := func(from int, then, before string) string {
		if version >= from {
			return then
		}
		return before
	}
	tools := `{%- if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{%- endif %}`
	early, late := pick(13, tools, ""), pick(13, "", `{%- if m is sameas ns.last %}`+tools+`{%- endif %}`)
	return strings.NewReplacer("\n", "", "\t", "").Replace(`{%- set ns = namespace(last=none, system='', begun=false) %}
{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = m %}{%- endif %}{%- endfor %}
{{- bos_token }}
{%- for m in messages %}
	{%- if m.role == 'system' or m.role == 'developer' %}` +
		pick(7, `[SYSTEM_PROMPT]{{ m.content }}[/SYSTEM_PROMPT]`,
			`{%- set ns.system = ns.system + m.content + '\n\n' %}`) + `
	{%- else %}` +
		pick(13, `{%- if not ns.begun %}`+early+`{%- set ns.begun = true %}{%- endif %}`, "") + `
		{%- if m.role == 'user' %}
			{%- if loop.previtem and loop.previtem.role == 'user' %}{{- '\n\n' }}{%- else %}` + late + `[INST]{%- endif %}` +
		pick(7, "", `{%- if m is sameas ns.last %}{{- ns.system }}{%- endif %}`) + `{{- m.content }}
			{%- if not loop.nextitem or loop.nextitem.role != 'user' %}[/INST]{%- endif %}
		{%- elif m.role == 'assistant' %}` +
		map[bool]string{true: `{%- if m.reasoning_content %}[THINK]{{ m.reasoning_content }}[/THINK]{%- endif %}`}[thinks] + `
			{%- if m.content %}{{- m.content }}{%- endif %}
			{%- if m.tool_calls %}` +
		pick(11, "", `[TOOL_CALLS][`) + `
				{%- for c in m.tool_calls %}
					{%- set a = c.function.arguments %}{%- set a = a if a is string else a | tojson %}` +
		pick(13, "", `{%- if c.id | length != 9 %}{{- raise_exception('ids have nine letters and digits') }}{%- endif %}`) +
		pick(11, `[TOOL_CALLS]{{ c.function.name }}`+pick(13, "", `[CALL_ID]{{ c.id }}`)+`[ARGS]{{ a }}`,
			`{{- '{"name": ' + c.function.name | tojson + ', "arguments": ' + a + ', "id": "' + c.id + '"}' }}
				{%- if not loop.last %}{{- ', ' }}{%- endif %}`) + `
				{%- endfor %}` +
		pick(11, "", `]`) + `
			{%- endif %}{{- eos_token }}
		{%- elif m.role == 'tool' %}[TOOL_RESULTS]` +
		pick(13, `{{ m.content }}`, pick(7, `{{ m.tool_call_id }}[TOOL_CONTENT]{{ m.content }}`,
			`{{- '{"content": ' + m.content | tojson + ', "call_id": "' + m.tool_call_id + '"}' }}`)) + `[/TOOL_RESULTS]
		{%- else %}{{- raise_exception('messages have the roles system, user, assistant and tool') }}
		{%- endif %}
	{%- endif %}
{%- endfor %}`)
}

// alphabetText writes bytes in GPT-2's alphabet.
func alphabetText(bytes string) string {
	runes := make([]rune, len(bytes))
	for i := range len(bytes) {
		runes[i] = byteRune[bytes[i]]
	}
	return string(runes)
}
