// Package files has no code: its subdirectories read and write files of all kinds.
//
// Input: paths. Output: bytes that are known to be complete and unchanged, and the places of tensors
// in them. Every length, count and offset in a file is checked before it is used.
//
// Read infile first: it reads a file that must stay as it is, such as a model's. atomicfile writes a
// file completely or not at all, filelock locks files against other processes, fileerr describes
// what is wrong with a file. safetensors and torch read the weight files of Hugging Face models;
// GGUF files are those of the public package gguf. numtype, recode and reshape have what loaders and
// converters know of number types and tensors beyond package tensor.
package files
