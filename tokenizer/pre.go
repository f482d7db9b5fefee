package tokenizer

// Which scanners cut the text for which model: by llama.cpp's name of the pre-tokenizer (GGUF key
// tokenizer.ggml.pre), or by the regular expressions that a tokenizer.json spells out.

import (
	"fmt"
	"slices"
	"strings"
)

// A preset is what the name of a pre-tokenizer says about a model.
type preset struct {
	names        []string  // in GGUF files; conversion writes the first
	cuts         []string  // the pattern of each stage, one of patterns; nil: tokenizer.json has no form of it
	stages       []scanner // cut the text, each the words of the one before
	ignoreMerges bool      // a word that is a token is that token, whatever the merges say
	addBOS       bool      // the default where the file has no add_bos_token
}

var presets = func() []preset {
	list := []preset{
		{cuts: []string{llama3Cut}, ignoreMerges: true, addBOS: true,
			names: strings.Fields("llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano")},
		{cuts: []string{jais2Cut}, names: strings.Fields("jais-2")},
		{cuts: []string{llama3Cut}, names: strings.Fields("dbrx smaug-bpe glm4 chatglm-bpe")},
		{cuts: []string{qwen2Cut}, names: strings.Fields("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan " +
			"solar-open grok-2 bailingmoe bailingmoe2 llada-moe")},
		{cuts: []string{qwen35Cut}, names: strings.Fields("qwen35")},
		{cuts: []string{gpt2Cut}, names: strings.Fields("gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 " +
			"mellum modern-bert mpt olmo jais trillion granite-docling exaone4")},
		{cuts: []string{digitCut, gpt2Cut},
			names: strings.Fields("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2")},
		{cuts: []string{punctuationCut, gpt2Cut, threeDigitsCut}, names: strings.Fields("falcon")},
		{cuts: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Cut, numberCut, threeDigitsCut}, names: strings.Fields("default")},
		{cuts: []string{`[\r\n]`, `\s?[` + latinSet + `]+`, `\s?[` + asianPunctSet + `]+`, `\s+$`,
			`[` + hanHangulSet + `]+`, numberCut},
			names: strings.Fields("deepseek-llm")},
		{cuts: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, `[` + hanHangulSet + `]+`, digitCut},
			names: strings.Fields("deepseek-coder")},
		{cuts: []string{`\p{N}{1,3}`, `[` + kanaHanSet + `]+`, deepSeek3Cut},
			names: strings.Fields("deepseek-v3 hunyuan-dense joyai-llm")},
		{stages: []scanner{leadingDigits, groupsOf3, asian.plus(false), scanDeepSeek3}, names: strings.Fields("afmoe")},
		{cuts: []string{gpt4oCut}, names: strings.Fields("gpt-4o llama4 kanana2 talkie minimax-m2")},
		{cuts: []string{youtuCut, youtuWordCut}, ignoreMerges: true, names: strings.Fields("youtu")},
		{cuts: []string{thousandsPattern, gpt4oCut}, names: strings.Fields("tiny_aya cohere2moe")},
		{cuts: []string{tekkenCut}, ignoreMerges: true, addBOS: true, names: strings.Fields("tekken")},
		{cuts: []string{seedCoderCut}, names: strings.Fields("seed-coder")},
		{cuts: []string{kimiCut}, names: strings.Fields("kimi-k2")},
		{cuts: []string{`\p{N}{1,3}`, miniCPM5Cut}, ignoreMerges: true, names: strings.Fields("minicpm5")},
		{cuts: []string{`[^\n]+|[\n]+`, qwen2Cut}, names: strings.Fields("laguna")},
		{cuts: []string{exaoneMoECut}, names: strings.Fields("exaone-moe")},
		{cuts: []string{bloomCut}, names: strings.Fields("bloom poro-chat gpt3-finnish")},
		{cuts: []string{bloomCut, digitCut}, names: strings.Fields("viking")},
	}
	for i, p := range list {
		for _, cut := range p.cuts {
			_, scans, err := findCut(cut)
			if err != nil {
				panic(err)
			}
			list[i].stages = append(list[i].stages, scans...)
		}
	}
	return list
}()

