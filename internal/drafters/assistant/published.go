package assistant

import (
	"fmt"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	if t.Arch != target {
		return nil
	}
	all := Config{Config: t.Borrowing(4, 256, 2048), Backbone: t.Hidden}
	size := 128
	for t.Vocab%size != 0 {
		size /= 2
	}
	ordered := all
	ordered.Centroids = t.Vocab / size
	ordered.Chosen = min(32, ordered.Centroids)
	return []headfile.Published{
		{Drafter: arch, About: "4 layers 256 wide, all tokens", Shape: &all},
		{Drafter: arch, Shape: &ordered,
			About: fmt.Sprintf("4 layers 256 wide, %d of %d clusters of tokens", ordered.Chosen, ordered.Centroids)},
	}
}
