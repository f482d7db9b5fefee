// The name that vLLM's speculators use for the model that a head drafts for.

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

// Verifier returns the repository or folder that a folder of vLLM's speculators names as its
// target: named if it is not empty; otherwise the repository or folder that path is; otherwise the
// repository from which the GGUF file there says it was made. Programs load the target by this
// name, so a title does not do.
func Verifier(named, path string) (string, error) {
	if named != "" {
		info, err := os.Stat(named)
		folder := filepath.IsAbs(named) || err == nil && info.IsDir() // on this machine, or on the one that serves
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

// madeFrom returns the repository from which a GGUF file says it was made, or "" if it does not
// say. A base model counts only if there is one and it has the file's own name: the base of a
// fine-tuned model has another.
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

// repositoryOf returns the ORG/REPO in text, which may be its URL.
func repositoryOf(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "https://huggingface.co/"), "/")
	if !isRepository(text) {
		return ""
	}
	return text
}

// lettersOf returns a name in lower case, with only its letters and digits.
func lettersOf(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
