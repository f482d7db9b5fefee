package sequence_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
)

// A tap that the drafter did not list is a panic that names the remedy: the loop ends the text with it.
func TestTapThatIsNotListed(t *testing.T) {
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "list the layer there") {
			t.Errorf("a tap that is not listed: %s", p)
		}
	}()
	r := draft.Rows{Nodes: []int32{0}, Pass: &sequence.PassOf{Taps: []int{3}}}
	r.Tap(1, 0)
}
