// Package synth writes seeded random models of named shapes: GGUF files with llama.cpp's names
// and keys, so that another engine can read them, and Hugging Face folders that hold the same
// function in that world's names and layouts.
//
// It is how speed is measured on shapes whose trained weights nobody needs, and how every
// architecture is compared with other engines without downloading one.
//
// A weight is a pure function of (seed, tensor, row, column): an integer hash and one f32
// multiplication. So a model is the same on every machine, whatever the number of threads, and
// its F32, F16, BF16 and Q8_0 files are roundings of the same numbers.
//
// Weights are scaled so that the network behaves like a trained one where it matters to a
// measurement: attention is neither flat nor a single spike, no layer drowns the others, logits
// have a standard deviation of about 4, and greedy text wanders instead of repeating one token.
package synth
