package train

import (
	"strings"

	"github.com/grovellm/grove/internal/model"
)

// embedding is the parameter that is also the head.
const embedding = "token_embd.weight"

// residualWriter tells the matrices whose output is added to the residual stream.
func residualWriter(name string) bool {
	return strings.HasSuffix(name, "attn_output.weight") || strings.HasSuffix(name, "ffn_down.weight")
}

// hfName is a parameter's name in a Hugging Face folder.
func hfName(name string) string {
	hf, _ := model.HFName(arch, name)
	return hf
}
