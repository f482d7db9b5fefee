package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/files/filelock"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/train/bpe"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/tokenizer"
)

// tinyText returns text with something to learn: sums, written out.
func tinyText(seed uint64, lines int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for range lines {
		x, y := r.IntN(20), r.IntN(20)
		fmt.Fprintf(&b, "the sum of %d and %d is %d\n", x, y, x+y)
	}
	return b.String()
}

// tinyTokenizer returns a tokenizer with a vocabulary of 272 tokens.
func tinyTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	o := bpe.Options{Size: 272}
	c, err := bpe.NewCounter(o)
	if err == nil {
		err = c.Add([]string{tinyText(1, 400)}, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := bpe.Train(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := v.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// tinySets returns training and validation data for a tiny model, and the model's shape.
func tinySets(t testing.TB) (train, valid []*data.Set, s Shape) {
	t.Helper()
	tok := tinyTokenizer(t)
	for _, d := range []struct {
		sets *[]*data.Set
		text string
	}{{&train, tinyText(1, 400)}, {&valid, tinyText(2, 60)}} {
		set, err := data.FromDocuments(context.Background(), "sums",
			[]data.Document{{Name: "sums", Parts: []data.Part{{Text: d.text}}}}, tok, data.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		*d.sets = []*data.Set{set}
	}
	return train, valid, Shape{Vocab: 272, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24,
		Context: 64, RopeBase: 10000, NormEps: 1e-6}
}

func tinyRecipe(s Shape, steps int) Recipe {
	if cpu.Active() == cpu.Portable { // thirty times slower
		steps = max(12, steps/4)
	}
	return Recipe{Shape: s, Seed: 7, Precision: "f32", Length: 16, Rows: 8, MicroRows: 4, Steps: steps, LongFrom: 0.5,
		LongLength: 32,
		Schedule:   Schedule{Warmup: 0.1, Cooldown: 0.5}, Optimizer: DefaultOptimizer(), Clip: 1, ValidateEvery: 5,
		ValidateRows: 4}
}

func weights(n *Network) []byte {
	var b bytes.Buffer
	for _, p := range n.Params.All() {
		if err := WriteFloats(&b, p.Data); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// goesOn checks that a run that continues from its checkpoint ends with the weights of an uninterrupted one.
func goesOn(t *testing.T, c Config, train []*data.Set) {
	t.Helper()
	n, err := Run(context.Background(), c, train, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Dir = t.TempDir()
	alone, err := Run(context.Background(), c, train, nil)
	if err != nil || !bytes.Equal(weights(alone), weights(n)) {
		t.Errorf("going on from a checkpoint gives other weights (%v)", err)
	}
}

const killedEnv = "GROVE_TRAIN_CHILD"

// TestKilled trains a tiny model in a child process that is killed at random moments and
// restarted until it is done. The weights are, to the bit, those of an uninterrupted run
// on another number of threads.
func TestKilled(t *testing.T) {
	train, valid, shape := tinySets(t)
	c := Config{Recipe: tinyRecipe(shape, 60), Threads: 1, SaveEvery: time.Nanosecond, Validation: valid}
	if dir := os.Getenv(killedEnv); dir != "" { // the child
		c.Dir = dir
		n, err := Run(context.Background(), c, train, nil)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "done"), weights(n), 0o666)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	alone := c
	alone.Dir = t.TempDir()
	alone.Threads = 3
	alone.SaveEvery = time.Hour
	n, err := Run(context.Background(), alone, train, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kills, starts := 0, 0
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var took time.Duration
	for ; ; starts++ {
		if starts > 200 {
			t.Fatal("the run does not end")
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), killedEnv+"="+dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		// The first kill comes early; the longer a run lasted, the later the next kill may come.
		delay := 50*time.Millisecond + time.Duration(r.Int64N(int64(300*time.Millisecond+took/4)))
		if kills >= 10 {
			delay = time.Minute
		}
		select {
		case err := <-exited:
			if err != nil {
				t.Fatalf("the child failed: %v\n%s", err, out.Bytes())
			}
		case <-time.After(delay):
			_ = cmd.Process.Kill()
			<-exited
			took = time.Since(begin)
			kills++
			continue
		}
		break
	}
	got, err := os.ReadFile(filepath.Join(dir, "done"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, weights(n)) {
		t.Errorf("after %d kills the weights differ from those of a run left alone", kills)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	t.Logf("%d kills in %d starts; left: %d files", kills, starts+1, len(left))
	a, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil || bytes.Count(a, []byte("\n")) != c.Steps {
		t.Errorf("metrics have %d lines, want one a step, %d (%v)", bytes.Count(a, []byte("\n")), c.Steps, err)
	}
}

// A tiny model learns its text and stops when told. A finished run stays finished.
func TestRunLearns(t *testing.T) {
	if cpu.Active() == cpu.Portable {
		t.Skip("takes steps enough only with the kernels")
	}
	for _, precision := range []string{"f32", "bf16"} {
		train, valid, shape := tinySets(t)
		var first, last Progress
		c := Config{Recipe: tinyRecipe(shape, 150), Dir: t.TempDir(), Threads: 1, SaveEvery: time.Hour,
			Validation: valid}
		c.Precision = precision
		c.Report = func(p Progress) {
			if first.Step == 0 {
				first = p
			}
			last = p
		}
		n, err := Run(context.Background(), c, train, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last.Step != c.Steps || first.Loss < 4 || last.Loss > 1.6 {
			t.Errorf("%s: loss %.3f at step %d, %.3f at step %d: want it to learn", precision, first.Loss, first.Step,
				last.Loss, last.Step)
		}
		if v := last.Validation["sums"]; v > 1.8 || v == 0 {
			t.Errorf("%s: validation loss %.3f", precision, v)
		}
		c.Report = func(Progress) { t.Errorf("%s: a finished run takes another step", precision) }
		again, err := Run(context.Background(), c, train, nil)
		if err != nil || !bytes.Equal(weights(again), weights(n)) {
			t.Errorf("%s: going on with a finished run: %v, or other weights", precision, err)
		}
	}
}

// A checkpoint works only with its model, data and settings. A damaged one causes an error that
// says so. A run that is told to stop saves one.
func TestCheckpointMismatch(t *testing.T) {
	train, _, shape := tinySets(t)
	dir := t.TempDir()
	c := Config{Recipe: tinyRecipe(shape, 40), Dir: dir, Threads: 1, SaveEvery: time.Hour}
	ctx, stop := context.WithCancel(context.Background())
	c.Report = func(p Progress) {
		if p.Step == 3 {
			stop()
		}
	}
	if _, err := Run(ctx, c, train, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("a run told to stop: %v", err)
	}
	c.Report = nil
	if found, _ := checkpoints(dir); len(found) != 1 || found[0] != checkpointPath(dir, 3) {
		t.Fatalf("after stopping at step 3 there is %v", found)
	}
	fails := func(what, want string, c Config, sets []*data.Set) {
		t.Helper()
		_, err := Run(context.Background(), c, sets, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v, want one that names the file and says %q", what, err, want)
		}
	}
	wide := c
	wide.Shape.FFN = 32
	fails("wider", "other flags", wide, train)
	deep := c
	deep.Shape.Layers = 3
	fails("deeper", "other flags", deep, train)
	fast := c
	fast.Optimizer.Rate *= 2
	fails("faster", "other flags", fast, train)
	lock, err := filelock.Take(filepath.Join(dir, ".lock")) // as if another command trained there
	if err != nil {
		t.Fatal(err)
	}
	fails("two at once", "one command at a time", c, train)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	path := checkpointPath(dir, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	fails("cut short", "delete the file", c, train)
}

// If a checkpoint cannot be written, the run ends with an error, and the previous checkpoint stays intact.
func TestSaveFails(t *testing.T) {
	train, _, shape := tinySets(t)
	dir := filepath.Join(t.TempDir(), "run")
	c := Config{Recipe: tinyRecipe(shape, 40), Dir: dir, Threads: 1, SaveEvery: time.Nanosecond}
	c.Report = func(p Progress) {
		if p.Step == 4 { // a folder is where the next checkpoint goes
			if err := os.MkdirAll(checkpointPath(dir, 4), 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Run(context.Background(), c, train, nil); err == nil ||
		!strings.Contains(err.Error(), checkpointPath(dir, 4)) {
		t.Fatalf("error %v, want one that names the checkpoint", err)
	}
	if err := os.Remove(checkpointPath(dir, 4)); err != nil {
		t.Fatal(err)
	}
	c.Report = nil
	goesOn(t, c, train)
}

// Early stopping ends a run whose validation loss no longer falls.
func TestPatience(t *testing.T) {
	train, valid, shape := tinySets(t)
	c := Config{Recipe: tinyRecipe(shape, 100), Dir: t.TempDir(), Threads: 1, SaveEvery: time.Hour, Validation: valid}
	c.Optimizer.Rate, c.Optimizer.MuonRate = 0, 0
	c.ValidateEvery, c.Patience = 2, 3
	last := 0
	c.Report = func(p Progress) { last = p.Step }
	if _, err := Run(context.Background(), c, train, nil); err != nil || last != 8 {
		t.Errorf("stopped after step %d (%v), want 8: the first validation is the best, and three come after it",
			last, err)
	}
}

// A student that equals its teacher has no divergence from it and no gradient.
func TestTeacherOfItself(t *testing.T) {
	train, _, shape := tinySets(t)
	c := Config{Recipe: tinyRecipe(shape, 5), Dir: t.TempDir(), Threads: 1, SaveEvery: time.Hour}
	n, err := Run(context.Background(), c, train, nil)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]int32, 33)
	train[0].Window(0, row)
	same := &Teacher{Net: n, Share: 1}
	student, err := NewNetwork(shape, n.exec.Pool(), n.Params.Type())
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range student.Params.All() {
		copy(p.Data, n.Params.All()[i].Data)
	}
	student.Pack()
	same.prepare(row[:32], 32)
	l := student.Gradient(row[:32], 32, autograd.Targets{Token: row[1:], Teacher: same.logits, Share: 1}, 1)
	if l.Sum > 1e-4 || l.Sum < -1e-4 || l.Hard < 1 {
		t.Errorf("divergence from itself %g, cross-entropy %g", l.Sum, l.Hard)
	}
	for _, p := range student.Params.All() {
		for _, g := range p.Grad {
			if g > 1e-4 || g < -1e-4 {
				t.Fatalf("%s: gradient %g towards itself", p.Name, g)
			}
		}
	}
}

// A run continues from a checkpoint only if the recipe's fingerprint is the same. It
// covers the names and the order of fields: changing these makes all runs that were
// stopped before unable to continue.
func TestFingerprintStays(t *testing.T) {
	r := tinyRecipe(Shape{Vocab: 300, Hidden: 32}, 9)
	if got := Fingerprint(&r); got != "e6e6b766a28a37ad" {
		t.Errorf("fingerprint %q", got)
	}
}
