// Routers in files: GGUF with its own architecture, because llama.cpp accepts no unknown tensors in
// a head's file.

package shortlist

import (
	"errors"
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

const (
	archRouter = "router"

	keyName       = "general.name"
	keyEmbed      = "router.embedding_length"
	keyHidden     = "router.feature_length"
	keyWidth      = "router.hidden_length"
	keyInput      = "router.input"      // feature (the default) or output
	keyListed     = "router.listed"     // Routing.Listed
	keyClusters   = "router.clusters"   // of each token of the vocabulary, its cluster, alwaysListed or neverListed
	keyVocabulary = "router.vocabulary" // its fingerprint
)

func init() { model.RegisterHeads(archRouter) }

// routerKeys are the keys of a router. Early files also have a fingerprint of the head that it was
// trained with.
var routerKeys = ggufkeys.Rules{
	Obeyed:  []string{"embedding_length", "feature_length", "hidden_length", "input", "listed", "clusters", "vocabulary"},
	Ignored: []string{"head"},
}

// What a router reads of a row in addition to its token.
const (
	inputFeature = "feature"
	inputOutput  = "output"
)

// Values for tokens that are in no cluster.
const (
	alwaysListed = -1
	neverListed  = -2 // the head lacks them
)

// ErrNoRouter is the error for a file that is not a router's.
var ErrNoRouter = errors.New("not a router")

// RouterFile is what a router's file says in addition to its weights.
type RouterFile struct {
	Name   string
	Config RouterConfig
	Vocab  int
	Listed int

	Vocabulary string // its fingerprint; "": unknown

	of []int32 // of each token, its cluster
}

// ReadRouter reads the shape of a router without its weights.
func ReadRouter(f *gguf.File) (*RouterFile, error) {
	wrong := func(field, format string, args ...any) error {
		return &fileerr.Error{Format: "gguf", File: f.Path, Field: "key " + fileerr.Quote(field),
			Remedy: "train the router again", Err: fmt.Errorf(format, args...)}
	}
	k := ggufkeys.Of(f)
	if a := k.String(keyArch); k.Err() == nil && a != archRouter {
		return nil, fmt.Errorf("%w: general.architecture is %q: want %s", ErrNoRouter, a, archRouter)
	}
	if err := ggufkeys.Check(f, archRouter+".", routerKeys); err != nil {
		return nil, err
	}
	r := &RouterFile{Name: k.String(keyName, ""), Vocabulary: k.String(keyVocabulary, ""), Listed: k.Int(keyListed)}
	r.Config = RouterConfig{Embed: k.Int(keyEmbed), Hidden: k.Int(keyHidden), Width: k.Int(keyWidth)}
	input := k.String(keyInput, inputFeature)
	of := k.Ints(keyClusters)
	if err := k.Err(); err != nil {
		return nil, err
	}
	if input != inputFeature && input != inputOutput {
		return nil, wrong(keyInput, "is %s: want %s or %s", fileerr.Quote(input), inputFeature, inputOutput)
	}
	r.Config.Output = input == inputOutput
	for token, c := range of {
		if c < neverListed || c >= int64(len(of)) {
			return nil, wrong(keyClusters, "token %d is in cluster %d: want %d to %d", token, c, neverListed, len(of)-1)
		}
		r.of = append(r.of, int32(c))
		r.Config.Clusters = max(r.Config.Clusters, int(c)+1)
	}
	r.Vocab = len(r.of)
	size := make([]int, r.Config.Clusters)
	for _, c := range r.of {
		if c >= 0 {
			size[c]++
		}
	}
	for c, n := range size {
		if n == 0 {
			return nil, wrong(keyClusters, "cluster %d of %d is empty", c, len(size))
		}
	}
	switch c := r.Config; {
	case c.Clusters == 0:
		return nil, wrong(keyClusters, "there are no clusters of %d tokens", r.Vocab)
	case r.Listed < 1 || r.Listed > c.Clusters:
		return nil, wrong(keyListed, "is %d: want 1 to %d clusters", r.Listed, c.Clusters)
	case c.Embed < 1 || c.Hidden < 1 || c.Width < 1 || max(c.Embed, c.Hidden, c.Width) > math.MaxInt32:
		return nil, wrong(keyWidth, "embeddings of %d, features of %d and a hidden layer of %d: want positive numbers", c.Embed, c.Hidden, c.Width)
	}
	return r, nil
}

// Load loads the router of a file that ReadRouter has read.
func (r *RouterFile) Load(f *gguf.File, pool *par.Pool) (*Routing, error) {
	w := model.NewGGUFLoader(f, archRouter)
	router, err := NewRouter(r.Config, w)
	if err != nil {
		return nil, err
	}
	for _, t := range f.Tensors {
		if !w.Used(t.Name) {
			return nil, fmt.Errorf("tensor %s has no place in a router", t.Name)
		}
	}
	routing := &Routing{Router: router, Clusters: make([][]int32, r.Config.Clusters), Listed: r.Listed}
	for token, c := range r.of {
		switch {
		case c >= 0:
			routing.Clusters[c] = append(routing.Clusters[c], int32(token))
		case c == alwaysListed:
			routing.Always = append(routing.Always, int32(token))
		}
	}
	return routing, w.Pack(pool)
}

// Fits returns an error that says what differs if the router does not fit drafters with embeddings
// and features of these widths.
func (r *RouterFile) Fits(vocab, embed, hidden int) error {
	switch {
	case r.Vocab != vocab:
		return fmt.Errorf("the router's clusters are of %d tokens, the vocabulary has %d: want a router trained with this head", r.Vocab, vocab)
	case r.Config.Embed != embed || r.Config.Hidden != hidden:
		return fmt.Errorf("the router reads embeddings of %d and features of %d, the head's are %d and %d wide: want a router trained with this head", r.Config.Embed,
			r.Config.Hidden, embed, hidden)
	}
	return nil
}

// Reads returns an error if the router's clusters have tokens of another vocabulary than the one
// that t reads. t may be nil: then its vocabulary is unknown.
func (r *RouterFile) Reads(t *tokenizer.Tokenizer) error {
	if key := Fingerprint(t); key != "" && r.Vocabulary != "" && key != r.Vocabulary {
		return fmt.Errorf("key %s is %s, and the target's vocabulary %s: want a router trained with this target",
			fileerr.Quote(keyVocabulary), r.Vocabulary, key)
	}
	return nil
}

// Write writes a router and its weights, named as for NewRouter, to a GGUF file. All fields of file
// are used except Listed.
func (r *Routing) Write(path string, file RouterFile, weights []tensor.Tensor) error {
	of := ClusterOf(r.Clusters, file.Vocab)
	for _, token := range r.Always {
		of[token] = alwaysListed
	}
	w := new(gguf.Writer)
	w.Set(keyArch, archRouter)
	w.Set(keyName, file.Name)
	w.Set(keyEmbed, uint32(file.Config.Embed))
	w.Set(keyHidden, uint32(file.Config.Hidden))
	w.Set(keyWidth, uint32(file.Config.Width))
	if file.Config.Output {
		w.Set(keyInput, inputOutput)
	}
	w.Set(keyListed, uint32(r.Listed))
	w.Set(keyVocabulary, file.Vocabulary)
	w.Set(keyClusters, of)
	for _, x := range weights {
		w.AddTensor(x)
	}
	return w.WriteFile(path)
}
