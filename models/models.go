// Package models embeds grove's own trained models: a target of 8.6 million parameters that has
// read Go's standard library, novels and grade-school arithmetic, a draft model for it with the
// same tokenizer, and heads that draft from its hidden states. All are Q8_0 GGUF files;
// docs/training.md says how they were made, and target.md, draft.md, jet.md, dflash.md, eagle.md,
// specblock.md, medusa.md, peagle.md and falcon.md beside this file are their cards. There is also
// a head for a published model, in IQ4_NL (smollm2.md).
//
//	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{DraftGGUF: models.Draft(), HeadGGUF: models.Heads()})
//
// The command uses them where no model is named. Package grove does not import this one: a program with its
// own models does not include these.
package models

import _ "embed"

var (
	//go:embed target-q8_0.gguf
	target []byte

	//go:embed draft-q8_0.gguf
	draft []byte

	//go:embed jet-q8_0.gguf
	jet []byte

	//go:embed dflash-q8_0.gguf
	dflash []byte

	//go:embed eagle-q8_0.gguf
	eagle []byte

	//go:embed router-q8_0.gguf
	router []byte

	//go:embed specblock-q8_0.gguf
	specblock []byte

	//go:embed medusa-q8_0.gguf
	medusa []byte

	//go:embed parallelspec-q8_0.gguf
	parallelspec []byte

	//go:embed peagle-q8_0.gguf
	peagle []byte

	//go:embed falcon-q8_0.gguf
	falcon []byte

	//go:embed smollm2-135m-eagle3-iq4_nl.gguf
	smollm2 []byte
)

// Target is the contents of the target's GGUF file; they must not be changed.
func Target() []byte { return target }

// Draft is the contents of the draft model's GGUF file; they must not be changed.
func Draft() []byte { return draft }

// Heads are the contents of the GGUF files of the target's heads, which must not be changed: the
// causal block head (JetSpec), the bidirectional one (DFlash), the EAGLE-3 head, the router of its
// shortlists (DynaSpec), the SpecBlock head, Medusa heads, the ParallelSpec head, the P-EAGLE head,
// and the Falcon head.
func Heads() [][]byte {
	return [][]byte{jet, dflash, eagle, router, specblock, medusa, parallelspec, peagle, falcon}
}

// PublishedHeads are the contents of the GGUF files of heads for models that others published,
// which must not be changed: an EAGLE-3 head for SmolLM2-135M-Instruct. A model that is opened with
// them as grove.Options.OfferedHeads takes those made for its weights.
func PublishedHeads() [][]byte { return [][]byte{smollm2} }