// presetFor finds the preset of a pre-tokenizer's name.
func presetFor(name string) (preset, error) {
	var known []string
	for _, p := range presets {
		if slices.Contains(p.names, name) {
			return p, nil
		}
		known = append(known, p.names...)
	}
	slices.Sort(known)
	return preset{}, fmt.Errorf("pre-tokenizer %q is not known; known are %s", name, strings.Join(known, ", "))
}

// preName returns GGUF's name of the pre-tokenizer of a byte-level tokenizer, and "" for others. A name with the other
// ignoreMerges is better than none: for most vocabularies it makes no difference.
func preName(t *Tokenizer) (string, error) {
	if t.model != byteBPE {
		return "", nil
	}
	name := ""
	for _, p := range presets {
		if p.cuts != nil && slices.Equal(p.cuts, t.cuts) && (name == "" || p.ignoreMerges == t.ignoreMerges) {
			name = p.names[0]
		}
	}
	if name == "" {
		return "", fmt.Errorf("pre_tokenizer: the steps %q have no name in GGUF that grove knows", t.cuts)
	}
	return name, nil
}

// preSteps returns the steps of a tokenizer.json that cut text as the pre-tokenizer of a name does.
func preSteps(name string) (steps []map[string]any, ignoreMerges bool, err error) {
	type step = map[string]any
	p, err := presetFor(name)
	if err == nil && p.cuts == nil {
		err = fmt.Errorf("pre-tokenizer %q has no form in tokenizer.json that grove knows", name)
	}
	if err != nil {
		return nil, false, err
	}
	bytes := func(regex bool) step {
		return step{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
	}
	last := len(p.cuts) - 1
	for i, cut := range p.cuts {
		switch {
		case cut == digitCut || cut == numberCut:
			steps = append(steps, step{"type": "Digits", "individual_digits": cut == digitCut})
		case cut == punctuationCut:
			steps = append(steps, step{"type": "Punctuation", "behavior": "Contiguous"})
		case cut == gpt2Cut && i == last:
			steps = append(steps, bytes(true))
		default:
			steps = append(steps, step{"type": "Split", "pattern": step{"Regex": cut}, "behavior": "Isolated", "invert": false})
		}
	}
	if p.cuts[last] != gpt2Cut {
		steps = append(steps, bytes(false))
	}
	return steps, p.ignoreMerges, nil
}

// The patterns that presets name: regular expressions of Hugging Face's Split steps, and ones that cut like its other
// steps.
const (
	gpt2Cut        = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` // ByteLevel
	digitCut       = `\p{N}`                                                                      // Digits, one by one
	numberCut      = `\p{N}+`                                                                     // Digits
	punctuationCut = "[\\p{P}$+<=>^~|`]+"                                                         // Punctuation, Contiguous
	threeDigitsCut = `[0-9][0-9][0-9]`

	llama3Cut = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` + cl100kEnd
	qwen2Cut  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + cl100kEnd
	qwen35Cut = contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + spaceEnd
	jais2Cut  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|` +
		`\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	seedCoderCut = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+` + spaceEnd
	miniCPM5Cut  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+` + cl100kEnd
	exaoneMoECut = contractions + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	deepSeek3Cut = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" +
		` ?[\p{P}\p{S}]+[\r\n]*` + spaceEnd
	gpt4oCut     = o200kWord + afterWord + `|` + o200kCaps + afterWord + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + spaceEnd
	tekkenCut    = o200kWord + `|` + o200kCaps + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + spaceEnd
	kimiCut      = `[\p{Han}]+|` + kimiWord + `|` + kimiCaps + `|\p{N}{1,3}` + cl100kEnd
	youtuCut     = `[` + koreanSet + `]+|[` + widePunct + `]+|[` + bopomofoSet + `]+|[` + kanaHanSet + `]+`
	youtuWordCut = o200kWord + afterWord + `|` + o200kCaps + afterWord + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + spaceEnd
	bloomCut     = ` ?[^(\s|[.,!?…。，、।۔،])]+`

	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	cl100kEnd    = `| ?[^\s\p{L}\p{N}]+[\r\n]*` + spaceEnd
	spaceEnd     = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kWord    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	o200kCaps    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	kimiWord     = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+` + afterWord
	kimiCaps     = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*` + afterWord
	afterWord    = contractions + `?`
)

// patterns are the patterns that grove knows, with the scanner that cuts like each. Another one is an error: a guess
// would give wrong ids silently.
var patterns = map[string]scanner{
	gpt2Cut: scanGPT2, llama3Cut: scanLlama3, qwen2Cut: scanQwen2, qwen35Cut: scanQwen35, jais2Cut: scanJais2,
	seedCoderCut: scanSeedCoder, miniCPM5Cut: scanMiniCPM5, exaoneMoECut: scanExaoneMoE, deepSeek3Cut: scanDeepSeek3,
	gpt4oCut: scanGPT4o, tekkenCut: scanTekken, kimiCut: scanKimi, bloomCut: scanBloom,
	youtuCut: scanYoutu, youtuWordCut: o200k(1, true, "\r\n/", 0),

	digitCut:                      singles(number),
	numberCut:                     runs(number),
	punctuationCut:                oneOf(punct, "$+<=>^~|`"), // Hugging Face's Punctuation
	threeDigitsCut:                threeDigits,
	`[\p{P}\$\+<=>\^~\|]+`:        oneOf(punct, "$+<=>^~|"),
	`\p{N}{1,3}`:                  groupsOf3,
	`[\r\n]`:                      singles(newline),
	`\s?\p{L}+`:                   spaced(letter),
	`\s?\p{P}+`:                   spaced(punct),
	`\s+$`:                        trailingSpace,
	`[^\n]+|[\n]+`:                lines,
	`\s?[` + latinSet + `]+`:      latin.plus(true),
	`\s?[` + asianPunctSet + `]+`: asianPunct.plus(true),
	`[` + hanHangulSet + `]+`:     hanHangul.plus(false),
	`[` + kanaHanSet + `]+`:       kanaHan.plus(false),
	`[` + asianSet + `]+`:         asian.plus(false),
}

