// Spherical k-means over the rows of a head (DynaSpec §4.2): rows and centres have length one, and
// similarity is the cosine.
//
// The paper clusters the rows as they are. Then what all rows have in common counts as similarity,
// although a softmax ignores it: half of the 256 clusters of the 16384 tokens of grove's target had
// 14 tokens or fewer, and one had 954. For clusters of a given size, the mean is first subtracted
// from the rows, and their elements are weighted like those of a state by the norm before the head:
// half of the clusters of k-means then have 38 to 75 tokens, and the largest 320. For the same number
// of tokens, the best clusters cover more of the target's probability (1024 tokens in the clusters of
// the highest probability by size, of the paper's rows and of these; and the most frequent 1024):
//
//	code         0.899  0.904  0.696
//	arithmetic   0.939  0.945  0.848
//	prose        0.824  0.833  0.686

package shortlist

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// Clustering configures Cluster.
type Clustering struct {
	Clusters int
	Seed     uint64
	Rounds   int // at most; 0: 25

	// Size is the number of tokens of each cluster, made by halving (halves.go) centred and weighted
	// rows; Clusters and Rounds are then ignored. 0: the paper's spherical k-means of unchanged rows.
	Size int
}

// Cluster divides tokens into clusters by the direction of their rows of head. Each cluster keeps
// the given order. The result depends only on the seed, not on the pool. No cluster is empty.
// k-means does not even out the sizes, because dense regions are best kept together.
func Cluster(pool *par.Pool, head *Head, tokens []int32, o Clustering) ([][]int32, error) {
	if o.Size > 0 {
		o.Clusters = (len(tokens) + o.Size - 1) / o.Size
	}
	if o.Clusters < 1 || o.Clusters > len(tokens) {
		return nil, fmt.Errorf("shortlist: %d clusters of %d tokens: want 1 or more, and no more than tokens",
			o.Clusters, len(tokens))
	}
	o.Rounds = cmp.Or(o.Rounds, 25)
	k := &kMeans{pool: pool, x: nn.NewMat(len(tokens), head.W.In()), centers: nn.NewMat(o.Clusters, head.W.In()),
		of: make([]int32, len(tokens)), alike: make([]float32, len(tokens)), size: make([]int, o.Clusters),
		products: autograd.NewProducts(pool, gemm.F32)}
	pool.Run(len(tokens), task(func(i int) { head.W.Row(k.x.Row(i), head.Row(tokens[i])) }))
	if o.Size > 0 {
		k.center(head.Norm)
	}
	pool.Run(len(tokens), task(func(i int) { normalise(k.x.Row(i)) }))
	if o.Size > 0 {
		return halves(pool, k.x, tokens, o.Size), nil
	}
	k.start(rand.New(rand.NewPCG(o.Seed, 0x6b2d6d65616e73)))
	for range o.Rounds {
		if !k.assign() {
			break
		}
		k.update()
	}
	clusters := make([][]int32, o.Clusters)
	for i, c := range k.of {
		clusters[c] = append(clusters[c], tokens[i])
	}
	return clusters, nil
}

type kMeans struct {
	pool     *par.Pool
	products *autograd.Products
	x        nn.Mat    // one row per token, of length one
	centers  nn.Mat    // one row per cluster
	of       []int32   // of each token, its cluster
	alike    []float32 // of each token, the cosine with its cluster's centre
	size     []int     // of each cluster
}

// task makes a job of a function of the task's index.
type task func(i int)

func (f task) Do(_, i int) { f(i) }

// center subtracts the mean from the rows and weights their elements by a norm's.
func (k *kMeans) center(norm *nn.Norm) {
	mean := make([]float64, k.x.Cols)
	for i := range k.x.Rows {
		for j, x := range k.x.Row(i) {
			mean[j] += float64(x)
		}
	}
	for i := range k.x.Rows {
		for j, x := range k.x.Row(i) {
			x -= float32(mean[j] / float64(k.x.Rows))
			if norm != nil {
				x *= norm.Weight[j]
			}
			k.x.Row(i)[j] = x
		}
	}
}

