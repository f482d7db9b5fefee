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
	Context int // most tokens of a text
	Layers  int // blocks: Drafter.Taps may list 0 to Layers
	Hidden  int // numbers of a tap

	Tokenizer *tokenizer.Tokenizer // nil where the model has none

	// New makes another drafter for this model, of grove's own or of a program, for one that wraps it:
	// text is what Request.Drafter of package grove would say, such as "lookup:min=3".
	New func(text string) (Drafter, error)
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
	// the list of Families, for grove's own: Target.New makes those.
	New func(options string, target Target) (Drafter, error)
}

var (
	familiesMu sync.RWMutex
	families   []Family // by name
)

// Register adds a family; packages do so in init. It panics on a name that no request could have, and on
// a second family of one name: programmers' mistakes. Names of grove's own drafters (docs/drafters.md)
// are taken.
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
