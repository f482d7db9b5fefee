package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// oracle is the law of doc.go in the plainest code: full sorts, no bounds, counts by scanning the text.
func oracle(p Params, logits []float32, position int, text []int32) int32 {
	kept, _ := oracleSupport(p, logits, text)
	l := oracleLogits(p, logits, text)
	if p.Temperature == 0 || math.IsInf(float64(l[kept[0]]), 0) {
		return kept[0]
	}
	win, best := kept[0], math.Inf(-1)
	for _, i := range kept {
		v := float64(float64(l[i])*(1/float64(p.Temperature))) + Noise(p.Seed, position, i)
		if v > best || v == best && i < win {
			win, best = i, v
		}
	}
	return win
}

func oracleLogits(p Params, logits []float32, text []int32) []float32 {
	l := slices.Clone(logits)
	begin := 0
	if p.PenaltyLast > 0 {
		begin = max(0, len(text)-p.PenaltyLast)
	}
	count := map[int32]int{}
	for i, t := range text[begin:] {
		count[t] += 0
		if begin+i >= p.PenaltyFrom {
			count[t]++
		}
	}
	for t, n := range count {
		if p.RepetitionPenalty != 0 {
			if l[t] > 0 {
				l[t] /= p.RepetitionPenalty
			} else {
				l[t] *= p.RepetitionPenalty
			}
		}
		if n > 0 {
			l[t] -= p.PresencePenalty
			l[t] -= float32(p.FrequencyPenalty * float32(n))
		}
	}
	for t, b := range p.LogitBias {
		l[t] += b
	}
	for i, v := range l {
		if v != v {
			l[i] = negInf
		}
	}
	return l
}

// oracleSupport also returns how close the top-p boundary was to falling elsewhere, in probability.
func oracleSupport(p Params, logits []float32, text []int32) (kept []int32, margin float64) {
	l := oracleLogits(p, logits, text)
	order := make([]int32, len(l))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		switch {
		case l[a] > l[b]:
			return -1
		case l[a] < l[b]:
			return 1
		}
		return 0
	})
	margin = 1
	top := l[order[0]]
	if p.Temperature == 0 || math.IsInf(float64(top), 0) {
		return order[:1], margin
	}
	if p.TopK > 0 {
		order = order[:min(p.TopK, len(order))]
	}
	prob := func(i int32) float64 {
		return math.Exp((float64(l[i]) - float64(top)) / float64(p.Temperature))
	}
	if p.TopP > 0 && p.TopP < 1 {
		all, sum := 0.0, 0.0
		for _, i := range order {
			all += prob(i)
		}
		for n, i := range order {
			sum += prob(i)
			margin = min(margin, math.Abs(sum/all-float64(p.TopP)))
			if sum >= float64(p.TopP)*all {
				order = order[:n+1]
				break
			}
		}
	}
	if p.MinP > 0 {
		for n, i := range order {
			margin = min(margin, math.Abs(prob(i)-float64(p.MinP)))
			if prob(i) < float64(p.MinP) {
				order = order[:n]
				break
			}
		}
	}
	return order, margin
}

func genParams(vocab int) *rapid.Generator[Params] {
	return rapid.Custom(func(r *rapid.T) Params {
		p := Params{
			Temperature: rapid.SampledFrom([]float32{0, .3, .7, 1, 1.5, 100}).Draw(r, "temperature"),
			TopK:        rapid.SampledFrom([]int{0, 0, 1, 2, 40, 127, 129, 400, 1 << 30}).Draw(r, "top-k"),
			TopP:        rapid.SampledFrom([]float32{0, 0, 1, .001, .5, .9, .999}).Draw(r, "top-p"),
			MinP:        rapid.SampledFrom([]float32{0, 0, .001, .05, .5, 1}).Draw(r, "min-p"),
			Seed:        rapid.Uint64().Draw(r, "seed"),
		}
		if rapid.Bool().Draw(r, "penalties") {
			p.RepetitionPenalty = rapid.SampledFrom([]float32{0, 1, 1.1, .8, 2}).Draw(r, "repetition")
			p.PresencePenalty = rapid.SampledFrom([]float32{0, .5, -1, 3}).Draw(r, "presence")
			p.FrequencyPenalty = rapid.SampledFrom([]float32{0, .25, -.5}).Draw(r, "frequency")
			p.PenaltyLast = rapid.SampledFrom([]int{0, 1, 3, 1000}).Draw(r, "last")
			p.PenaltyFrom = rapid.SampledFrom([]int{0, 2, 5, 1000}).Draw(r, "from")
		}
		if rapid.Bool().Draw(r, "bias") {
			p.LogitBias = map[int32]float32{}
			for range 3 {
				token := rapid.Int32Range(0, int32(vocab)-1).Draw(r, "token")
				p.LogitBias[token] = rapid.SampledFrom([]float32{negInf, -2, 1, 50}).Draw(r, "bias")
			}
		}
		return p
	})
}

