package shortlist

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
)

// Clusters are a partition, none of them empty, the same from any pool. Once they are stable, each
// token is with the centre that it is most similar to.
func TestClusterParts(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(3)}
	defer pools[0].Close()
	defer pools[1].Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		vocab, d := rapid.IntRange(1, 250).Draw(t, "vocab"), rapid.IntRange(1, 12).Draw(t, "dimensions")
		_, w := randomHead(r, vocab, d)
		for i := range vocab { // rows that are equal or zero
			switch r.IntN(8) {
			case 0:
				clear(w.Row(i))
			case 1:
				copy(w.Row(i), w.Row(r.IntN(i+1)))
			}
		}
		head := headOf(w)
		var tokens []int32
		for _, token := range r.Perm(vocab)[:rapid.IntRange(1, vocab).Draw(t, "tokens")] {
			tokens = append(tokens, int32(token))
		}
		o := Clustering{Clusters: rapid.IntRange(1, len(tokens)).Draw(t, "clusters"),
			Seed: rapid.Uint64().Draw(t, "start"), Rounds: rapid.SampledFrom([]int{0, 1, 200}).Draw(t, "rounds")}
		clusters, err := Cluster(pools[0], head, tokens, o)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Cluster(pools[1], head, tokens, o); err != nil || !reflect.DeepEqual(clusters, again) {
			t.Fatalf("other clusters on another pool (%v)", err)
		}
		var all []int32
		for _, c := range clusters {
			if len(c) == 0 {
				t.Fatal("an empty cluster")
			}
			all = append(all, c...)
		}
		slices.Sort(all)
		if len(clusters) != o.Clusters || !slices.Equal(all, slices.Sorted(slices.Values(tokens))) {
			t.Fatalf("%d clusters of %d tokens are not a partition of %d into %d", len(clusters), len(all),
				len(tokens), o.Clusters)
		}
		if o.Rounds < 200 {
			return
		}
		centers := nn.NewMat(len(clusters), d)
		unit := func(token int32) []float32 {
			v := slices.Clone(w.Row(int(token)))
			normalise(v)
			return v
		}
		for c, members := range clusters {
			for _, token := range members {
				for i, x := range unit(token) {
					centers.Row(c)[i] += x
				}
			}
			normalise(centers.Row(c))
		}
		for c, members := range clusters {
			for _, token := range members {
				if len(members) == 1 {
					continue // one that was put there to fill it may be more similar to another
				}
				for other := range clusters {
					if own, there := dot(unit(token), centers.Row(c)), dot(unit(token),
						centers.Row(other)); there > own+1e-4 {
						t.Fatalf("token %d is like its own centre by %g, like another by %g", token, own, there)
					}
				}
			}
		}
	})
}

// headOf returns a head with the given weights.
func headOf(w nn.Mat) *Head {
	m, err := gemm.New(gemm.F32, w.Rows, w.Cols)
	if err != nil {
		panic(err)
	}
	var rows [][]float32
	for i := range w.Rows {
		rows = append(rows, w.Row(i))
	}
	padded, err := packRows(rows, w.Cols, gemm.F32)
	if err != nil {
		panic(err)
	}
	for i := range w.Rows {
		m.CopyRow(i, padded, i)
	}
	return &Head{TokenHead: &output.TokenHead{Linear: &nn.Linear{W: m}}}
}

// Clusters of one direction each are found, whatever their sizes and the lengths of their rows.
func TestClusterFindsPlanted(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		m := rapid.IntRange(1, 10).Draw(t, "clusters")
		planted := make([][]int32, m)
		var rows []float32
		d, n := 16, 0
		direction := nn.NewMat(m, d)
		for i := range direction.Data {
			direction.Data[i] = float32(r.NormFloat64())
		}
		for c := range m {
			for range 1 + r.IntN(startTokens) { // no more than the start considers
				length := float32(0.1 + 10*r.Float64())
				for i := range d {
					rows = append(rows, length*direction.Row(c)[i])
				}
				planted[c] = append(planted[c], int32(n))
				n++
			}
		}
		tokens := make([]int32, n)
		for i := range tokens {
			tokens[i] = int32(i)
		}
		clusters, err := Cluster(pool, headOf(nn.Mat{Rows: n, Cols: d, Stride: d, Data: rows}), tokens,
			Clustering{Clusters: m})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(clusters, func(a, b []int32) int { return int(a[0] - b[0]) })
		if !reflect.DeepEqual(clusters, planted) {
			t.Fatalf("clusters %v, want %v", clusters, planted)
		}
	})
}

