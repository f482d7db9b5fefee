// Compatibility: which models can draft for which.

package lm

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tokenizer"
)

// Compatible refuses a draft model whose tokens are not the target's. If both have a tokenizer, every
// id must stand for the same bytes. The numbers of embedding rows beyond it, and of ids marked
// unused, may differ.
func Compatible(m *model.Model, target registry.Target) error {
	var of *tokenizer.Tokenizer
	if target.Model != nil {
		of = target.Model.Tokenizer
	}
	own := m.Tokenizer
	if own == nil || of == nil {
		if m.Config.Vocab != target.Vocab {
			return fmt.Errorf("the draft model has %d tokens and the target %d: a draft model needs the target's vocabulary", m.Config.Vocab, target.Vocab)
		}
		return nil
	}
	const need = "a draft model needs the target's tokenizer"
	shared := min(own.VocabSize(), of.VocabSize())
	for _, t := range []*tokenizer.Tokenizer{own, of} {
		for id := shared; id < t.VocabSize(); id++ {
			if lower.TokenKind(t, int32(id)) != tokenkind.Unused {
				return fmt.Errorf("the draft model's tokenizer has %d tokens and the target's %d: %s",
					own.VocabSize(), of.VocabSize(), need)
			}
		}
	}
	for id := range int32(shared) {
		if a, b := own.Piece(id), of.Piece(id); a != b {
			return fmt.Errorf("token %d is %q in the draft model and %q in the target: %s", id, a, b, need)
		}
	}
	return nil
}
