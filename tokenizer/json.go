package tokenizer

// Hugging Face tokenizers: tokenizer.json and the files beside it. What is not understood is an error
// that names the file and the field: a tokenizer that is almost right gives wrong ids silently.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/infile"
)

// files are the contents of a Hugging Face folder's files. Only Tokenizer must be there, or one that it is made of.
type files struct {
	Name          string // of the folder, for messages
	Source        string // the file with the tokenizer; empty: tokenizer.json
	Tokenizer     []byte
	Tekken        []byte
	Tiktoken      []byte
	SentencePiece []byte
	Template      string // the chat template of the tokenizer's kind, where no file has one
	BOS, EOS      string // of the tokenizer's kind, where no file names others
	Config        []byte
	SpecialTokens []byte
	Model         []byte
	Generation    []byte
	ChatTemplate  []byte
	Processor     []byte // a chat template too, where the others have none
	Named         []template
}

// contents are where files keeps each file of the folder.
func (f *files) contents() map[string]*[]byte {
	return map[string]*[]byte{
		"tokenizer.json": &f.Tokenizer, "tekken.json": &f.Tekken, "tiktoken.model": &f.Tiktoken,
		"tokenizer.model": &f.SentencePiece, "tokenizer_config.json": &f.Config, "special_tokens_map.json": &f.SpecialTokens,
		"config.json": &f.Model, "generation_config.json": &f.Generation, "chat_template.jinja": &f.ChatTemplate,
		"chat_template.json": &f.Processor,
	}
}

// maxJSON bounds the files read; the largest tokenizers in use are under 40 MB.
const maxJSON = 256 << 20

// FromJSON reads a tokenizer.json, or the folder that holds it, with the related files in that folder. A folder may
// have Mistral's tekken.json, tiktoken.model or SentencePiece's tokenizer.model instead.
func FromJSON(path string) (*Tokenizer, error) {
	f, err := readFiles(path)
	if err != nil {
		return nil, err
	}
	return parse(*f)
}

// readFiles reads the files that FromJSON names.
func readFiles(path string) (*files, error) {
	dir := path
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if !st.IsDir() {
		dir = filepath.Dir(path)
	} else {
		path = filepath.Join(path, cmp.Or(vocabFile(path), vocabFiles[0]))
	}
	f := &files{Name: dir}
	contents := f.contents()
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		at, to := filepath.Join(dir, name), contents[name]
		if to == &f.Tokenizer && !slices.Contains(vocabFiles[1:], filepath.Base(path)) {
			at = path
		} else if slices.Contains(vocabFiles, name) && at != path {
			continue
		}
		b, err := infile.ReadFile(at, maxJSON)
		if errors.Is(err, fs.ErrNotExist) && at != path {
			continue
		}
		if len(b) == 0 && err == nil && strings.HasSuffix(name, ".json") {
			err = fmt.Errorf("%s: the file is empty: fetch it again", at)
		}
		if err != nil {
			return nil, err
		}
		*to = b
	}
	named := filepath.Join(dir, "additional_chat_templates")
	entries, _ := os.ReadDir(named) // most models have none
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jinja")
		if !ok {
			continue
		}
		text, err := infile.ReadFile(filepath.Join(named, e.Name()), maxJSON)
		if err != nil {
			return nil, err
		}
		f.Named = append(f.Named, template{name, string(text)})
	}
	return f, nil
}

// Parse makes the tokenizer that a Hugging Face folder's files describe: their contents by name, "tokenizer.json"
// or a file that FromJSON takes instead, and related files, such as "tokenizer_config.json" and "chat_template.jinja".
// Errors show dir as the folder's path.
func Parse(dir string, contents map[string][]byte) (*Tokenizer, error) {
	f := files{Name: dir}
	for name, to := range f.contents() {
		*to = contents[name]
	}
	return parse(f)
}