// What all rows have in common makes no difference to a softmax, nor to clusters of a given size. A
// norm's weights act as if they were applied to the rows.
func TestClustersOfTheSoftmax(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		n, d := 1<<rapid.IntRange(0, 7).Draw(t, "tokens"), rapid.IntRange(1, 8).Draw(t, "dimensions")
		a, b := nn.NewMat(n, d), nn.NewMat(n, d)
		norm := &nn.Norm{Weight: make([]float32, d)}
		tokens := make([]int32, n)
		for j := range d {
			norm.Weight[j] = float32(1 + r.IntN(4))
			common := float32(r.IntN(100))
			for i := range n {
				tokens[i] = int32(i)
				x := float32(r.IntN(17) - 8) // small whole numbers: nothing is rounded
				a.Row(i)[j], b.Row(i)[j] = x, (x+common)*norm.Weight[j]
			}
		}
		o := Clustering{Size: rapid.IntRange(1, n).Draw(t, "size")}
		want, err := Cluster(pool, headOf(b), tokens, o)
		if err != nil {
			t.Fatal(err)
		}
		normed := headOf(a)
		normed.Norm = norm
		got, err := Cluster(pool, normed, tokens, o)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("clusters %v (%v), want %v", got, err, want)
		}
	})
}

// Clusters of a given size are a partition in which all clusters but one have that size, the same
// from any pool. Tokens of two directions that fill two clusters are separated.
func TestClustersOfASize(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(3)}
	defer pools[0].Close()
	defer pools[1].Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		size := rapid.IntRange(1, 20).Draw(t, "size")
		groups := rapid.IntRange(1, 9).Draw(t, "groups")
		d := 12
		planted := rapid.Bool().Draw(t, "planted")
		if planted {
			groups = min(groups, 2)
		}
		n := size * groups
		if !planted {
			n -= r.IntN(size)
		}
		w := nn.NewMat(n, d)
		of := make([]int, n) // the direction of each token
		for i, at := range r.Perm(n) {
			of[at] = i / size
			w.Row(at)[of[at]] = 1 + r.Float32()
			if !planted {
				for k := range d {
					w.Row(at)[k] = float32(r.IntN(3) - 1)
				}
			}
		}
		tokens := make([]int32, n)
		for i, token := range r.Perm(n) {
			tokens[i] = int32(token)
		}
		head := headOf(w)
		o := Clustering{Size: size}
		clusters, err := Cluster(pools[0], head, tokens, o)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Cluster(pools[1], head, tokens, o); err != nil || !reflect.DeepEqual(clusters, again) {
			t.Fatalf("other clusters on another pool (%v)", err)
		}
		var all []int32
		for i, c := range clusters {
			if len(c) != size && (i < len(clusters)-1 || len(c) != n-size*(groups-1)) {
				t.Fatalf("cluster %d of %d has %d tokens, want %d", i, len(clusters), len(c), size)
			}
			all = append(all, c...)
			for _, token := range c {
				if planted && of[token] != of[c[0]] {
					t.Fatalf("cluster %d has tokens of both directions: %v", i, c)
				}
			}
		}
		slices.Sort(all)
		if !slices.Equal(all, slices.Sorted(slices.Values(tokens))) {
			t.Fatalf("%d tokens in clusters, want %d", len(all), n)
		}
	})
}

func TestClusterRefuses(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	head, _ := randomHead(rand.New(rand.NewPCG(1, 1)), 3, 2)
	for _, m := range []int{0, 4} {
		if _, err := Cluster(pool, head, []int32{0, 1, 2}, Clustering{Clusters: m}); err == nil {
			t.Errorf("%d clusters of 3 tokens: no error", m)
		}
	}
}
