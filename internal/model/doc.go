// Package model loads target and draft models and runs them over forests of token trees.
//
// A [Model] is immutable once open: its packed weights serve any number of passes. A [Pass]
// is one running forward computation's memory; its Run takes, for each sequence, a cache of
// committed rows and a tree of new ones, and leaves logits for the rows asked for and the
// residual stream after the layers asked for (taps). The cache then keeps a path of the new
// rows by Commit, or none.
//
//	m, err := model.Open("qwen3-0.6b.gguf", model.Options{})
//	pass, cache := m.NewPass(), m.NewCache()
//	err = pass.Prefill(ctx, cache, prompt, false)             // all but the last token
//	err = pass.Run(ctx, []model.Rows{{Cache: cache, Tree: t, Logits: all}}, nil)
//	next := argmax(pass.Logits(0, 0))
//	err = cache.Commit(path)
//
// [Architectures] lists the architectures that it runs; models are GGUF files or Hugging Face folders.
//
// Input: files, then caches and trees of tokens. Output: logits and taps. Read network.go first,
// the layers of a model in order, then pass.go, one pass of them, and architectures.go, the table
// of how each is loaded. Package model/reference has the same logits in plain loops, to read before
// either.
package model
