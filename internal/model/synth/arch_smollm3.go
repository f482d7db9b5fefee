package synth

var smollm3 = family{
	arch: "smollm3", pairs: true,
	named: []Shape{{Name: "tiny-smollm3", Layers: 5, Heads: 5, KVHeads: 1, NormEps: 1e-6, RopeBase: 2e6, Tied: true,
		Tokens: Llama3}},
	small:  []Shape{{RopeBase: 2e6, Tied: true}},
	random: (*drawing).scalePositions,
}
