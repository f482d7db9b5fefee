// Package gguf reads and writes GGUF, the model files of llama.cpp, versions 2 and 3.
//
// A GGUF file describes itself. In order, all little endian:
//
//	"GGUF", version, number of tensors, number of keys
//	keys:     name, value type, value         "qwen3.block_count" = 28, the vocabulary as an array of strings, …
//	tensors:  name, shape, type, offset       "blk.0.attn_q.weight" Q8_0 [2048 1024] at 155311104
//	data:     each tensor at a multiple of the alignment, 32 bytes unless "general.alignment" says otherwise
//
// Open reads and parses all but the data: a vocabulary of 150k strings is checked in a few
// milliseconds and decoded when asked for, from one copy of the metadata's bytes, which stays valid
// after Close. The bytes of a Tensor are read on demand; reading a file that has changed since it
// was opened is an error.
//
// A file is untrusted input. Every length, count, dimension and offset is checked against the file's size before it
// is used; names that occur twice, data that overlaps, is misaligned or lies outside the file, and big-endian files
// are refused. A tensor of a type that grove cannot read is listed, and is an error only when it is loaded. Every
// error names the file, the field, what is wrong, and what to do.
//
// Models split into NAME-00001-of-00003.gguf and so on are opened by their first part.
//
// Get and As read metadata as Go values. To write a file, describe it and say how each tensor's bytes are produced:
//
//	w := new(gguf.Writer)
//	w.Set("general.architecture", "qwen3")
//	w.Set("qwen3.block_count", uint32(28))
//	w.Add("output_norm.weight", tensor.F32, []int{1024}, func(out io.Writer) error { … })
//	err := w.WriteFile("model.gguf") // whole or not at all
package gguf
