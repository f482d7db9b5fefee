package synth

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/codebook"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/tensor"
)

// Options selects the numbers to write, and their type.
type Options struct {
	Type tensor.Type // of the matrices: one that tensor writes, or one of package codebook; vectors are F32 in GGUF
	Seed uint64

	// Repeat makes the rows of a matrix repeat its first ones, so that a large model that is
	// only timed is written quickly.
	Repeat bool

	// Progress, if set, is called from time to time with the bytes of tensor data written so far and the total.
	Progress func(done, total int64)
}

// chunkElements is the number of values a worker makes at a time: enough to be worth the handover,
// few enough that a small model keeps every worker busy.
const chunkElements = 1 << 18

// distinctRows is the number of different rows in a chunk with repeated rows.
const distinctRows = 4

// chunk is a run of rows of one tensor, encoded.
type chunk struct {
	t      *planned
	typ    tensor.Type
	r0, r1 int
	repeat bool // rows from distinctRows on repeat the first ones
	data   []byte
	err    error
	ready  chan struct{}
}

// encoding is the tensor's type in a file whose matrices have type typ.
func (t *planned) encoding(typ tensor.Type) tensor.Type {
	if (!t.matrix || t.plain) && !t.uniform {
		return tensor.F32
	}
	return typ
}

// size is the tensor's data in bytes.
func (t *planned) size(typ tensor.Type) int64 {
	row, _ := t.encoding(typ).Size(t.elements()) // Shape.check excludes errors
	return int64(row)
}

// maker makes tensors on all processors, ahead of the writer. Memory holds a few chunks per
// processor, whatever the model's size.
type maker struct {
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	queue   chan *chunk // in file order; its length limits how far ahead chunks are made
	buffers sync.Pool

	seed  uint64
	gguf  bool // rows are in GGUF's order, not Hugging Face's
	done  int64
	total int64
	tell  func(done, total int64)
}

// start returns a maker that makes ts in order. The caller must stop it.
func start(ctx context.Context, ts []planned, o Options, gguf bool) *maker {
	workers := runtime.GOMAXPROCS(0)
	m := &maker{queue: make(chan *chunk, 2*workers), seed: o.Seed, gguf: gguf, tell: o.Progress}
	m.ctx, m.cancel = context.WithCancel(ctx)
	for i := range ts {
		m.total += ts[i].size(o.Type)
	}
	todo := make(chan *chunk)
	m.wg.Go(func() {
		defer close(todo)
		m.cut(ts, o, todo)
	})
	for range workers {
		m.wg.Go(func() {
			var f []float32
			for c := range todo {
				if b, ok := m.buffers.Get().(*[]byte); ok {
					c.data = *b
				}
				f, c.err = c.make(f, m.seed, m.gguf)
				close(c.ready)
			}
		})
	}
	return m
}

// cut queues every chunk for the writer and then for the workers, so that a chunk the writer waits for is on its way.
func (m *maker) cut(ts []planned, o Options, todo chan<- *chunk) {
	for i := range ts {
		t := &ts[i]
		step := max(1, chunkElements/t.cols)
		for r := 0; r < t.rows; r += step {
			c := &chunk{t: t, typ: t.encoding(o.Type), r0: r, r1: min(r+step, t.rows), ready: make(chan struct{})}
			c.repeat = o.Repeat && t.matrix && !t.plain && c.r1-r > distinctRows
			select {
			case m.queue <- c:
			case <-m.ctx.Done():
				return
			}
			select {
			case todo <- c:
			case <-m.ctx.Done():
				return
			}
		}
	}
}

// stop stops the maker, finished or not, and waits for the workers.
func (m *maker) stop() {
	m.cancel()
	m.wg.Wait()
}

// write writes a tensor's data. Tensors must be written in the order in which start got them.
func (m *maker) write(t *planned, out io.Writer) error {
	for r := 0; r < t.rows; {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		var c *chunk
		select {
		case c = <-m.queue:
		case <-m.ctx.Done():
			return m.ctx.Err()
		}
		select {
		case <-c.ready:
		case <-m.ctx.Done():
			return m.ctx.Err()
		}
		switch {
		case c.err != nil:
			return c.err
		case c.t != t:
			return fmt.Errorf("synth: %s is asked for when %s is next", t.gguf, c.t.gguf)
		}
		if _, err := out.Write(c.data); err != nil {
			return err
		}
		r = c.r1
		m.done += int64(len(c.data))
		if m.tell != nil {
			m.tell(m.done, m.total)
		}
		b := c.data
		m.buffers.Put(&b)
	}
	return nil
}

// make fills and encodes the chunk. It uses f as a buffer for the numbers, and returns it, possibly grown.
func (c *chunk) make(f []float32, seed uint64, gguf bool) ([]float32, error) {
	rows := c.r1 - c.r0
	if c.repeat {
		rows = distinctRows
	}
	n := rows * c.t.cols
	if cap(f) < n {
		f = make([]float32, n)
	}
	f = f[:n]
	c.t.fill(f, seed, gguf, c.r0, c.r0+rows)
	size, err := c.typ.Size((c.r1 - c.r0) * c.t.cols)
	if err != nil {
		return f, err
	}
	if cap(c.data) < size {
		c.data = make([]byte, size)
	}
	c.data = c.data[:size]
	made := c.data[:size/(c.r1-c.r0)*rows]
	if setScale, ok := blockScale(c.typ); ok {
		err = fillBlocks(c.typ, setScale, f, made)
	} else {
		err = tensor.Quantize(c.typ, f, made)
	}
	for at := len(made); at < size; at += len(made) {
		copy(c.data[at:], made)
	}
	return f, err
}

// blockScale returns the function that sets the scale of a block of t, or false if tensor writes blocks of t itself.
func blockScale(t tensor.Type) (set func(block []byte, d float32), ok bool) {
	if code, ok := codebook.Named(t.String()); ok {
		return code.SetScale, true
	}
	at, ok := map[tensor.Type][]int{numtype.Q2_K: {80, 82}, numtype.Q3_K: {108}}[t]
	return func(block []byte, d float32) {
		for _, i := range at {
			binary.LittleEndian.PutUint16(block[i:], num.ToF16(d))
		}
	}, ok
}

// fillBlocks fills dst with blocks of a type that tensor does not write. Their bits are random, seeded by the numbers
// in f, and they are scaled so that their values are as large as these numbers.
func fillBlocks(t tensor.Type, setScale func([]byte, float32), f []float32, dst []byte) error {
	elements, size := t.Block()
	x := make([]float32, elements)
	for ; len(f) > 0; f, dst = f[elements:], dst[size:] {
		block := dst[:size]
		rng := rand.New(rand.NewPCG(uint64(math.Float32bits(f[0])), uint64(math.Float32bits(f[1]))))
		for i := range block {
			block[i] = byte(rng.Uint32())
		}
		setScale(block, 1)
		if err := tensor.Dequantize(t, block, x); err != nil {
			return err
		}
		var want, have float64 // sums of squares
		for i, v := range f[:elements] {
			want += float64(v) * float64(v)
			have += float64(x[i]) * float64(x[i])
		}
		setScale(block, float32(math.Sqrt(want/max(have, 1))))
	}
	return nil
}
