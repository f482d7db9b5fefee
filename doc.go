// Package grove runs language models in Go, with tree speculation: it drafts trees of tokens,
// verifies a whole tree in one pass of the model, and keeps the longest branch the model agrees
// with. The text comes faster and stays the same: with the same prompt, options and seed, every
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
// (Options.Heads), or "lookup", which needs neither. A controller measures what passes cost and how many drafted
// tokens are accepted, and speculates only as far as it pays off.
//
// Models are GGUF files or Hugging Face folders; docs/models.md lists their architectures. There is
// no cgo and nothing to install: everything is in the binary. Package models has a small target with
// its draft model and heads, for programs that embed a model.
//
// Concurrent generations of one model share its passes, so programs with several goroutines get
// batching for free. Package serve is the HTTP server.
//
// Other packages can be used on their own: draft has the interface of a drafter, tree its trees, and
// sample the choice of tokens; tokenizer, chat, gguf and tensor read what is in model files.
package grove
