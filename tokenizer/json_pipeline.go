package tokenizer

// The steps around the model of a tokenizer.json: normalizer, post_processor, decoder;
// pre_tokenizer is in json_pretokenizer.go.

import (
	"encoding/json"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// A step is one element of the pipeline, with the fields of all the kinds that are read.
type step struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`
	Decoders      []json.RawMessage `json:"decoders"`

	Pattern  *struct{ String, Regex *string } `json:"pattern"`
	Content  string                           `json:"content"`  // Replace, Strip
	Prepend  string                           `json:"prepend"`  // Prepend
	Behavior string                           `json:"behavior"` // Split, Punctuation
	Invert   bool                             `json:"invert"`

	AddPrefixSpace *bool `json:"add_prefix_space"` // ByteLevel, Metaspace
	TrimOffsets    *bool `json:"trim_offsets"`
	UseRegex       *bool `json:"use_regex"`

	IndividualDigits bool `json:"individual_digits"`

	Replacement   string  `json:"replacement"` // Metaspace
	StrRep        *string `json:"str_rep"`
	PrependScheme *string `json:"prepend_scheme"`
	Split         *bool   `json:"split"`
	eachWord      bool    // after WhitespaceSplit

	StripLeft  bool   `json:"strip_left"` // Strip as a normalizer
	StripRight bool   `json:"strip_right"`
	Charsmap   []byte `json:"precompiled_charsmap"` // Precompiled

	Start int `json:"start"` // Strip
	Stop  int `json:"stop"`

	Single        []templatePart          `json:"single"` // TemplateProcessing
	Pair          json.RawMessage         `json:"pair"`
	SpecialTokens map[string]templateToks `json:"special_tokens"`
}

type templatePart struct {
	SpecialToken, Sequence *struct {
		ID     string `json:"id"`
		TypeID int    `json:"type_id"`
	}
}

type templateToks struct {
	ID     string   `json:"id"`
	IDs    []int32  `json:"ids"`
	Tokens []string `json:"tokens"`
}

const (
	maxNesting = 8  // Sequences within Sequences
	maxSteps   = 64 // of a pipeline: each reads the whole text
	maxAround  = 64 // ids that a template adds before a text, and after it
	maxGrowth  = 64 // how many times as long normalizers may make a text, besides Unicode's forms
)

// steps flattens Sequences.
func (s *spec) steps(field string, raw json.RawMessage, depth int) ([]step, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if depth > maxNesting {
		return nil, s.errorf(field, "Sequences nested more than %d deep", maxNesting)
	}
	var st step
	if err := strict(raw, &st); err != nil {
		return nil, s.errorf(field, "%s: %v", kindOf(raw), err)
	}
	if st.Type != "Sequence" {
		return []step{st}, nil
	}
	var all []step
	for _, sub := range slices.Concat(st.Normalizers, st.PreTokenizers, st.Processors, st.Decoders) {
		more, err := s.steps(field, sub, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		if len(all) > maxSteps {
			return nil, s.errorf(field, "more than %d steps", maxSteps)
		}
	}
	return all, nil
}

func (s *spec) readPipeline(file *tokenizerJSON) error {
	normalizers, err := s.steps("normalizer", file.Normalizer, 0)
	if err != nil {
		return err
	}
	pre, err := s.steps("pre_tokenizer", file.PreTokenizer, 0)
	if err != nil {
		return err
	}
	post, err := s.steps("post_processor", file.PostProcessor, 0)
	if err != nil {
		return err
	}
	decoders, err := s.steps("decoder", file.Decoder, 0)
	if err != nil {
		return err
	}
	s.growth = 1
	switch bytes := slices.ContainsFunc(pre, func(st step) bool { return st.Type == "ByteLevel" }); {
	case s.model == unigram && bytes:
		return s.errorf("pre_tokenizer", "ByteLevel is not supported with a Unigram model")
	case s.model == unigram:
	case bytes:
		s.model = byteBPE
	default:
		s.model = charBPE
	}
	for _, st := range normalizers {
		if err := s.addNormalizer(st); err != nil {
			return err
		}
	}
	afterBytes := false
	if len(pre) > 1 && pre[0].Type == "WhitespaceSplit" {
		if pre, err = s.joinWhitespaceSplit(pre); err != nil {
			return err
		}
	}
	for i, st := range pre {
		if err := s.addPreTokenizer(st, i == 0, afterBytes); err != nil {
			return err
		}
		afterBytes = afterBytes || st.Type == "ByteLevel"
	}
	if s.model == unigram {
		s.fuseUnk = len(s.stages) == 0 // only within a word
	}
	for _, st := range post {
		if err := s.addPostProcessor(st); err != nil {
			return err
		}
	}
	return s.readDecoder(decoders)
}

func (s *spec) addNormalizer(st step) error {
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
	grows := st.Type == "Prepend" || st.Type == "Replace" && st.Pattern != nil && st.Pattern.String != nil &&
		len(st.Content) >= len(*st.Pattern.String)
	if !grows && st.Type != "NFC" {
		s.drops = true
	}
	switch {
	case st.Type == "Prepend":
		s.growth *= 1 + float64(len(st.Prepend))
		s.normalize = append(s.normalize, prepend(st.Prepend))
		if st.Prepend == "▁" {
			s.space = spaceSegments
		}
	case st.Type == "Replace" && st.Pattern != nil && st.Pattern.String != nil && *st.Pattern.String != "":
		s.growth *= max(1, float64(len(st.Content))/float64(len(*st.Pattern.String)))
		s.normalize = append(s.normalize, replace(*st.Pattern.String, st.Content))
	case st.Type == "Replace" && st.Pattern != nil && st.Pattern.Regex != nil && *st.Pattern.Regex == spaceRuns.String():
		s.growth *= max(1, float64(len(st.Content))/2)
		s.normalize = append(s.normalize, replaceSpaceRuns(st.Content))
	case st.Type == "Replace":
		return s.errorf("normalizer", "Replace: only a pattern that is a String, or the Regex %q, is supported", spaceRuns)
	case st.Type == "Strip":
		s.normalize = append(s.normalize, trimSpace(st.StripLeft, st.StripRight))
	case st.Type == "Precompiled":
		m, err := s.readCharsmap("normalizer.precompiled_charsmap", st.Charsmap)
		if err != nil {
			return err
		}
		s.normalize = append(s.normalize, m.graphemes)
	default:
		f, ok := forms[st.Type]
		if !ok {
			return s.errorf("normalizer", "%q is not known; known are NFC, NFD, NFKC, NFKD, Precompiled, Prepend, Replace, "+
				"Strip, Sequence", st.Type)
		}
		s.normalize = append(s.normalize, unicodeForm(f))
	}
	return s.checkGrowth("normalizer")
}

func (s *spec) checkGrowth(field string) error {
	if s.growth > maxGrowth {
		return s.errorf(field, "its steps can make a text %.3g times as long: want a factor of at most %d", s.growth, maxGrowth)
	}
	return nil
}

func (s *spec) addPostProcessor(st step) error {
	const field = "post_processor"
	switch st.Type {
	case "ByteLevel": // only moves offsets
		return nil
	case "TemplateProcessing":
	default:
		return s.errorf(field, "%q is not known; known are ByteLevel, TemplateProcessing, Sequence", st.Type)
	}
	var around [2][]int32
	side := 0
	for _, p := range st.Single {
		switch {
		case p.Sequence != nil && side == 0 && p.Sequence.ID == "A":
			side = 1
		case p.SpecialToken != nil:
			tok, ok := st.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return s.errorf(field, "TemplateProcessing: %q is not among its special_tokens", p.SpecialToken.ID)
			}
			around[side] = append(around[side], tok.IDs[:min(len(tok.IDs), maxAround+1)]...)
			if len(around[side]) > maxAround {
				return s.errorf(field, "TemplateProcessing: more than %d tokens on one side of a text", maxAround)
			}
		default:
			return s.errorf(field, "TemplateProcessing: single is not one sequence A with special tokens around it")
		}
	}
	if side == 0 {
		return s.errorf(field, "TemplateProcessing: single has no sequence")
	}
	s.prefix, s.suffix = around[0], around[1]
	return nil
}

// readDecoder checks that the decoder is the inverse of what was read, and learns from it whether the
// space in front comes off again.
func (s *spec) readDecoder(decoders []step) error {
	const field = "decoder"
	strip, spaces := false, false
	for _, st := range decoders {
		switch {
		case st.Type == "ByteLevel" && s.model == byteBPE:
		case s.model == byteBPE:
			return s.errorf(field, "%q does not belong to a byte-level model", st.Type)
		case st.Type == "ByteFallback" || st.Type == "Fuse":
		case st.Type == "Replace" && st.Pattern != nil && st.Pattern.String != nil &&
			*st.Pattern.String == "▁" && st.Content == " ":
			spaces = true
		case st.Type == "Strip" && st.Content == " " && st.Start == 1 && st.Stop == 0:
			strip = true
		case st.Type == "Metaspace" && st.Replacement == "▁":
			rule, err := spaceScheme(st)
			if err != nil {
				return s.errorf(field, "%v", err)
			}
			spaces, strip = true, rule != spaceNever
		default:
			return s.errorf(field, "%q is not known with these settings; known are ByteLevel, ByteFallback, Fuse, Metaspace, "+
				"Replace ▁ by a space, Strip of one leading space, Sequence", st.Type)
		}
	}
	switch {
	case s.model != byteBPE && !spaces:
		return s.errorf(field, "missing, or without a step that turns ▁ into spaces")
	case !strip:
		s.space = spaceNever
	case s.space == spaceNever:
		s.space = spaceFirst
	}
	return nil
}
