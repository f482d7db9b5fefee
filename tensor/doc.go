// Package tensor holds the number encodings of model files and reads them into f32.
//
// A model file is a list of named arrays. Most of its bytes are matrices whose numbers take less
// than four bytes each: with less precision (F16, BF16), or in blocks, where 32 or 256 neighbours
// in a row share a scale and keep a few bits each. A block type has two sizes, in elements and in
// bytes (Type.Block); Q8_0's 32 elements take 34 bytes: a half-precision scale d and 32 signed
// bytes q, element = d·q.
//
//	type        bits per element   element
//	F32         32
//	F16, BF16   16
//	Q8_0        8.5                d·q
//	Q6_K        6.56               d·scale·(q−32)
//	Q5_K        5.5                d·scale·q − dmin·min
//	Q5_1        6                  d·q + m
//	Q5_0        5.5                d·(q−16)
//	Q4_K        4.5                d·scale·q − dmin·min
//	Q4_1        5                  d·q + m
//	Q4_0        4.5                d·(q−8)
//
// Dequantize decodes all of these exactly: only one addition is rounded to f32. Quantize encodes them. Both are pure
// functions of their arguments, so that workers can share a tensor row by row; blocks never cross rows.
//
// The type numbers are ggml's, as GGUF files store them. Types that grove cannot compute with still have
// names and sizes and can be copied, so that a file with them can be inspected.
package tensor
