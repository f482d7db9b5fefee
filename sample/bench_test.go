package sample

import (
	"fmt"
	"math"
	"testing"
)

// Vocabulary of Qwen 3; logits as flat as a bell curve makes them (the hard case for top-p), and
// ones with a head like a trained model's.
func benchLogits(peaked bool) []float32 {
	l := make([]float32, 151936)
	for i := range l {
		a, b := mix(uint64(2*i)), mix(uint64(2*i+1))
		u, v := (float64(a>>12)+.5)*0x1p-52, float64(b>>12)*0x1p-52
		l[i] = float32(2 * math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v))
		if peaked && i%997 == 0 {
			l[i] += float32(14 - i/15000)
		}
	}
	return l
}

func BenchmarkSample(b *testing.B) {
	for _, c := range []struct {
		name string
		p    Params
	}{
		{"greedy", Params{}},
		{"T=1", Params{Temperature: 1}},
		{"T=0.7", Params{Temperature: .7}},
		{"top-k=40", Params{Temperature: 1, TopK: 40}},
		{"top-k=5000", Params{Temperature: 1, TopK: 5000}},
		{"top-p=0.95", Params{Temperature: 1, TopP: .95}},
		{"min-p=0.05", Params{Temperature: 1, MinP: .05}},
		{"top-k=40,top-p=0.95,penalties", Params{Temperature: .7, TopK: 40, TopP: .95,
			RepetitionPenalty: 1.1, PenaltyLast: 256}},
	} {
		for _, peaked := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/peaked=%v", c.name, peaked), func(b *testing.B) {
				logits := benchLogits(peaked)
				s, err := New(c.p, len(logits))
				if err != nil {
					b.Fatal(err)
				}
				h := NewHistory(&c.p)
				for i := range int32(2000) {
					h.Push(i % 300)
				}
				b.ReportAllocs()
				pos := 0
				for b.Loop() {
					s.Sample(logits, pos, h)
					pos++
				}
			})
		}
	}
}

func BenchmarkNoise(b *testing.B) {
	for i := range int32(b.N) {
		Noise(1, 2, i)
	}
}