// genLogits draws logits of several kinds: bell-shaped, all ties, few distinct values, hostile.
func genLogits(r *rapid.T, vocab int) []float32 {
	kind := rapid.IntRange(0, 4).Draw(r, "kind")
	seed := rapid.Uint64().Draw(r, "logits")
	spread := rapid.SampledFrom([]float64{.1, 1, 4, 1000}).Draw(r, "spread")
	l := make([]float32, vocab)
	for i := range l {
		h := mix(seed + uint64(i)*golden)
		switch kind {
		case 0, 1:
			l[i] = float32(spread * (gumbel(h) - gumbel(mix(h))))
		case 2:
			l[i] = float32(h % 7)
		case 3:
			l[i] = float32(seed % 5)
		case 4:
			l[i] = []float32{negInf, float32(math.NaN()), 0, float32(math.Copysign(0, -1)), 3, -3,
				math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1))}[h%uint64(2+seed%8)]
		}
	}
	return l
}

// Sample is the oracle, bit for bit, and leaves the logits as they were.
func TestSampleIsTheLaw(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 50, 300, 1500, 6000}).Draw(r, "vocab")
		p := genParams(vocab).Draw(r, "params")
		logits := genLogits(r, vocab)
		text := rapid.SliceOfN(rapid.Int32Range(0, int32(min(vocab, 8))-1), 0, 12).Draw(r, "text")
		position := rapid.IntRange(0, 1<<20).Draw(r, "position")
		s, err := New(p, vocab)
		if err != nil {
			r.Fatal(err)
		}
		h := NewHistory(&p)
		for _, tok := range text {
			h.Push(tok)
		}
		kept, margin := oracleSupport(p, logits, text)
		if margin < 1e-5 {
			r.Skip("the boundary is within rounding")
		}
		before := slices.Clone(logits)
		for k := range 4 { // state left from one call must not show in the next
			want := oracle(p, logits, position+k, text)
			if got := s.Sample(logits, position+k, h); got != want {
				r.Fatalf("position %d: token %d, want %d of %d kept", position+k, got, want, len(kept))
			}
		}
		for i := range logits {
			if math.Float32bits(logits[i]) != math.Float32bits(before[i]) {
				r.Fatalf("logit %d was left changed", i)
			}
		}

		probs := make([]float32, vocab)
		s.Probs(probs, logits, h)
		in := map[int32]bool{}
		for _, i := range kept {
			in[i] = true
		}
		sum := 0.0
		for i, q := range probs {
			if q > 0 && !in[int32(i)] || !(q >= 0) {
				r.Fatalf("probability %g of token %d, kept: %v", q, i, in[int32(i)])
			}
			sum += float64(q)
		}
		if math.Abs(sum-1) > 1e-4 {
			r.Fatalf("probabilities add up to %g", sum)
		}
	})
}

// The bounds of the mass that top-p shares hold, on vocabularies of several blocks too, and are close.
func TestBoundsOfTheMass(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 300, 4096, 20_000}).Draw(r, "vocab")
		s, err := New(Params{Temperature: rapid.Float32Range(.05, 20).Draw(r, "temperature")}, vocab)
		if err != nil {
			r.Fatal(err)
		}
		logits := genLogits(r, vocab)
		_, top := largest(logits)
		if math.IsInf(float64(top), 0) {
			return
		}
		least, most := s.total(logits, top)
		if all := sum(s.exps(logits, top)); all < least || all > most {
			r.Fatalf("the mass is %d, not from %d to %d", all, least, most)
		}
		if width := float64(most-least) / float64(most); width > .001 && most != math.MaxUint64 {
			r.Fatalf("the mass is from %d to %d", least, most)
		}
	})
}

