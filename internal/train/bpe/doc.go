// Package bpe learns a byte-level BPE vocabulary and writes it as package tokenizer and llama.cpp
// read it.
//
//	c, err := bpe.NewCounter(bpe.Options{Pre: "qwen2"})   // cuts text as the tokenizer will
//	c.Add(texts, 1)                                       // in parallel; a weight makes a source count for more
//	v, err := bpe.Train(ctx, c, bpe.Options{Size: 16384}) // bytes, merges, then the special tokens
//	tok, err := v.Tokenizer()                             // to encode with
//	v.SetGGUF(w)                                          // the keys tokenizer.* of a gguf.Writer
//	err = v.WriteGGUF(path)                               // a file of nothing but those keys
//
// A later stage that has only such a file takes its keys over with gguf's Writer.SetTokenizer.
//
// The method is Sennrich et al. (2016), algorithm 1, over bytes: the most frequent pair of
// neighbours becomes a token, until there are enough. Words are counted once each; a merge touches
// only the words that hold its pair; the next pair comes from a heap whose entries are put right
// when they surface. Of equally frequent pairs the one of older tokens wins, left token first, so
// the same counts give the same vocabulary, byte for byte. A pair whose bytes are a token already
// is passed over: no two tokens have one spelling.
package bpe
