package tokenizer

// The steps around the model of a tokenizer.json: normalizer, pre_tokenizer, post_processor, decoder.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// maxNesting bounds Sequences within Sequences.
const maxNesting = 8

// steps flattens Sequences.
func (s *spec) steps(field string, raw json.RawMessage, depth int) ([]step, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if depth > maxNesting {
		return nil, s.errorf(field, "more than %d Sequences within each other", maxNesting)
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
	s.model = charBPE
	if slices.ContainsFunc(pre, func(st step) bool { return st.Type == "ByteLevel" }) {
		s.model = byteBPE
	}
	for _, st := range normalizers {
		if err := s.addNormalizer(st); err != nil {
			return err
		}
	}
	afterBytes := false
	for i, st := range pre {
		if err := s.addPreTokenizer(st, i == 0, afterBytes); err != nil {
			return err
		}
		afterBytes = afterBytes || st.Type == "ByteLevel"
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
	switch {
	case st.Type == "Prepend":
		s.normalize = append(s.normalize, prepend(st.Prepend))
		if st.Prepend == "▁" {
			s.space = spaceSegments
		}
	case st.Type == "Replace" && st.Pattern != nil && st.Pattern.String != nil && *st.Pattern.String != "":
		s.normalize = append(s.normalize, replace(*st.Pattern.String, st.Content))
	case st.Type == "Replace":
		return s.errorf("normalizer", "Replace: only a pattern that is a String is supported")
	default:
		f, ok := forms[st.Type]
		if !ok {
			return s.errorf("normalizer", "%q is not known; known are NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence", st.Type)
		}
		s.normalize = append(s.normalize, unicodeForm(f))
	}
	return nil
}

func isTrue(b *bool, def bool) bool {
	if b == nil {
		return def
	}
	return *b
}

// addPreTokenizer adds one step. Those after ByteLevel see its alphabet instead of the text.
func (s *spec) addPreTokenizer(st step, first, afterBytes bool) error {
	const field = "pre_tokenizer"
	ascii := st.Type == "Split" && st.Pattern != nil && st.Pattern.Regex != nil && *st.Pattern.Regex == "[0-9][0-9][0-9]"
	if afterBytes && st.Type != "Digits" && !ascii {
		return s.errorf(field, "%s after ByteLevel is not supported", st.Type)
	}
	switch st.Type {
	case "ByteLevel":
		if isTrue(st.AddPrefixSpace, true) {
			if !first {
				return s.errorf(field, "ByteLevel: add_prefix_space after another step is not supported")
			}
			s.escape = append(s.escape, spaceInFront)
		}
		if isTrue(st.UseRegex, true) {
			s.stages = append(s.stages, scanGPT2)
		}
	case "Digits":
		if afterBytes {
			s.stages = append(s.stages, alphabetDigits(st.IndividualDigits))
			return nil
		}
		if st.IndividualDigits {
			s.stages = append(s.stages, singles(number))
		} else {
			s.stages = append(s.stages, runs(number))
		}
	case "Punctuation":
		if st.Behavior != "Contiguous" {
			return s.errorf(field, "Punctuation: behavior %q is not supported, only Contiguous", st.Behavior)
		}
		s.stages = append(s.stages, allPunct)
	case "Split":
		return s.addSplit(st)
	case "Metaspace":
		if !first || s.model != charBPE {
			return s.errorf(field, "Metaspace is supported only as the first step, without ByteLevel")
		}
		if st.Replacement != "▁" {
			return s.errorf(field, "Metaspace: replacement %q is not supported, only ▁", st.Replacement)
		}
		rule, err := spaceScheme(st)
		if err != nil {
			return s.errorf(field, "%v", err)
		}
		s.space = rule
		s.escape = append(s.escape, metaspace("▁", rule))
		if isTrue(st.Split, true) {
			s.stages = append(s.stages, eachSpace)
		}
	default:
		return s.errorf(field, "%q is not known; known are ByteLevel, Digits, Metaspace, Punctuation, Split, Sequence", st.Type)
	}
	return nil
}

// spaceScheme reads prepend_scheme, or add_prefix_space in older files.
func spaceScheme(st step) (spaceRule, error) {
	scheme := "never"
	if isTrue(st.AddPrefixSpace, true) {
		scheme = "always"
	}
	if st.PrependScheme != nil {
		scheme = *st.PrependScheme
	}
	rule, ok := map[string]spaceRule{"never": spaceNever, "always": spaceSegments, "first": spaceFirst}[scheme]
	if !ok {
		return 0, fmt.Errorf("prepend_scheme %q of Metaspace is not known", scheme)
	}
	return rule, nil
}

// eachSpace cuts before every ▁.
func eachSpace(text string) int {
	n := char(text)
	if k := strings.Index(text[n:], "▁"); k >= 0 {
		return n + k
	}
	return len(text)
}

func (s *spec) addSplit(st step) error {
	const field = "pre_tokenizer"
	switch {
	case st.Pattern == nil || (st.Pattern.String == nil) == (st.Pattern.Regex == nil):
		return s.errorf(field, "Split: the pattern is neither a String nor a Regex")
	case st.Pattern.Regex != nil:
		scan, err := scannerFor(*st.Pattern.Regex)
		if err != nil {
			return s.errorf(field, "Split: %v", err)
		}
		// A pattern that matches all text leaves nothing to remove.
		total := strings.HasSuffix(*st.Pattern.Regex, `|\s+(?!\S)|\s+`) && !strings.HasPrefix(*st.Pattern.Regex, "[!")
		if st.Behavior != "Isolated" && !(st.Behavior == "Removed" && st.Invert && total) {
			return s.errorf(field, "Split: behavior %q is not supported for this pattern, only Isolated", st.Behavior)
		}
		s.stages = append(s.stages, scan)
	default:
		text := *st.Pattern.String
		if text == "" {
			return s.errorf(field, "Split: the pattern is empty")
		}
		scan, ok := map[string]scanner{"Isolated": literal(text, false), "MergedWithPrevious": literal(text, true)}[st.Behavior]
		if !ok || st.Invert {
			return s.errorf(field, "Split: behavior %q (invert %v) is not supported, only Isolated and MergedWithPrevious", st.Behavior, st.Invert)
		}
		s.stages = append(s.stages, scan)
	}
	return nil
}

// literal cuts around a fixed text, which stays with what is before it where merged is set.
func literal(text string, merged bool) scanner {
	return func(s string) int {
		k := strings.Index(s, text)
		switch {
		case k < 0:
			return len(s)
		case k == 0 || merged:
			return k + len(text)
		}
		return k
	}
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
			around[side] = append(around[side], tok.IDs...)
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
		case st.Type == "Replace" && st.Pattern != nil && st.Pattern.String != nil && *st.Pattern.String == "▁" && st.Content == " ":
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
	case s.model == charBPE && !spaces:
		return s.errorf(field, "missing, or without a step that turns ▁ into spaces")
	case !strip:
		s.space = spaceNever
	case s.space == spaceNever:
		s.space = spaceFirst
	}
	return nil
}
