package tokenizer

// Folders without a tokenizer.json: the tokenizer.json that Hugging Face's converters make of the file in its place,
// which is Mistral's tekken.json (tekken.go), tiktoken's tiktoken.model, or SentencePiece's tokenizer.model
// (sentencepiece.go).

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/files/tokenkind"
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

// alphabetText writes bytes in GPT-2's alphabet.
func alphabetText(bytes string) string {
	runes := make([]rune, len(bytes))
	for i := range len(bytes) {
		runes[i] = byteRune[bytes[i]]
	}
	return string(runes)
}
