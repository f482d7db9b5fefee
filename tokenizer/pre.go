package tokenizer

// Which scanners cut the text for which model: by llama.cpp's name of the pre-tokenizer (GGUF key
// tokenizer.ggml.pre), or by the regular expressions that a tokenizer.json spells out.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A preset is what the name of a pre-tokenizer says about a model.
type preset struct {
	stages       []scanner
	ignoreMerges bool // a word that is a token is that token, whatever the merges say
	addBOS       bool // the default where the file has no add_bos_token
}

var (
	asGPT2      = preset{stages: []scanner{scanGPT2}}
	asQwen2     = preset{stages: []scanner{scanQwen2}}
	asLlama3    = preset{stages: []scanner{scanLlama3}}
	asStarCoder = preset{stages: []scanner{singles(number), scanGPT2}}
	asGPT4o     = preset{stages: []scanner{scanGPT4o}}
	asDeepSeek3 = preset{stages: []scanner{groupsOf3, kanaHan.plus(false), scanDeepSeek3}}
	asBailing   = asQwen2
	allPunct    = oneOf(punct, "$+<=>^~|`") // Hugging Face's Punctuation
	asBloom     = preset{stages: []scanner{scanBloom}}
)

var presets = func() map[string]preset {
	m := map[string]preset{}
	set := func(p preset, names ...string) {
		for _, n := range names {
			m[n] = p
		}
	}
	llama3 := asLlama3
	llama3.ignoreMerges, llama3.addBOS = true, true
	set(llama3, "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano")
	set(preset{stages: []scanner{scanJais2}}, "jais-2")
	set(asLlama3, "dbrx", "smaug-bpe", "glm4", "chatglm-bpe")
	set(asQwen2, "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2")
	set(preset{stages: []scanner{scanQwen35}}, "qwen35")
	set(asGPT2, "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
		"modern-bert", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4")
	set(asStarCoder, "starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2")
	set(preset{stages: []scanner{allPunct, scanGPT2, threeDigits}}, "falcon")
	set(preset{stages: []scanner{oneOf(punct, "$+<=>^~|"), scanGPT2, runs(number), threeDigits}}, "default")
	set(preset{stages: []scanner{singles(newline), latin.plus(true), asianPunct.plus(true), trailingSpace,
		hanHangul.plus(false),
		runs(number)}}, "deepseek-llm")
	set(preset{stages: []scanner{singles(newline), spaced(letter), spaced(punct), hanHangul.plus(false), singles(number)}},
		"deepseek-coder")
	set(asDeepSeek3, "deepseek-v3", "hunyuan-dense", "joyai-llm")
	set(preset{stages: []scanner{leadingDigits, groupsOf3, asian.plus(false), scanDeepSeek3}}, "afmoe")
	set(asGPT4o, "gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2")
	set(preset{stages: append(slices.Clone(thousands), scanGPT4o)}, "tiny_aya", "cohere2moe")
	set(preset{stages: []scanner{scanTekken}, ignoreMerges: true, addBOS: true}, "tekken")
	set(asBailing, "bailingmoe", "bailingmoe2", "llada-moe")
	set(preset{stages: []scanner{scanSeedCoder}}, "seed-coder")
	set(preset{stages: []scanner{scanKimi}}, "kimi-k2")
	set(preset{stages: []scanner{groupsOf3, scanMiniCPM5}, ignoreMerges: true}, "minicpm5")
	set(preset{stages: []scanner{lines, scanQwen2}}, "laguna")
	set(preset{stages: []scanner{scanExaoneMoE}}, "exaone-moe")
	set(asBloom, "bloom", "poro-chat", "gpt3-finnish")
	set(preset{stages: []scanner{scanBloom, singles(number)}}, "viking")
	return m
}()

// presetFor finds the preset of a pre-tokenizer's name.
func presetFor(name string) (preset, error) {
	p, ok := presets[name]
	if !ok {
		return p, fmt.Errorf("pre-tokenizer %q is not known; known are %s", name,
			strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
	}
	return p, nil
}

// patterns are the regular expressions of Hugging Face Split pre-tokenizers, with the scanner that
// does the same. A pattern that is not here is an error: a guess would give wrong ids silently.
var patterns = map[string]scanner{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:                                                                scanGPT2,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                       scanLlama3,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:                             scanLlama3,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                            scanQwen2,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:                                  scanQwen2,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                scanQwen35,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`:                            scanSeedCoder,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                           scanMiniCPM5,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`: scanExaoneMoE,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|` +
		`\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`: scanJais2,
	o200kWord + afterWord + `|` + o200kCaps + afterWord +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: scanGPT4o,
	o200kWord + `|` + o200kCaps + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                                                                    scanTekken,
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+": scanDeepSeek3,
	`[\p{Han}]+|` + kimiWord + `|` + kimiCaps + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                                                  scanKimi,
	`\p{N}`:                       singles(number),
	`\p{N}+`:                      runs(number),
	`\p{N}{1,3}`:                  groupsOf3,
	`[0-9][0-9][0-9]`:             threeDigits,
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
	` ?[^(\s|.,!?…。，、।۔،)]+`:      scanBloom,
	` ?[^(\s|[.,!?…。，、।۔،])]+`:    scanBloom,
}

const (
	o200kWord = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	kimiWord  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+` + afterWord
	kimiCaps  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*` + afterWord
	afterWord = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	o200kCaps = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
)

// scannersFor finds the scanners of a regular expression, one after another. Files write a line end in a class as the
// escape \n or as the character itself: both name the same pattern.
func scannersFor(pattern string) ([]scanner, error) {
	p := strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(pattern)
	if p == thousandsPattern {
		return thousands, nil
	}
	if s := patterns[p]; s != nil {
		return []scanner{s}, nil
	}
	return nil, fmt.Errorf("grove has no scanner for the split pattern %q", pattern)
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