func parse(f files) (*Tokenizer, error) {
	f.Model = infile.PlainJSON(f.Model)
	if f.Tokenizer == nil {
		if err := f.makeJSON(); err != nil {
			return nil, err
		}
	}
	s := &spec{
		source: filepath.Join(f.Name, cmp.Or(f.Source, vocabFiles[0])), exactTypes: true,
		bos: none, eos: none, unk: none, pad: none,
	}
	s.keys = func(field string) string {
		if key := jsonKeys[field]; key != "" {
			return key
		}
		return field
	}
	var file tokenizerJSON
	if err := json.Unmarshal(f.Tokenizer, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", s.source, jsonError(err))
	}
	s.dropRowless(&file, f.Model)
	if err := s.readModel(&file); err != nil {
		return nil, err
	}
	if err := s.readPipeline(&file); err != nil {
		return nil, err
	}
	if err := s.readConfig(f); err != nil {
		return nil, err
	}
	return build(s)
}

var jsonKeys = map[string]string{"tokens": "model.vocab", "merges": "model.merges", "special": "special tokens",
	"scores": "model.vocab", "unknown": "model.unk_id"}

// jsonError says where in the file a syntax error is.
func jsonError(err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("at byte %d: %w: the file is cut or damaged, fetch it again", e.Offset, err)
	}
	return err
}

// A tokenText is a token in tokenizer_config.json: a string, or an object with its content.
type tokenText string

func (t *tokenText) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err == nil {
		*t = tokenText(text)
		return nil
	}
	var object struct{ Content string }
	err := json.Unmarshal(b, &object)
	*t = tokenText(object.Content)
	return err
}

// idList is an id or a list of ids.
type idList []int64

func (l *idList) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("[")) {
		return json.Unmarshal(b, (*[]int64)(l))
	}
	var id *int64
	if err := json.Unmarshal(b, &id); err != nil || id == nil {
		return err
	}
	*l = idList{*id}
	return nil
}

type configJSON struct {
	BOS           *tokenText      `json:"bos_token"`
	EOS           *tokenText      `json:"eos_token"`
	UNK           *tokenText      `json:"unk_token"`
	PAD           *tokenText      `json:"pad_token"`
	AddBOS        *bool           `json:"add_bos_token"`
	AddEOS        *bool           `json:"add_eos_token"`
	ChatTemplate  json.RawMessage `json:"chat_template"`
	TokenizerType string          `json:"tokenizer_class"`
}

type modelConfigJSON struct {
	BOS  idList           `json:"bos_token_id"`
	EOS  idList           `json:"eos_token_id"`
	Rows int64            `json:"vocab_size"` // of the embedding
	Text *modelConfigJSON `json:"text_config"`

	Suppressed idList `json:"suppress_tokens"` // of generation_config.json
}

// dropRowless leaves out added tokens for which the model has no row, such as Gemma 3 1B's of images.
func (s *spec) dropRowless(file *tokenizerJSON, config []byte) {
	var m modelConfigJSON
	_ = json.Unmarshal(config, &m) // readConfig tells of errors
	if m.Text != nil {
		m.Rows = max(m.Rows, m.Text.Rows)
	}
	file.AddedTokens = slices.DeleteFunc(file.AddedTokens, func(a addedToken) bool {
		if m.Rows <= 0 || a.ID < m.Rows {
			return false
		}
		s.notes = append(s.notes, fmt.Sprintf("the added token %q is read as text: the model has no row for its id, %d",
			a.Content, a.ID))
		return true
	})
}