// normalise scales a vector to length one, unless it is zero.
func normalise(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum > 0 && !math.IsInf(sum, 0) {
		simd.Scale(v, float32(1/math.Sqrt(sum)))
	} else {
		clear(v)
	}
}

// start chooses the first centres by k-means++: each is a token, with a probability proportional to
// its squared distance from the nearest centre so far. If there are more than startTokens tokens
// per cluster, only that many are considered, taken at even intervals.
func (k *kMeans) start(r *rand.Rand) {
	n := min(k.x.Rows, startTokens*k.centers.Rows)
	from := func(i int) int { return i * k.x.Rows / n }
	far := slices.Repeat([]float32{2}, n) // squared distance from the nearest centre
	next := r.IntN(n)
	for c := range k.centers.Rows {
		center := k.centers.Row(c)
		copy(center, k.x.Row(from(next)))
		const run = 64
		k.pool.Run((n+run-1)/run, task(func(t int) {
			for i := t * run; i < min((t+1)*run, n); i++ {
				far[i] = min(far[i], 2-2*dot(center, k.x.Row(from(i))))
				if far[i] < rounding {
					far[i] = 0
				}
			}
		}))
		sum := 0.0
		for _, f := range far {
			sum += float64(f)
		}
		next = 0
		for u := r.Float64() * sum; next < n-1; next++ {
			u -= float64(far[next])
			if u < 0 {
				break
			}
		}
	}
}

const (
	startTokens = 8
	rounding    = 1e-5 // of squared distances: a smaller distance counts as zero
)

func dot(a, b []float32) float32 {
	var s [8]float32 // eight sums hide the latency of the additions
	n := len(a) &^ 7
	b = b[:len(a)]
	for i := 0; i < n; i += 8 {
		for j := range s {
			s[j] += float32(a[i+j] * b[i+j]) // rounded, so that no machine fuses the operations
		}
	}
	for i := n; i < len(a); i++ {
		s[0] += float32(a[i] * b[i])
	}
	return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))
}

// assign puts each token into the cluster whose centre is most similar to it (the first of several)
// and fills empty clusters. It reports whether anything changed.
func (k *kMeans) assign() (changed bool) {
	const block = 4096
	before := slices.Clone(k.of)
	first := k.size[0] == 0 // nothing has been assigned yet
	scores := nn.NewMat(min(block, k.x.Rows), k.centers.Rows)
	for at := 0; at < k.x.Rows; at += block {
		s := scores.Slice(0, min(block, k.x.Rows-at))
		k.products.MulT(s, k.x.Slice(at, at+s.Rows), k.centers)
		k.pool.Run(s.Rows, task(func(i int) {
			best := max(simd.ArgMax(s.Row(i)), 0)
			k.of[at+i], k.alike[at+i] = int32(best), s.Row(i)[best]
		}))
	}
	clear(k.size)
	for _, c := range k.of {
		k.size[c]++
	}
	k.fill()
	return first || !slices.Equal(before, k.of)
}

// fill gives each empty cluster the token that is least similar to its centre and not alone in its cluster.
func (k *kMeans) fill() {
	var order []int32
	for c, n := range k.size {
		if n > 0 {
			continue
		}
		if order == nil {
			for i := range k.of {
				order = append(order, int32(i))
			}
			slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(k.alike[a], k.alike[b]) })
		}
		for len(order) > 0 {
			i := order[0]
			order = order[1:]
			if k.size[k.of[i]] > 1 {
				k.size[k.of[i]]--
				k.of[i], k.alike[i] = int32(c), 1
				k.size[c]++
				break
			}
		}
	}
}

// update moves each centre to the mean direction of its tokens, summed in order.
func (k *kMeans) update() {
	members := make([][]int32, k.centers.Rows)
	for i, c := range k.of {
		members[c] = append(members[c], int32(i))
	}
	k.pool.Run(len(members), task(func(c int) {
		center := k.centers.Row(c)
		clear(center)
		for _, i := range members[c] {
			simd.Add(center, k.x.Row(int(i)))
		}
		normalise(center)
	}))
}
