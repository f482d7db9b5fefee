// Draft heads and draft models for a model.

package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/infile"
)

// Offers are the names of heads and models that draft for a model.
type Offers struct {
	Heads  []string `json:"heads,omitempty"`
	Drafts []string `json:"drafts,omitempty"`
}

// known lists heads and draft models of the hub, by the end of the target's name. Newer kinds of
// heads come first.
var known = []struct {
	target string // without the organisation, in lower case
	Offers
}{
	{"qwen3-4b", Offers{[]string{"deepseek-ai/dspark_qwen3_4b_block7", "z-lab/Qwen3-4B-DFlash-b16"},
		[]string{"Qwen/Qwen3-0.6B-GGUF"}}},
	{"qwen3-8b", Offers{
		[]string{
			"deepseek-ai/dspark_qwen3_8b_block7", "Huang2020/Qwen3-8B-Domino-b16", "z-lab/Qwen3-8B-DFlash-b16",
			"RedHatAI/Qwen3-8B-speculator.eagle3", "AngelSlim/Qwen3-8B_eagle3",
		},
		[]string{"Qwen/Qwen3-0.6B-GGUF"},
	}},
	{"qwen3-14b", Offers{[]string{"deepseek-ai/dspark_qwen3_14b_block7", "AngelSlim/Qwen3-14B_eagle3"},
		[]string{"Qwen/Qwen3-0.6B-GGUF"}}},
	{"qwen3-32b", Offers{[]string{"RedHatAI/Qwen3-32B-speculator.eagle3", "AngelSlim/Qwen3-32B_eagle3"},
		[]string{"Qwen/Qwen3-0.6B-GGUF"}}},
	{"qwen3-30b-a3b-instruct-2507", Offers{[]string{"RedHatAI/Qwen3-30B-A3B-Instruct-2507-speculator.eagle3"}, nil}},
	{"qwen3-30b-a3b-thinking-2507", Offers{[]string{"RedHatAI/Qwen3-30B-A3B-Thinking-2507-speculator.eagle3"}, nil}},
	{"qwen3.5-4b", Offers{[]string{"z-lab/Qwen3.5-4B-DFlash"}, nil}},
	{"qwen3.5-9b", Offers{[]string{"z-lab/Qwen3.5-9B-DFlash"}, nil}},
	{"qwen3.5-27b", Offers{[]string{"z-lab/Qwen3.5-27B-DFlash"}, nil}},
	{"qwen3.8-27b", Offers{[]string{"z-lab/Qwen3.8-27B-DFlash2"}, nil}},
	{"gpt-oss-20b", Offers{[]string{"nebius/EAGLE3-gpt-oss-20b", "RedHatAI/gpt-oss-20b-speculator.eagle3"}, nil}},
	{"gpt-oss-120b", Offers{[]string{"RedHatAI/gpt-oss-120b-speculator.eagle3"}, nil}},
	{"gemma-4-e2b-it", Offers{[]string{"google/gemma-4-E2B-it-assistant"}, nil}},
	{"gemma-4-e4b-it", Offers{[]string{"google/gemma-4-E4B-it-assistant"}, nil}},
	{"gemma-4-12b-it", Offers{[]string{"google/gemma-4-12B-it-assistant"}, nil}},
	{"gemma-4-26b-a4b-it", Offers{[]string{"google/gemma-4-26B-A4B-it-assistant"}, nil}},
	{"gemma-4-31b-it", Offers{[]string{"google/gemma-4-31B-it-assistant", "RedHatAI/gemma-4-31B-it-speculator.eagle3"}, nil}},
	{"llama-3.1-8b-instruct", Offers{[]string{"yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"}, nil}},
	{"llama-3.3-70b-instruct", Offers{[]string{"yuhuili/EAGLE3-LLaMA3.3-Instruct-70B"}, nil}},
}

// forks are the prefixes that publishers of GGUF files put before the name of a target.
var forks = []string{"", "qwen_", "meta-", "meta-llama_", "meta-llama-meta-", "google_", "openai_"}

// OffersFor returns the names in the manifest of a repository's snapshot folder, or else those in
// grove's list. An error says what is wrong with the manifest. In a manifest, a name that begins
// with a colon is in its own repository.
func OffersFor(repo, snapshot string) (o Offers, err error) {
	path := filepath.Join(snapshot, Manifest)
	data, err := infile.ReadFile(path, MaxManifest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return knownOffers(repo), nil
	case err != nil:
		return Offers{}, err
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &o); err != nil {
		return Offers{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, names := range [][]string{o.Heads, o.Drafts} {
		for i, name := range names {
			if strings.HasPrefix(name, ":") {
				names[i] = repo + name
			}
			if _, ok := ParseName(names[i]); !ok {
				return Offers{}, fmt.Errorf("%s: %q: want ORG/REPO, ORG/REPO:FILE or :FILE", path, name)
			}
		}
	}
	return o, nil
}

func knownOffers(repo string) Offers {
	_, name, _ := strings.Cut(strings.ToLower(repo), "/")
	name = strings.TrimSuffix(name, "-gguf")
	for _, k := range known {
		if before, ok := strings.CutSuffix(name, k.target); ok && slices.Contains(forks, before) {
			return k.Offers
		}
	}
	return Offers{}
}

// Shown returns the name under which a path is shown: for the folder of a snapshot in the cache,
// the repository's name.
func Shown(path string) string {
	snapshots := filepath.Dir(path)
	repo, ok := strings.CutPrefix(filepath.Base(filepath.Dir(snapshots)), "models--")
	if ok && filepath.Base(snapshots) == "snapshots" {
		return strings.ReplaceAll(repo, "--", "/")
	}
	return path
}
