//go:build !purego

package gemm

//go:noescape
func mulF32FewNEON(t *tile)

//go:noescape
func mulF32NEON(t *tile)

//go:noescape
func mulF16FewNEON(t *tile)

//go:noescape
func mulF16NEON(t *tile)

//go:noescape
func mulBF16FewNEON(t *tile) (flushed int)

//go:noescape
func mulBF16NEON(t *tile) (flushed int)

//go:noescape
func mulQ8OneNEON(t *tile)

//go:noescape
func mulQ8FewNEON(t *tile)

//go:noescape
func mulQ8NEON(t *tile)

//go:noescape
func mulQ40OneNEON(t *tile)

//go:noescape
func mulQ40FewNEON(t *tile)

//go:noescape
func mulQ40NEON(t *tile)

//go:noescape
func mulQ41OneNEON(t *tile)

//go:noescape
func mulQ41FewNEON(t *tile)

//go:noescape
func mulQ41NEON(t *tile)

//go:noescape
func mulQ50OneNEON(t *tile)

//go:noescape
func mulQ50FewNEON(t *tile)

//go:noescape
func mulQ50NEON(t *tile)

//go:noescape
func mulQ51OneNEON(t *tile)

//go:noescape
func mulIQ4NLOneNEON(t *tile)

//go:noescape
func mulMXFP4OneNEON(t *tile)

//go:noescape
func mulQ51FewNEON(t *tile)

//go:noescape
func mulIQ4NLFewNEON(t *tile)

//go:noescape
func mulMXFP4FewNEON(t *tile)

//go:noescape
func mulQ51NEON(t *tile)

//go:noescape
func mulIQ4NLNEON(t *tile)

//go:noescape
func mulMXFP4NEON(t *tile)

//go:noescape
func mulQ4KOneNEON(t *tile)

//go:noescape
func mulQ4KFewNEON(t *tile)

//go:noescape
func mulQ4KNEON(t *tile)

//go:noescape
func mulQ5KOneNEON(t *tile)

//go:noescape
func mulQ5KFewNEON(t *tile)

//go:noescape
func mulQ5KNEON(t *tile)

//go:noescape
func mulQ6KOneNEON(t *tile)

//go:noescape
func mulQ6KFewNEON(t *tile)

//go:noescape
func mulQ6KNEON(t *tile)

//go:noescape
func mulQ2KOneNEON(t *tile)

//go:noescape
func mulQ2KFewNEON(t *tile)

//go:noescape
func mulQ2KNEON(t *tile)

//go:noescape
func mulQ3KOneNEON(t *tile)

//go:noescape
func mulQ3KFewNEON(t *tile)

//go:noescape
func mulQ3KNEON(t *tile)

//go:noescape
func mulWideQ8NEON(t *tile)

//go:noescape
func mulWideMinNEON(t *tile)

//go:noescape
func mulWideNEON(t *tile)

//go:noescape
func mulWide6KNEON(t *tile)

//go:noescape
func mulQ8FewI8MM(t *tile)

//go:noescape
func mulQ8I8MM(t *tile)

//go:noescape
func mulWideQ8I8MM(t *tile)

//go:noescape
func mulWideMinI8MM(t *tile)

//go:noescape
func mulWideI8MM(t *tile)

//go:noescape
func mulWide6KI8MM(t *tile)

//go:noescape
func mulPackedF32NEON(t *tile)

//go:noescape
func mulPackedBF16NEON(t *tile) (flushed int)

//go:noescape
func unpackQ8NEON(dst, src *byte, n int)

//go:noescape
func unpackQ40NEON(dst, src *byte, n int)

//go:noescape
func unpackQ41NEON(dst, src *byte, n int)

//go:noescape
func unpackQ50NEON(dst, src *byte, n int)

//go:noescape
func unpackQ51NEON(dst, src *byte, n int)

//go:noescape
func unpackIQ4NLNEON(dst, src *byte, n int)

//go:noescape
func unpackMXFP4NEON(dst, src *byte, n int)

//go:noescape
func unpackQ4KNEON(dst, src *byte, n int)

//go:noescape
func unpackQ5KNEON(dst, src *byte, n int)

//go:noescape
func unpackQ6KNEON(dst, src *byte, n int)

//go:noescape
func unpackQ3KNEON(dst, src *byte, n int)

//go:noescape
func unpackQ8I8MM(dst, src *byte, n int)

//go:noescape
func unpackQ40I8MM(dst, src *byte, n int)

//go:noescape
func unpackQ41I8MM(dst, src *byte, n int)

//go:noescape
func unpackQ50I8MM(dst, src *byte, n int)

//go:noescape
func unpackQ51I8MM(dst, src *byte, n int)

//go:noescape
func unpackIQ4NLI8MM(dst, src *byte, n int)

//go:noescape
func unpackMXFP4I8MM(dst, src *byte, n int)

//go:noescape
func unpackQ4KI8MM(dst, src *byte, n int)

//go:noescape
func unpackQ5KI8MM(dst, src *byte, n int)

//go:noescape
func unpackQ6KI8MM(dst, src *byte, n int)

//go:noescape
func unpackQ3KI8MM(dst, src *byte, n int)

//go:noescape
func packPairsNEON(dst *byte, src *float32, stride, pairs int)

//go:noescape
func roundNEON(dst *byte, src *float32, n int)

//go:noescape
func quantizeNEON(dst *byte, src *float32, n int)

//go:noescape
func quantizeKNEON(dst *byte, src *float32, n int)

//go:noescape
func readNEON(p *byte, n int) uint64

func peakFMANEON(iters int)
func peakQ8NEON(iters int)
func peakQ8I8MM(iters int)
