// Package tokenizer turns text into token ids and back.
//
// Four models cover all files that grove reads:
//
//   - byte-level BPE (GGUF model "gpt2"; Hugging Face ByteLevel): the text is cut into words by a
//     hand-written scanner equal to the model's regular expression (scan.go, scan_chain.go), and the
//     bytes of each word are merged in the order of the merge list (merge.go);
//   - character-level BPE with byte fallback (Hugging Face files of SentencePiece models): the same
//     merges over characters, with ▁ for spaces;
//   - SentencePiece BPE (GGUF model "llama"): merges by the score of the resulting piece (index.go);
//   - Unigram (GGUF model "t5"; Hugging Face Unigram): the pieces whose scores have the highest sum
//     (unigram.go), after SentencePiece's precompiled character map (charsmap.go).
//
// Every step is linear in the text, or n·log n in the length of one word.
//
// Text that a user typed cannot produce control tokens unless EncodeOptions.ParseSpecial asks for it.
// Bytes that are not valid UTF-8 are kept as they are: byte-level models have a token for every byte.
//
// A Unigram model's file may have byte tokens. Then unknown characters become these tokens, as in
// SentencePiece and Hugging Face. llama.cpp uses the unknown token instead.
//
// A Tokenizer never changes after it is made and may be used from any number of goroutines.
package tokenizer