// spellings are other patterns that cut text as one of patterns does.
var spellings = map[string]string{
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: llama3Cut,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:      qwen2Cut,
	` ?[^(\s|.,!?…。，、।۔،)]+`: bloomCut,
}

// findCut finds a pattern, and its scanners, one after another. Files write a line end in a class as the escape \n or
// as the character itself: both name the same pattern.
func findCut(pattern string) (cut string, scans []scanner, err error) {
	cut = strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(pattern)
	if same, ok := spellings[cut]; ok {
		cut = same
	}
	if cut == thousandsPattern {
		return cut, thousands, nil
	}
	if s := patterns[cut]; s != nil {
		return cut, []scanner{s}, nil
	}
	return "", nil, fmt.Errorf("grove has no scanner for the split pattern %q", pattern)
}

// findSplitter returns what cuts text into words for the pre-tokenizer of a name: a function that gives
// the length in bytes of the first word of a text that is not empty. Pre-tokenizers that cut in
// several stages have none.
func findSplitter(pre string) (func(string) int, error) {
	p, err := presetFor(pre)
	if err != nil {
		return nil, err
	}
	if len(p.stages) != 1 {
		return nil, fmt.Errorf("pre-tokenizer %q splits in %d stages: want one with a single stage", pre, len(p.stages))
	}
	return p.stages[0], nil
}
