//go:build !purego

package gemm

//go:noescape
func mulF32AVX512(t *tile)

//go:noescape
func mulF16AVX512(t *tile)

//go:noescape
func mulBF16AVX512(t *tile)

//go:noescape
func mulBF16AVX512BF16(t *tile)

//go:noescape
func mulFewBF16AVX512BF16(t *fewTile)

//go:noescape
func mulQ8AVX512(t *tile)

//go:noescape
func mulQ40AVX512(t *tile)

//go:noescape
func mulQ41AVX512(t *tile)

//go:noescape
func mulQ50AVX512(t *tile)

//go:noescape
func mulQ51AVX512(t *tile)

//go:noescape
func mulIQ4NLAVX512(t *tile)

//go:noescape
func mulMXFP4AVX512(t *tile)

//go:noescape
func mulWideQ8AVX512(t *tile)

//go:noescape
func mulWideMinAVX512(t *tile)

//go:noescape
func mulQ4KAVX512(t *tile)

//go:noescape
func mulQ5KAVX512(t *tile)

//go:noescape
func mulQ6KAVX512(t *tile)

//go:noescape
func mulQ2KAVX512(t *tile)

//go:noescape
func mulQ3KAVX512(t *tile)

//go:noescape
func mulWide5KAVX512(t *tile)

//go:noescape
func mulWide6KAVX512(t *tile)

//go:noescape
func mulF32AVX2(t *tile)

//go:noescape
func mulF16AVX2(t *tile)

//go:noescape
func mulBF16AVX2(t *tile)

//go:noescape
func mulQ8AVX2(t *tile)

//go:noescape
func mulQ40AVX2(t *tile)

//go:noescape
func mulQ41AVX2(t *tile)

//go:noescape
func mulQ50AVX2(t *tile)

//go:noescape
func mulQ51AVX2(t *tile)

//go:noescape
func mulIQ4NLAVX2(t *tile)

//go:noescape
func mulMXFP4AVX2(t *tile)

//go:noescape
func mulQ4KAVX2(t *tile)

//go:noescape
func mulQ5KAVX2(t *tile)

//go:noescape
func mulQ6KAVX2(t *tile)

//go:noescape
func mulQ2KAVX2(t *tile)

//go:noescape
func mulQ3KAVX2(t *tile)

//go:noescape
func mulWide4KAVX2(t *tile)

//go:noescape
func mulWide5KAVX2(t *tile)

//go:noescape
func mulWide6KAVX2(t *tile)

//go:noescape
func mulWide7KAVX2(t *tile)

//go:noescape
func mulQ8AVXVNNI(t *tile)

//go:noescape
func mulQ40AVXVNNI(t *tile)

//go:noescape
func mulQ41AVXVNNI(t *tile)

//go:noescape
func mulQ50AVXVNNI(t *tile)

//go:noescape
func mulQ51AVXVNNI(t *tile)

//go:noescape
func mulIQ4NLAVXVNNI(t *tile)

//go:noescape
func mulMXFP4AVXVNNI(t *tile)

//go:noescape
func mulQ4KAVXVNNI(t *tile)

//go:noescape
func mulQ5KAVXVNNI(t *tile)

//go:noescape
func mulQ6KAVXVNNI(t *tile)

//go:noescape
func mulQ2KAVXVNNI(t *tile)

//go:noescape
func mulQ3KAVXVNNI(t *tile)

//go:noescape
func mulWide4KAVXVNNI(t *tile)

//go:noescape
func mulWide5KAVXVNNI(t *tile)

//go:noescape
func mulWide6KAVXVNNI(t *tile)

//go:noescape
func unpackQ5KAVX512(dst, src *byte, n int)

//go:noescape
func unpackQ6KAVX512(dst, src *byte, n int)

//go:noescape
func unpackQ3KAVX512(dst, src *byte, n int)

//go:noescape
func unpackQ4KAVX2(dst, src *byte, n int)

//go:noescape
func unpackQ5KAVX2(dst, src *byte, n int)

//go:noescape
func unpackQ6KAVX2(dst, src *byte, n int)

//go:noescape
func unpackQ3KAVX2(dst, src *byte, n int)

//go:noescape
func unpackQ40AVX512(dst, src *byte, n int)

//go:noescape
func unpackQ41AVX512(dst, src *byte, n int)

//go:noescape
func unpackQ50AVX512(dst, src *byte, n int)

//go:noescape
func unpackQ51AVX512(dst, src *byte, n int)

//go:noescape
func unpackIQ4NLAVX512(dst, src *byte, n int)

//go:noescape
func unpackMXFP4AVX512(dst, src *byte, n int)

//go:noescape
func unpackQ50AVX2(dst, src *byte, n int)

//go:noescape
func roundAVX2(dst *byte, src *float32, n int)

//go:noescape
func pairsAVX512BF16(dst *byte, src *float32, n int)

//go:noescape
func quantizeAVX2(dst *byte, src *float32, n int)

//go:noescape
func quantizeKAVX2(dst *byte, src *float32, n int)

//go:noescape
func readAVX2(p *byte, n int) uint64

//go:noescape
func readAVX512(p *byte, n int) uint64

//go:noescape
func expandIQ1SAVX2(dst, src, entries, signs *byte)

//go:noescape
func expandIQ1MAVX2(dst, src, entries, signs *byte)

//go:noescape
func expandIQ2XXSAVX2(dst, src, entries, signs *byte)

//go:noescape
func expandIQ2XSAVX2(dst, src, entries, signs *byte)

//go:noescape
func expandIQ2SAVX2(dst, src, entries, signs *byte)

//go:noescape
func expandIQ3XXSAVX2(dst, src, entries, signs *byte)

//go:noescape
func expandIQ3SAVX2(dst, src, entries, signs *byte)

//go:noescape
func expandTQ2AVX2(dst, src, entries, signs *byte)

//go:noescape
func expandQ1AVX2(dst, src, entries, signs *byte)

//go:noescape
func expandQ2AVX2(dst, src, entries, signs *byte)

func peakFMAAVX2(iters int)
func peakQ8AVX2(iters int)
func peakQ8AVXVNNI(iters int)
func peakFMAAVX512(iters int)
func peakQ8AVX512(iters int)
func peakBF16AVX512BF16(iters int)
