// Package tokenkind has the numbers that say what a token is for. They are GGUF's.
package tokenkind

const (
	Normal      int32 = 1
	Unknown     int32 = 2 // stands for text without a token
	Control     int32 = 3 // controls the model; never comes from plain text
	UserDefined int32 = 4 // added to the vocabulary; found in text before all others
	Unused      int32 = 5
	Byte        int32 = 6 // <0xXX>
)