// Greedy decoding takes the lowest id on ties, after penalties and bias, whatever the noise.
func TestGreedy(t *testing.T) {
	s, _ := New(Params{LogitBias: map[int32]float32{1: -9}, RepetitionPenalty: 2, Seed: 5}, 5)
	h := NewHistory(&s.p)
	h.Push(2)
	if got := s.Sample([]float32{1, 9, 3, 1.75, 1.75}, 7, h); got != 3 {
		t.Errorf("token %d, want 3", got)
	}
}

func TestNoLogitAboveMinusInfinity(t *testing.T) {
	nan := float32(math.NaN())
	for _, temperature := range []float32{0, 1} {
		s, _ := New(Params{Temperature: temperature, TopK: 2, TopP: .5, MinP: .5}, 3)
		for _, l := range [][]float32{{nan, nan, nan}, {negInf, negInf, negInf}, {nan, negInf, nan}} {
			if got := s.Sample(l, 0, nil); got != 0 {
				t.Errorf("temperature %g, logits %v: token %d, want 0", temperature, l, got)
			}
		}
		inf := float32(math.Inf(1))
		if got := s.Sample([]float32{nan, inf, inf}, 0, nil); got != 1 {
			t.Errorf("temperature %g: token %d beats plus infinity", temperature, got)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, p := range []Params{
		{Temperature: -1}, {Temperature: nan}, {Temperature: inf}, {Temperature: 1e-30}, {TopP: 1.1}, {TopP: -.1}, {TopP: nan},
		{MinP: 2}, {MinP: nan}, {TopK: -1}, {RepetitionPenalty: -1}, {RepetitionPenalty: 1e-20}, {RepetitionPenalty: inf},
		{PresencePenalty: nan}, {FrequencyPenalty: inf}, {PenaltyLast: -2}, {PenaltyFrom: -1},
		{LogitBias: map[int32]float32{-1: 1}}, {LogitBias: map[int32]float32{1: nan}}, {LogitBias: map[int32]float32{1: inf}},
		{LogitBias: map[int32]float32{10: 1}},
	} {
		if _, err := New(p, 10); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
	if _, err := New(Params{}, 0); err == nil {
		t.Error("a vocabulary of 0 was accepted")
	}
}

// A history after any pushes and pops counts what a scan of the window counts.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		last := rapid.SampledFrom([]int{0, 1, 2, 7, 100}).Draw(r, "last")
		h := NewHistory(&Params{PenaltyLast: last, PresencePenalty: 1})
		var text []int32
		n := rapid.IntRange(0, 300).Draw(r, "length")
		for _, tok := range rapid.SliceOfN(rapid.Int32Range(-100, 200), n, n).Draw(r, "steps") {
			if tok < 0 && len(text) > 0 {
				text = text[:len(text)-1]
				h.Pop()
			} else {
				tok = max(tok, -tok)
				text = append(text, tok)
				h.Push(tok)
			}
		}
		window := text
		if last > 0 {
			window = text[max(0, len(text)-last):]
		}
		count := map[int32]int{}
		for _, tok := range window {
			count[tok]++
		}
		for tok := int32(0); tok <= 200; tok++ {
			got := 0
			if at := h.index[h.find(tok)]; at > 0 {
				got = int(h.counts[at-1])
			}
			if got != count[tok] {
				r.Fatalf("token %d: %d, want %d", tok, got, count[tok])
			}
		}
		if len(h.text) != len(text) {
			r.Fatalf("length %d, want %d", len(h.text), len(text))
		}
	})
}

func TestSampleAllocatesNothing(t *testing.T) {
	const vocab = 20000
	logits := make([]float32, vocab)
	for i := range logits {
		logits[i] = float32(gumbel(mix(uint64(i))))
	}
	for _, p := range []Params{
		{}, {Temperature: 1}, {Temperature: 1, TopK: 40, TopP: .9}, {Temperature: 1, TopP: .99}, {Temperature: 1,
			TopK: 9000, MinP: .01},
		{Temperature: 1, RepetitionPenalty: 1.1, PenaltyLast: 64, LogitBias: map[int32]float32{5: 1}},
	} {
		s, err := New(p, vocab)
		if err != nil {
			t.Fatal(err)
		}
		h := NewHistory(&p)
		pos := 0
		step := func() {
			h.Push(s.Sample(logits, pos, h) % 64)
			pos++
		}
		for range 200 {
			step()
		}
		if h != nil {
			h.text = slices.Grow(h.text, 200)
		}
		if n := testing.AllocsPerRun(50, step); n != 0 {
			t.Errorf("%+v: %g allocations a token, want 0", p, n)
		}
	}
}
