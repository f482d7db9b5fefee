// Package convert converts models between file formats and re-encodes their weights.
//
//	notes, err := convert.ToGGUF(ctx, "qwen3-0.6b/", "qwen3-0.6b.gguf", convert.Options{Type: tensor.BF16})
//	notes, err := convert.ToHF(ctx, "model.gguf", "model/", convert.Options{Type: convert.Keep})
//	notes, err := convert.Quantize(ctx, "model.gguf", "model-q8_0.gguf", convert.Options{Type: tensor.Q8_0})
//
// Architectures: llama, qwen2, qwen3, gptneox. Names and layouts are llama.cpp's on the GGUF side and
// transformers' on the other: the rows of llama's query and key projections go from halves to neighbouring pairs,
// GPT-NeoX's fused projection from head by head to all queries, all keys, all values. Vectors (norms, biases) are
// F32 in GGUF. Tokenizers are converted too, and the two must then encode a set of texts alike, or the conversion
// fails.
//
// Drafters' heads go both ways too: JetSpec's and DFlash's (package internal/drafters/jet), EAGLE's
// (internal/drafters/eagle; folders of its authors and of vLLM's speculators), P-EAGLE's
// (internal/drafters/peagle), MTP layers in files of their own (internal/drafters/mtp), SpecBlock's
// (internal/drafters/specblock) and Falcon's (internal/drafters/falcon), with GGUF files as
// llama.cpp's dflash and eagle3 where it has them.
//
// Weights stream through a few megabytes of memory. Files are written completely or not at all, and a folder
// never overwrites existing files.
//
// Input: a model's file or folder. Output: a file or folder in the other format, and notes on
// losses. Read plan.go first, the list of a model's tensors. togguf.go and tohf.go are the two
// directions, quantize.go the third way, tokens.go and the files next to it the tokenizers.
package convert