// readConfig reads the special tokens and the chat template from the files beside tokenizer.json.
func (s *spec) readConfig(f files) error {
	decode := func(name string, b []byte, to any) error {
		if len(b) == 0 {
			return nil
		}
		if err := json.Unmarshal(b, to); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(f.Name, name), jsonError(err))
		}
		return nil
	}
	var config, special, processor configJSON
	var model, generation modelConfigJSON
	if err := errors.Join(
		decode("special_tokens_map.json", f.SpecialTokens, &special), decode("tokenizer_config.json", f.Config, &config),
		decode("chat_template.json", f.Processor, &processor), decode("config.json", f.Model, &model),
		decode("generation_config.json", f.Generation, &generation),
	); err != nil {
		return err
	}
	if model.Text != nil {
		model.BOS = append(model.BOS, model.Text.BOS...)
		model.EOS = append(model.EOS, model.Text.EOS...)
	}
	ids := make(map[string]int32, len(s.tokens))
	for i, text := range s.tokens {
		ids[text] = int32(i)
	}
	for _, tok := range []struct {
		to   *int32
		from []*tokenText
		ids  []int64
		kind string
	}{
		{&s.bos, []*tokenText{config.BOS, special.BOS}, model.BOS, f.BOS},
		{&s.eos, []*tokenText{config.EOS, special.EOS}, model.EOS, f.EOS},
		{&s.pad, []*tokenText{config.PAD, special.PAD}, nil, ""},
	} {
		for _, text := range tok.from {
			if text == nil || *text == "" || *tok.to != none {
				continue
			}
			id, ok := ids[string(*text)]
			if !ok && tok.to != &s.pad {
				return fmt.Errorf("%s: the special token %q, from the files alongside, is not in the vocabulary", s.source, *text)
			}
			if ok {
				*tok.to = id
			}
		}
		if *tok.to == none && len(tok.ids) > 0 && tok.ids[0] >= 0 && tok.ids[0] < int64(len(s.tokens)) {
			*tok.to = int32(tok.ids[0])
		}
		if id, ok := ids[tok.kind]; ok && *tok.to == none && tok.kind != "" {
			*tok.to = id
		}
	}
	for _, id := range append(model.EOS, generation.EOS...) {
		if id < 0 || id >= int64(len(s.tokens)) {
			return fmt.Errorf("%s: eos_token_id %d, from the files alongside, is outside the vocabulary of %d tokens", s.source, id, len(s.tokens))
		}
		s.eog = append(s.eog, int32(id))
	}
	s.suppressed = generation.Suppressed
	s.overrideEnds(&config)
	if text := string(config.ChatTemplate); text == "" || text == "null" {
		config.ChatTemplate = processor.ChatTemplate
	}
	err := s.readTemplates(f, config.ChatTemplate)
	if len(s.templates) == 0 && f.Template != "" {
		s.templates = []template{{"default", f.Template}}
	}
	return err
}

// overrideEnds applies add_bos_token and add_eos_token. Where the post-processor says nothing of a
// token, true adds it; the tokenizer classes that build their own post-processor obey false too.
func (s *spec) overrideEnds(c *configJSON) {
	obeys := map[string]bool{
		"LlamaTokenizer": true, "LlamaTokenizerFast": true, "CodeLlamaTokenizer": true, "CodeLlamaTokenizerFast": true,
		"GemmaTokenizer": true, "GemmaTokenizerFast": true, "CohereTokenizer": true, "CohereTokenizerFast": true,
	}[c.TokenizerType]
	for _, end := range []struct {
		add *bool
		id  int32
		to  *[]int32
	}{{c.AddBOS, s.bos, &s.prefix}, {c.AddEOS, s.eos, &s.suffix}} {
		switch {
		case end.add == nil || end.id == none:
		case *end.add && len(*end.to) == 0:
			*end.to = []int32{end.id}
		case !*end.add && obeys:
			*end.to = nil
		}
	}
}

// readTemplates takes the chat template from its own file, or from tokenizer_config.json or chat_template.json, which
// have one text or a list of named ones.
func (s *spec) readTemplates(f files, raw json.RawMessage) error {
	if len(f.ChatTemplate) > 0 {
		s.templates = append([]template{{"default", string(f.ChatTemplate)}}, f.Named...)
		return nil
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		s.templates = []template{{"default", text}}
		return nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("%s: chat_template: %w", filepath.Join(f.Name, "tokenizer_config.json"), err)
	}
	for _, e := range list {
		s.templates = append(s.templates, template{e.Name, e.Template})
	}
	return nil
}
