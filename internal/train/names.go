package train

import (
	"strings"

	"github.com/grovellm/grove/internal/model"
)

// embedding is the parameter that is also the head.
const embedding = "token_embd.weight"

// hasAdamW reports whether AdamW always trains a matrix: those with a row for each token, of which
// a step sees few, and the single row of a confidence head.
func hasAdamW(name string) bool {
	switch name {
	case embedding, "markov.before.weight", "markov.token.weight", "selector.before.weight",
		"selector.token.weight", "confidence.weight":
		return true
	}
	return false
}

// residualWriter reports whether a matrix's output is added to the residual stream.
func residualWriter(name string) bool {
	return strings.HasSuffix(name, "attn_output.weight") || strings.HasSuffix(name, "ffn_down.weight")
}

// hfName returns a parameter's name in a Hugging Face folder.
func hfName(name string) string {
	hf, _ := model.HFName(arch, name)
	return hf
}
