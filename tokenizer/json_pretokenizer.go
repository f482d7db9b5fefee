package tokenizer

// The pre_tokenizer of a tokenizer.json: how text is cut before merging.

import (
	"fmt"
	"strings"
)

// isTrue reports whether a flag is set that is set by default.
func isTrue(b *bool) bool { return b == nil || *b }

// addPreTokenizer adds one step. Those after ByteLevel see its alphabet instead of the text.
func (s *spec) addPreTokenizer(st step, first, afterBytes bool) error {
	const field = "pre_tokenizer"
	ascii := st.Type == "Split" && st.Pattern != nil && st.Pattern.Regex != nil && *st.Pattern.Regex == "[0-9][0-9][0-9]"
	if afterBytes && st.Type != "Digits" && !ascii {
		return s.errorf(field, "%s after ByteLevel is not supported", st.Type)
	}
	switch st.Type {
	case "ByteLevel":
		if isTrue(st.AddPrefixSpace) {
			if !first {
				return s.errorf(field, "ByteLevel: add_prefix_space after another step is not supported")
			}
			s.escape = append(s.escape, spaceInFront)
		}
		if isTrue(st.UseRegex) {
			s.addCut(gpt2Cut)
		}
	case "Digits":
		switch {
		case afterBytes:
			s.addStage(alphabetDigits(st.IndividualDigits))
		case st.IndividualDigits:
			s.addCut(digitCut)
		default:
			s.addCut(numberCut)
		}
	case "Punctuation":
		if st.Behavior != "Contiguous" {
			return s.errorf(field, "Punctuation: behavior %q is not supported, only Contiguous", st.Behavior)
		}
		s.addCut(punctuationCut)
	case "Split":
		return s.addSplit(st)
	case "Metaspace":
		if !first || s.model == byteBPE {
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
		if st.eachWord {
			s.escape = append(s.escape, metaspaceWords)
			s.drops = true
		} else {
			s.escape = append(s.escape, metaspace("▁", rule))
		}
		if isTrue(st.Split) {
			s.addStage(eachSpace)
		}
	default:
		return s.errorf(field, "%q is not known; known are ByteLevel, Digits, Metaspace, Punctuation, Split, Sequence", st.Type)
	}
	return nil
}

// joinWhitespaceSplit makes one step of WhitespaceSplit and the Metaspace that must follow: that one
// then puts ▁ before each word.
func (s *spec) joinWhitespaceSplit(pre []step) ([]step, error) {
	st := pre[1]
	if rule, err := spaceScheme(st); st.Type != "Metaspace" || err != nil || rule != spaceSegments ||
		!isTrue(st.Split) {
		return nil, s.errorf("pre_tokenizer", "WhitespaceSplit is supported only before Metaspace that always prepends, and splits")
	}
	st.eachWord = true
	return append([]step{st}, pre[2:]...), nil
}

// spaceScheme reads prepend_scheme, or add_prefix_space in older files.
func spaceScheme(st step) (spaceRule, error) {
	scheme := "never"
	if isTrue(st.AddPrefixSpace) {
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
		// A pattern that matches all text leaves nothing to remove.
		total := strings.HasSuffix(*st.Pattern.Regex, `|\s+(?!\S)|\s+`) && !strings.HasPrefix(*st.Pattern.Regex, "[!")
		if st.Behavior != "Isolated" && !(st.Behavior == "Removed" && st.Invert && total) {
			return s.errorf(field, "Split: behavior %q is not supported for this pattern, only Isolated", st.Behavior)
		}
		if err := s.addCut(*st.Pattern.Regex); err != nil {
			return s.errorf(field, "Split: %v", err)
		}
	default:
		text := *st.Pattern.String
		if text == "" {
			return s.errorf(field, "Split: the pattern is empty")
		}
		scan, ok := map[string]scanner{"Isolated": literal(text, false),
			"MergedWithPrevious": literal(text, true)}[st.Behavior]
		if !ok || st.Invert {
			return s.errorf(field, "Split: behavior %q (invert %v) is not supported, only Isolated and MergedWithPrevious", st.Behavior, st.Invert)
		}
		s.addStage(scan)
	}
	return nil
}

// addCut adds the stage of a pattern.
func (s *spec) addCut(pattern string) error {
	cut, scans, err := findCut(pattern)
	s.cuts, s.stages = append(s.cuts, cut), append(s.stages, scans...)
	return err
}

// addStage adds a stage for which presets have no pattern.
func (s *spec) addStage(scan scanner) {
	s.cuts, s.stages = append(s.cuts, ""), append(s.stages, scan)
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
