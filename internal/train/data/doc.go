// Package data turns text into rows of tokens to train on.
//
//	src := data.Source{Name: "gsm8k", Path: "gsm8k_train.jsonl", Template: "{question}\n{answer}\n", Weight: 0.1}
//	set, report, err := data.Load(ctx, src, tok, data.LoadOptions{Cache: dir}) // the next run finds it in the cache
//	mix, err := data.NewMix([]*data.Set{a, b, set}, 512, seed) // rows of 512 tokens by the sources' weights
//	mix.Batch(step, rows, dst) // rows × 513 tokens: each row, and the target of its last token
//
// Row r of a mix is a function of the seed, the sets and r alone, found in constant time: a run
// that goes on at a step reads what it would have read, and needs to remember only the step.
//
// A Source is plain text, jsonl with a template, or a tree of Go source. Each of its documents is
// closed by the end-of-text token; rows are cut from the stream of documents, so a row may hold the
// end of one and the start of another. Text that is not what it should be (empty, binary, not
// UTF-8, lines too long, a field that is not there) is an error with file, line and remedy.
//
// Standard names the sources of grove's own models; HeldOut names the Go packages that none of them
// reads, for validation and for prompts.
package data
