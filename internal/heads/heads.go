package heads

import (
	"errors"
	"fmt"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"

	_ "github.com/grovellm/grove/internal/drafters/assistant" // Gemma 4's assistants
	_ "github.com/grovellm/grove/internal/drafters/eagle"     // EAGLE heads
	_ "github.com/grovellm/grove/internal/drafters/falcon"    // Falcon's
	_ "github.com/grovellm/grove/internal/drafters/jet"       // JetSpec's and DFlash's
	_ "github.com/grovellm/grove/internal/drafters/medusa"    // Medusa's
	_ "github.com/grovellm/grove/internal/drafters/mtp"       // layers for multi-token prediction
	_ "github.com/grovellm/grove/internal/drafters/peagle"    // P-EAGLE's and ParallelSpec's
	_ "github.com/grovellm/grove/internal/drafters/spark"     // DSpark's, DFlash 2's and Domino's
	_ "github.com/grovellm/grove/internal/drafters/specblock" // SpecBlock's
)

// errNone is the error for a file that is not a head.
var errNone = errors.New("it is not a draft head")

// Read opens the file of a head of any kind except routers. Its tensors' data are valid until it is closed.
func Read(h registry.Head) (*headfile.Head, error) { return headfile.Read(h, headfile.Kinds()...) }

// Check returns an error that says what is wrong if a file is not a head for the target.
func Check(h registry.Head, target model.Config) error {
	_, err := with(h, func(f *headfile.Head) (string, error) { return "", headfile.For(f.Shape, target) },
		func(r *shortlist.RouterFile) (string, error) {
			return "", r.Fits(target.Vocab, target.Hidden, target.Hidden)
		})
	return err
}

// MadeFor returns the model.Network.WeightsID of the weights that a head was made for, as recorded
// in its GGUF file; empty if it is not recorded.
func MadeFor(h registry.Head) (string, error) {
	f, err := headfile.Open(h)
	return headfile.With(h, f, err, func(f *headfile.File) (string, error) {
		if f.GGUF == nil {
			return "", nil
		}
		k := ggufkeys.Of(f.GGUF)
		return k.String(model.TargetWeightsKey, ""), k.Err()
	})
}

// Describe returns a one-line description of a head.
func Describe(h registry.Head) (string, error) {
	return with(h, func(f *headfile.Head) (string, error) { return f.Describe(), nil },
		func(r *shortlist.RouterFile) (string, error) {
			return fmt.Sprintf("router of %d clusters of %d tokens, of which drafts list %d at first, for heads %d wide",
				r.Config.Clusters, r.Vocab, r.Listed, r.Config.Hidden), nil
		})
}

// Is reports whether a file is a head of a known kind, even one that does not run.
func Is(h registry.Head) bool {
	_, err := Describe(h)
	return !errors.Is(err, errNone)
}

// with opens a file and returns the result of head for a head, or of router for a router.
func with(h registry.Head, head func(f *headfile.Head) (string, error), router func(r *shortlist.RouterFile) (string,
	error)) (string, error) {
	f, err := Read(h)
	if !errors.Is(err, headfile.ErrKind) {
		return headfile.With(h, f, err, head)
	}
	r, err := readRouter(h)
	if errors.Is(err, shortlist.ErrNoRouter) {
		return "", fmt.Errorf("%s: %w: want a %s, or a router", h.Name, errNone, headfile.Names())
	}
	text := ""
	if err == nil {
		text, err = router(r)
	}
	return text, headfile.Named(h, err)
}

func readRouter(h registry.Head) (*shortlist.RouterFile, error) {
	f, err := headfile.Open(h)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.GGUF == nil {
		return nil, shortlist.ErrNoRouter
	}
	return shortlist.ReadRouter(f.GGUF)
}
