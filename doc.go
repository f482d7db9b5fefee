// Package grove runs language models in Go, with tree speculation: it drafts trees of tokens,
// verifies a whole tree in one pass of the model, and keeps the longest branch the model agrees
// with. Text comes faster, and it is the same text: with the same prompt, options and seed every
// drafter emits the tokens that plain decoding emits, at every temperature.
//
//	m, err := grove.Open("qwen3-8b-q8_0.gguf", grove.Options{Draft: "qwen3-0.6b-q8_0.gguf"})
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	for chunk, err := range m.Generate(ctx, prompt, grove.Request{MaxTokens: 256, Drafter: "best-first"}) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(chunk.Text)
//	}
//
// A drafter proposes the trees: one that runs a draft model, one that runs a head over the model's own hidden states
// (Options.Heads), or "lookup", which needs neither. A controller measures what passes
// cost and what drafts are worth, and speculates as far as it pays.
//
// Models are GGUF files or Hugging Face folders; docs/models.md lists their architectures. There is
// no cgo and nothing to install: everything is in the binary. Package models has a small target with
// its draft model and heads, for programs that want to bring them along.
//
// Generations of one model that run at the same time share its passes, so goroutines
// gain without a change. Package serve is the HTTP server.
//
// Other packages are of use on their own: draft has the interface of a drafter, tree its trees, sample
// the choice of tokens, tokenizer, chat, gguf and tensor what model files need.
package grove
