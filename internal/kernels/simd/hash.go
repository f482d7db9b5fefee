package simd

// FirstHash returns the first i in [0, n) whose hash is at least least, or n if there is none. The
// hash of i is number i of the SplitMix64 sequence that starts at key. A race of noise spends most
// of its time on these hashes (package sample, which defines the mix).
func FirstHash(key uint64, n int, least uint64) int {
	whole := n &^ 15
	i := firstHash(key, whole, least)
	if i < whole {
		return i
	}
	return whole + firstHashGeneric(key+uint64(whole)*golden, n-whole, least)
}

// FirstHashOf returns the first i for which the hash of the number tokens[i] is at least least, or
// len(tokens) if there is none. The hash of number t is number t of the sequence that starts at
// key.
func FirstHashOf(key uint64, tokens []int32, least uint64) int {
	key += golden
	whole := len(tokens) &^ 15
	i := firstHashOf(key, tokens[:whole], least)
	if i < whole {
		return i
	}
	return whole + firstHashOfGeneric(key, tokens[whole:], least)
}

// golden is the step of the SplitMix64 generator: 2^64 over the golden ratio, made odd.
const golden = 0x9e3779b97f4a7c15

// hash is its output function (Stafford's thirteenth variant).
func hash(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func firstHashGeneric(key uint64, n int, least uint64) int {
	for i := range n {
		key += golden
		if hash(key) >= least {
			return i
		}
	}
	return n
}

// firstHashOfGeneric advances the key by one step, since hashes count from 1.
func firstHashOfGeneric(key uint64, tokens []int32, least uint64) int {
	for i, t := range tokens {
		if hash(key+uint64(t)*golden) >= least {
			return i
		}
	}
	return len(tokens)
}
