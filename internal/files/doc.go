// Package files has no code: it is the room of files, whatever stands in them.
//
// In come paths; out come bytes that are known to be whole and unchanged, and the places of tensors in
// them. Every length, count and offset in a file is checked before it is used.
//
// Read infile first: it reads a file that must stay as it is, such as a model's. atomicfile writes a
// file whole or not at all, filelock keeps others out, fileerr says what is wrong with a file.
// safetensors and torch read the weight files of Hugging Face models; GGUF files are those of the
// public package gguf. numtype, recode and reshape have what loaders and converters know of number
// types and tensors beyond package tensor.
package files
