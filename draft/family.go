// Drafters by name.

package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/tokenizer"
)

// Target is the model that a drafter drafts for.
type Target struct {
	Vocab   int // tokens of the vocabulary
	Context int // maximum tokens of a text
	Layers  int // blocks: Drafter.Taps may list 0 to Layers
	Hidden  int // numbers of a tap

	Tokenizer *tokenizer.Tokenizer // nil where the model has none

	// New makes another drafter for this model, grove's own or a program's, for a drafter that wraps
	// it: text is written as in Request.Drafter of package grove, such as "lookup:min=3".
	New func(text string) (Drafter, error)
}

// Family is a kind of drafter.
type Family struct {
	Name string // letters, digits and -; Request.Drafter of package grove begins with it
	Help string // one line: what it drafts with, and what it drafts

	// Options is a pointer to a struct of the family's options with their defaults, for listings;
	// nil if it has none. See Parse for its tags.
	Options any

	// New makes a drafter, which drafts for many requests and outlives them. options is the text
	// after "Name:" in the request, which may be empty; Parse reads a list of key=value. In the list
	// of Families it is nil for grove's own drafters, which Target.New makes.
	New func(options string, target Target) (Drafter, error)
}

var (
	familiesMu sync.RWMutex
	families   []Family // by name
)

// Register adds a family; packages do so in init. It panics if the name is invalid or already
// registered. The names of grove's own drafters (docs/drafters.md) are reserved.
func Register(f Family) {
	if !familyName.MatchString(f.Name) || f.Name == "auto" || f.Name == "plain" {
		panic(fmt.Sprintf("draft: a family is named %q: want letters, digits and -, neither auto nor plain", f.Name))
	}
	familiesMu.Lock()
	defer familiesMu.Unlock()
	at, found := slices.BinarySearchFunc(families, f.Name, func(f Family, name string) int {
		return strings.Compare(f.Name, name)
	})
	if found {
		panic(fmt.Sprintf("draft: two families are named %q: give this one another name", f.Name))
	}
	families = slices.Insert(families, at, f)
}

var familyName = regexp.MustCompile("^[A-Za-z0-9-]+$")

// Families lists all families by name, including grove's own.
func Families() []Family {
	familiesMu.RLock()
	defer familiesMu.RUnlock()
	return slices.Clone(families)
}

// Parse reads "key=value,key=value" into the struct that into points at; an absent key leaves its
// field unchanged. It sets fields of type int, float32, float64, bool and string that have a tag
// `draft:"key"`; including those of embedded structs. A tag `help:"..."` describes a field. A
// number must be within the bounds that its help gives: a help with "(1 to 16)" wants 1 to 16.
func Parse(text string, into any) error {
	if err := option.Parse(text, into); err != nil {
		return err
	}
	return option.Check(into)
}
