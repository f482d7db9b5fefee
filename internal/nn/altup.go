package nn

import (
	"math"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// AltUp gives rows several residual streams, of which a block computes only the first (arXiv 2301.13310; Gemma 3n).
// The block first predicts all streams from all, then computes the first one, and at last corrects all by the
// difference of the computed and the predicted one. A row's coefficients come from its normalised first stream.
type AltUp struct {
	Norm    Norm
	Router  Linear      // from the first stream to a row's modes, one for each stream
	Predict [][]float32 // of stream b from stream a, in row b·streams + a: the factors of the modes
	Correct [][]float32 // of each stream: the factors of the modes
	Scale   []float32   // of the first stream on its way into PerLayer, whose result the others take in
}

// Laurel is a shortcut of low rank around a block's attention (arXiv 2411.07501): x + norm(x) + Post(Up·Down·norm(x)),
// over √2, where norm(x) is attention's input.
type Laurel struct {
	Down, Up Linear
	Post     Norm
}

// Streams are the products that make the further streams of AltUp from embeddings, and those that
// turn them into addends of the first one after the last block.
type Streams struct{ Spread, Merge []Linear }

// Bytes is the size of the packed weights.
func (s *Streams) Bytes() (size int) {
	for i := range s.Spread {
		size += s.Spread[i].W.Bytes() + s.Merge[i].W.Bytes()
	}
	return size
}

// streamMat returns the buffer of all streams, side by side. Within a block its first one is the prediction.
func (m *BlockBuffers) streamMat(e *Exec, x Mat, n int) Mat {
	return e.Mat(&m.streams, x.Rows, n*x.Cols)
}

// SpreadStreams makes the streams of rows whose embeddings are x.
func (e *Exec) SpreadStreams(s *Streams, x Mat, m *BlockBuffers) {
	all := m.streamMat(e, x, 1+len(s.Spread))
	projs := make([]Proj, len(s.Spread))
	for i := range projs {
		projs[i] = Proj{Linear: &s.Spread[i], Dst: all.Columns((i+1)*x.Cols, (i+2)*x.Cols)}
	}
	e.Linear(Source{X: x}, projs...)
	e.streamPhase(streamJob{step: matchStreams, x: x, all: all.Columns(x.Cols, all.Cols)})
}

// MergeStreams makes x the mean of the streams.
func (e *Exec) MergeStreams(s *Streams, x Mat, m *BlockBuffers) {
	all := m.streamMat(e, x, 1+len(s.Merge))
	merged := e.Mat(&m.merged, x.Rows, len(s.Merge)*x.Cols)
	for i := range s.Merge {
		from, to := i*x.Cols, (i+1)*x.Cols
		e.Linear(Source{X: all.Columns(to, to+x.Cols)}, Proj{Linear: &s.Merge[i], Dst: merged.Columns(from, to)})
	}
	e.streamPhase(streamJob{step: mergeStreams, x: x, all: merged})
}

// predict makes predictions of all streams; x becomes that of the first.
func (e *Exec) predict(a *AltUp, x Mat, m *BlockBuffers) { e.route(a, predictStreams, x, m) }

// correct corrects the streams by the computed one, x, which becomes the input of PerLayer.
func (e *Exec) correct(a *AltUp, x Mat, m *BlockBuffers) { e.route(a, correctStreams, x, m) }

func (e *Exec) route(a *AltUp, step streamStep, x Mat, m *BlockBuffers) {
	n := len(a.Correct)
	modes := e.Mat(&m.modes, x.Rows, n)
	e.Linear(Source{X: x, Norm: &a.Norm}, Proj{Linear: &a.Router, Dst: modes})
	e.streamPhase(streamJob{step: step, x: x, all: m.streamMat(e, x, n), modes: modes, altUp: a})
}

// laurel adds the shortcut to x, after attention was added.
func (e *Exec) laurel(b *Block, x Mat, m *BlockBuffers) {
	l := b.Laurel
	predicted := m.streamMat(e, x, len(b.AltUp.Correct))
	low, out := e.Mat(&m.low, x.Rows, l.Down.W.Out()), e.Mat(&m.out, x.Rows, x.Cols)
	e.Linear(Source{X: predicted.Columns(0, x.Cols), Norm: &b.AttnNorm}, Proj{Linear: &l.Down, Dst: low})
	e.Linear(Source{X: low}, Proj{Linear: &l.Up, Dst: out})
	e.streamPhase(streamJob{step: addLaurel, x: x, all: predicted, modes: out, block: b})
}

// streamStep is an operation on the streams of a row.
type streamStep uint8

const (
	matchStreams streamStep = iota
	mergeStreams
	predictStreams
	correctStreams
	addLaurel
	joinPerLayer
)

// streamJob does a step of all rows.
type streamJob struct {
	e     *Exec
	step  streamStep
	x     Mat // the first stream
	all   Mat
	modes Mat // or what is to be added
	altUp *AltUp
	block *Block
}

func (e *Exec) streamPhase(job streamJob) {
	if e.records != nil {
		panic("nn: several residual streams have no gradient")
	}
	job.e = e
	e.grow(scratchSizes{row: job.all.Cols})
	j := e.plan.streams.next(&e.plan)
	*j = job
	e.OwnRows(job.x.Rows, 4*job.all.Cols, j)
}

func (j *streamJob) Do(worker, i int) {
	x, all := j.x.Row(i), j.all.Row(i)
	width := len(x)
	scratch := j.e.scratch[worker].row[:len(all)]
	stream := func(of []float32, b int) []float32 { return of[b*width:][:width] }
	switch j.step {
	case matchStreams:
		match(all, x)
	case mergeStreams:
		match(all, x)
		for b := range len(all) / width {
			simd.Add(x, stream(all, b))
		}
		simd.Scale(x, 1/float32(1+len(all)/width))
	case predictStreams:
		copy(all, x)
		copy(scratch, all)
		n := len(j.altUp.Correct)
		for r, factors := range j.altUp.Predict {
			simd.Axpy(stream(all, r/n), coefficient(factors, j.modes.Row(i)), stream(scratch, r%n))
		}
		copy(x, all)
	case correctStreams:
		innovation := scratch[:width]
		copy(innovation, x)
		simd.Axpy(innovation, -1, all[:width])
		for b, factors := range j.altUp.Correct {
			simd.Axpy(stream(all, b), coefficient(factors, j.modes.Row(i))+1, innovation)
		}
		for k, s := range j.altUp.Scale {
			x[k] = s * all[k]
		}
	case addLaurel:
		y, norm := j.modes.Row(i), scratch[:width]
		j.block.Laurel.Post.apply(y, y)
		j.block.AttnNorm.apply(norm, all[:width])
		simd.Add(y, norm)
		simd.Add(x, y)
		simd.Scale(x, math.Sqrt2/2)
	case joinPerLayer:
		y := j.modes.Row(i)
		j.block.PerLayer.Norm.apply(y, y)
		for b := 1; b < len(all)/width; b++ {
			simd.Add(stream(all, b), y)
		}
		copy(x, all)
	}
}

// coefficient returns the sum of the modes, each times its factor.
func coefficient(factors, modes []float32) (sum float32) {
	for k, f := range factors {
		sum += float32(f * modes[k])
	}
	return sum
}

// match scales each of the streams in all to the root mean square of x.
func match(all, x []float32) {
	const least = 1e-5
	want := rootMeanSquare(x, 0)
	for ; len(all) > 0; all = all[len(x):] {
		y := all[:len(x)]
		simd.Scale(y, want/rootMeanSquare(y, least))
	}
}

// rootMeanSquare returns the root of the mean of the squares of x, or of least if that is more.
func rootMeanSquare(x []float32, least float32) float32 {
	mean, variance := simd.Moments(x)
	return float32(math.Sqrt(float64(max(variance+float32(mean*mean), least))))
}

// sparseGELU computes gelu(max(x − mean − deviations·σ, 0))·up, where σ is the standard deviation of
// the numbers of x: it keeps about the same share of them in every row.
func sparseGELU(dst, x, up []float32, deviations float32) {
	mean, variance := simd.Moments(x)
	cut := mean + float32(deviations*float32(math.Sqrt(float64(variance))))
	for i, v := range x {
		dst[i] = max(v-cut, 0)
	}
	simd.GELUMul(dst, dst, up)
}
