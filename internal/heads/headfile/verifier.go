// What vLLM's speculators call the model that a head drafts for.

package headfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/hub"
)

// Verifier is the repository or folder that a folder of vLLM's speculators names for its target. It
// is named where that is not empty; else the repository or folder that path is; else the repository
// that the GGUF file there says it was made from. Programs load the target by it, so that a title is
// none.
func Verifier(named, path string) (string, error) {
	if named != "" {
		info, err := os.Stat(named)
		folder := filepath.IsAbs(named) || err == nil && info.IsDir() // of this machine, or of the one that serves
		if folder || isRepository(named) {
			return named, nil
		}
		return "", fmt.Errorf("--verifier %q is neither a repository (ORG/REPO) nor a folder", named)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		if shown := hub.Shown(path); isRepository(shown) && shown != path {
			return shown, nil
		}
		return filepath.Abs(path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if repository := madeFrom(f); repository != "" {
		return repository, nil
	}
	return "", fmt.Errorf("%s does not say which repository it was made from, which vLLM's speculators name: say which with --verifier ORG/REPO", path)
}

func isRepository(text string) bool {
	n, ok := hub.ParseName(text)
	return ok && n.What == "" && n.Repo == text
}

// madeFrom is the repository that a GGUF file says it was made from; empty: it does not say. A base
// model counts where it is the only one and has the file's own name: that of a fine-tuned model is
// another.
func madeFrom(f *gguf.File) string {
	k := ggufkeys.Of(f)
	for _, key := range []string{"general.source.huggingface.repository", "general.source.repo_url", "general.source.url",
		"general.repo_url"} {
		if repository := repositoryOf(k.String(key, "")); repository != "" {
			return repository
		}
	}
	base := repositoryOf(k.String("general.base_model.0.repo_url", ""))
	if base == "" || k.Int("general.base_model.count", 1) != 1 {
		return ""
	}
	_, name, _ := strings.Cut(base, "/")
	if lettersOf(name) != lettersOf(k.String("general.name", "")) {
		return ""
	}
	return base
}

// repositoryOf is the ORG/REPO of text, which may be its URL.
func repositoryOf(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "https://huggingface.co/"), "/")
	if !isRepository(text) {
		return ""
	}
	return text
}

// lettersOf is a name in lower case, without what stands between its letters and digits.
func lettersOf(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
