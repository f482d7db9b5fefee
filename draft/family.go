// Drafters by name.

package draft

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/tokenizer"
)

// Target is the model that a drafter drafts for.
type Target struct {
	Vocab   int // tokens of the vocabulary
	Context int // most tokens of a text
	Layers  int // blocks: Drafter.Taps may list 0 to Layers
	Hidden  int // numbers of a tap

	Tokenizer *tokenizer.Tokenizer // nil where the model has none
}

// Family is a kind of drafter.
type Family struct {
	Name string // of letters, digits and -: what Request.Drafter of package grove begins with
	Help string // one line: what it drafts, and with what

	// Options is a pointer to a struct with the family's options at their defaults, for lists; nil
	// where it has none. See Parse for its tags.
	Options any

	// New makes a drafter, which outlives a request and drafts for many. options is what follows
	// "Name:" in the request, and empty where nothing does; Parse reads a list of key=value. Nil, in
	// the list of Families, for grove's own.
	New func(options string, target Target) (Drafter, error)
}

var (
	familiesMu sync.RWMutex
	families   []Family // by name
)

// Register adds a family; packages do so in init. It panics on a second family of one name, a
// programmer's mistake. Names of grove's own drafters (docs/drafters.md) are taken.
func Register(f Family) {
	familiesMu.Lock()
	defer familiesMu.Unlock()
	at, found := slices.BinarySearchFunc(families, f.Name, func(f Family, name string) int {
		return strings.Compare(f.Name, name)
	})
	if found {
		panic(fmt.Sprintf("draft: two families are named %q", f.Name))
	}
	families = slices.Insert(families, at, f)
}

// Families lists the families by name, grove's own among them.
func Families() []Family {
	familiesMu.RLock()
	defer familiesMu.RUnlock()
	return slices.Clone(families)
}

// Parse reads "key=value,key=value" into the struct that into points at; a key that is absent
// leaves its field alone. Fields of type int, float32, float64, bool and string take part if they
// have a tag `draft:"key"`; so do those of embedded structs. A tag `help:"..."` describes a field.
// A number has to be within the bounds that its help gives: a help with "(1 to 16)" wants 1 to 16.
func Parse(text string, into any) error {
	if err := option.Parse(text, into); err != nil {
		return err
	}
	return option.Check(into)
}
