package tokenizer

// Long texts compared with llama.cpp, id by id: this file has the number of ids and the start of the
// SHA-256 of the ids as little-endian int32. They were made with llama.cpp at d32676d (August 2026):
//
//	llama-tokenize -m VOCAB -f TEXT --ids --no-bos --no-parse-special --no-escape --log-disable
//
// VOCAB is go-7m's GGUF file and llama.cpp's own vocabularies (see vocab_test.go). Those of llama-bpe
// and qwen2 were not available, so files with the same tokens and merges were written instead.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/testing/testdata"
)

type digest struct {
	n   int
	sum string
}

func digestOf(ids []int32) digest {
	h := sha256.New()
	var b [4]byte
	for _, id := range ids {
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		h.Write(b[:])
	}
	return digest{len(ids), fmt.Sprintf("%x", h.Sum(nil)[:8])}
}

// The first three are in the data folder, the last in Go's tree, in the version that the digests are for.
var longTexts = [4]string{"prose/war_peace.txt", "prose/wikitext2_valid.txt", "prompts/spec_bench.jsonl",
	"net/http/server.go"}

const longGo = "3a085df91bb868c7"

var longDigests = map[string][len(longTexts)]digest{
	"go-7m": {{908827, "43e3ec7278092ecc"}, {385399, "5fd18b2236883ece"}, {239596, "73e13ffef4a25e93"},
		{38922, "bd4b402d7cd45386"}},
	"gpt-2": {{794385, "b990c20f519cd540"}, {249880, "3868416e4dc59d74"}, {164884, "cf014fb43c77f6eb"},
		{43513, "266ca635ef627a0a"}},
	"qwen2": {{762527, "baba06dd0b823625"}, {262335, "1031b9560f197fa9"}, {171101, "106931a874ff54bb"},
		{34799, "aa0dd445eca08967"}},
	"llama-bpe": {{761778, "d01d3e84d06e886c"}, {252850, "2385949a9e65d515"}, {163016, "8c417fab3872a3af"},
		{34490, "1ab560657b3dc675"}},
	"llama-spm": {{861809, "956d0c929043fd92"}, {295035, "0f4c2f78d586e4b6"}, {192787, "d0b63d0b999dded1"},
		{44740, "a4595d75637c695c"}},
	"phi-3": {{861809, "956d0c929043fd92"}, {295035, "0f4c2f78d586e4b6"}, {192787, "d0b63d0b999dded1"},
		{44740, "a4595d75637c695c"}},
	"baichuan": {{869519, "d2f3b1b731003e4a"}, {296325, "d5989906d9e4ec5c"}, {192604, "854c4b75c1a14eae"},
		{47515, "e1afb12d4100bde2"}},
	"mpt": {{800241, "df72106a9dba4079"}, {251181, "acb304f6d18082f6"}, {165417, "1817575e7003771d"},
		{40872, "acfc8e4e3a88c889"}},
	"gpt-neox": {{805361, "32e77b8a331426b2"}, {291514, "2f5957ad80520863"}, {177704, "2fad41effd39196f"},
		{42525, "f014c3dcea45ec24"}},
	"starcoder": {{908431, "e7196a83921193c0"}, {314469, "f5f90f3c2ff032a0"}, {201883, "122f9cddf8a64d72"},
		{40492, "b105ac947210bd55"}},
	"refact": {{908320, "676e1bf5e9039350"}, {314433, "ff04ac0a0acf1114"}, {201868, "994d46bb9cc775b5"},
		{40492, "38d4d47657c247ce"}},
	"falcon": {{795636, "1830d301eba8f4a6"}, {286349, "445d7d99188833c0"}, {174380, "3c5bed347f0f1e8a"},
		{42397, "72ca628d770227d3"}},
	"deepseek-coder": {{841055, "db45d33a6b486a9d"}, {292477, "bba49be0679565a5"}, {190317, "c8adc7a34cb73469"},
		{42670, "0ca8567525e02a4b"}},
	"deepseek-llm": {{781073, "ebd3619004b28a5b"}, {268145, "781aa8a1b6228c08"}, {175650, "162905fe3b4d4054"},
		{39706, "45776b1eefcb100e"}},
}

func longText(t *testing.T, k int) string {
	t.Helper()
	if k < 3 {
		b, err := os.ReadFile(testdata.Path(t, longTexts[k]))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no Go here: %v", err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", filepath.FromSlash(longTexts[k])))
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(b))[:16] != longGo {
		t.Skipf("no %s of Go 1.26.8", longTexts[k])
	}
	return string(b)
}

func TestLongTexts(t *testing.T) {
	for name, want := range longDigests {
		t.Run(name, func(t *testing.T) {
			path := ""
			if name == "go-7m" {
				path = testdata.Path(t, "models/go-7m/go-7m-f32.gguf")
			} else {
				path = filepath.Join(vocabDir(t), "ggml-vocab-"+name+".gguf")
			}
			tok := openVocab(t, path)
			for k, file := range longTexts {
				t.Run(filepath.Base(file), func(t *testing.T) {
					text := longText(t, k)
					ids := tok.Encode(text, EncodeOptions{})
					if got := digestOf(ids); got != want[k] {
						t.Errorf("%d ids with sum %s, llama.cpp has %d with %s", got.n, got.sum, want[k].n, want[k].sum)
					}
					if tok.Decode(ids, DecodeOptions{}) != text {
						t.Error("the ids do not decode to the text")
					}
				})
			}
		})
	}
}
