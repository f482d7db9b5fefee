// Drafters by name, with options read from text.

package draft

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/grovellm/grove/internal/model"
)

// Target is what a drafter may know of the model it drafts for.
type Target struct {
	Vocab   int // tokens of the vocabulary
	Context int // most tokens of a text

	Model *model.Model // nil where the target is none of package model's

	// Draft is the draft model that goes with the target, for drafters that were not given another;
	// nil where there is none. Open opens one by path, on the target's workers; it stays open as
	// long as the target. Nil: drafters cannot open files.
	Draft *model.Model
	Open  func(path string) (*model.Model, error)

	// Heads are the files of heads that the target was opened with; a family takes the first that
	// is of its kind. Shared lasts as long as the target; nil: nothing is kept.
	Heads  []Head
	Shared *Shared

	Auto string // what the drafter "auto" stands for; empty: see Resolve

	// Adapt makes a drafter's head learn while it drafts, for the modifier +adapt; nil: heads
	// cannot learn here.
	Adapt func(Drafter) (Drafter, error)
}

// Family is a kind of drafter.
type Family struct {
	Name  string
	Help  string // one line: what it drafts, and with what
	About string // how it works, in a few sentences
	Paper string // where the method was published; empty: nowhere
	Needs string // what the target must be opened with: "a draft model", "an EAGLE-3 head"; empty: nothing
	Test  bool   // it exists for tests: lists and help texts leave it out

	// Options is a pointer to a struct with the family's options at their defaults, for help texts;
	// nil where it has none. See Parse for its tags.
	Options any

	// Modifiers are the names of those that the family takes; New gets them read.
	Modifiers []string

	// Parts says that what follows "name:" are drafters, each with its own modifiers: all of it is
	// passed to New as options.
	Parts bool

	// Auto is the text of the drafter that Auto may choose, and Rank its place among the families'
	// choices, the least first; empty: it is never chosen.
	Auto string
	Rank int

	// New makes a drafter. options is what followed "name:", which Parse reads if it is a list of
	// key=value.
	New func(options string, m Modifiers, target Target) (Drafter, error)
}

var (
	familiesMu sync.RWMutex
	families   []Family
)

// Register adds a family; packages do so in init. It panics on a second family of one name, a
// programmer's mistake.
func Register(f Family) {
	familiesMu.Lock()
	defer familiesMu.Unlock()
	at, found := slices.BinarySearchFunc(families, f.Name, func(f Family,
		name string) int {
		return strings.Compare(f.Name, name)
	})
	if found {
		panic(fmt.Sprintf("draft: two families are named %q", f.Name))
	}
	families = slices.Insert(families, at, f)
}

// Families lists the families by name, without those for tests.
func Families() []Family {
	return slices.DeleteFunc(all(), func(f Family) bool { return f.Test })
}

// AutoFamilies lists the families that Auto may choose, the first choice first.
func AutoFamilies() []Family {
	list := slices.DeleteFunc(all(), func(f Family) bool { return f.Auto == "" })
	slices.SortStableFunc(list, func(a, b Family) int { return a.Rank - b.Rank })
	return list
}

func all() []Family {
	familiesMu.RLock()
	defer familiesMu.RUnlock()
	return slices.Clone(families)
}

// Plain is the word for plain decoding wherever a drafter is named, and Auto for the best drafter
// that a target was opened with. Neither is a family.
const (
	Plain = "plain"
	Auto  = "auto"
)

// New makes the drafter that text describes: a family's name, options after a colon, and modifiers,
// each after a plus: "eagle3:depth=5+text+freq:size=4096". "auto" is the drafter that Resolve
// names.
func New(text string, target Target) (Drafter, error) {
	resolved, err := Resolve(text, target)
	if err != nil {
		return nil, err
	}
	name, options, modifiers := Split(resolved)
	var names []string
	for _, f := range all() {
		if f.Name != name {
			continue
		}
		var m Modifiers
		var err error
		if f.Parts {
			_, options, _ = strings.Cut(resolved, ":")
		} else {
			m, err = f.modifiers(modifiers)
		}
		var d Drafter
		if err == nil {
			d, err = f.New(options, m, target)
		}
		switch {
		case err != nil || !m.Adapt:
		case target.Adapt == nil:
			err = fmt.Errorf("+%s: no head can learn here: leave it out", AdaptModifier)
		default:
			d, err = target.Adapt(d)
		}
		if err != nil {
			return nil, fmt.Errorf("drafter %q: %w", text, err)
		}
		return d, nil
	}
	for _, f := range Families() {
		names = append(names, f.Name)
	}
	hint := ""
	if slices.ContainsFunc(AllModifiers, func(m Modifier) bool { return m.Name == name }) {
		hint = " (it is a modifier: write it after a drafter's name, as in NAME+" + name + ", and in merge within round brackets)"
	}
	return nil, fmt.Errorf("drafter %q: there is no %q%s: want one of %s, or %s", text, name, hint,
		strings.Join(names, ", "), Auto)
}

// Resolve replaces the name auto in a drafter's text by the target's own choice, or else by the
// first choice of a family that can be made for the target. Modifiers stay. Other texts are
// returned as they are.
func Resolve(text string, target Target) (string, error) {
	name, options, modifiers := Split(text)
	if name != Auto {
		return text, nil
	}
	if options != "" {
		return "", fmt.Errorf("drafter %q: %s has no options: want those of the drafter that it stands for", text, Auto)
	}
	chosen := target.Auto
	if chosen == "" {
		for _, f := range AutoFamilies() {
			if _, err := New(f.Auto, target); err == nil {
				chosen = f.Auto
				break
			}
		}
	}
	if chosen == "" {
		return "", fmt.Errorf("drafter %q: no drafter can run: open the model with a head or a draft model", text)
	}
	return strings.Join(append([]string{chosen}, modifiers...), "+"), nil
}

// Parse reads "key=value,key=value" into the struct that into points at; a key that is absent
// leaves its field alone. Fields of type int, float32, float64, bool and string take part if they
// have a tag `draft:"key"`; a tag `help:"..."` describes one. So do those of embedded structs. See
// Check.
func Parse(text string, into any) error {
	options := optionsOf(reflect.ValueOf(into).Elem())
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		field, keys := reflect.Value{}, []string(nil)
		for _, o := range options {
			keys = append(keys, o.key)
			if o.key == key {
				field = o.value
			}
		}
		if !field.IsValid() {
			return fmt.Errorf("option %q: there is no such option: want some of %s", key, strings.Join(keys, ", "))
		}
		if !ok {
			return fmt.Errorf("option %q has no value: write %s=VALUE", key, key)
		}
		example := field.Interface()
		if err := set(field, value); err != nil {
			return fmt.Errorf("option %s=%q: want a value like %v", key, value, example)
		}
	}
	return nil
}

// Check returns an error where a number of options, a pointer to a struct as Parse fills it, is
// outside the bounds that its help gives: a help with "(1 to 16)" wants 1 to 16.
func Check(options any) error {
	for _, o := range optionsOf(reflect.ValueOf(options).Elem()) {
		bounds := boundsInHelp.FindStringSubmatch(o.help)
		if bounds == nil {
			continue
		}
		least, _ := strconv.ParseFloat(bounds[1], 64)
		most, _ := strconv.ParseFloat(bounds[2], 64)
		v := o.value
		if v.CanInt() {
			v = v.Convert(reflect.TypeFor[float64]())
		}
		if v.CanFloat() && !(v.Float() >= least && v.Float() <= most) {
			return fmt.Errorf("%s is %v: want %s to %s", o.key, o.value, bounds[1], bounds[2])
		}
	}
	return nil
}

var boundsInHelp = regexp.MustCompile(`\((\d+) to (\d+)\)`)

// option is a field that takes part.
type option struct {
	key, help string
	value     reflect.Value
}

func optionsOf(v reflect.Value) (list []option) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			list = append(list, optionsOf(v.Field(i))...)
		} else if key := f.Tag.Get("draft"); key != "" {
			list = append(list, option{key, f.Tag.Get("help"), v.Field(i)})
		}
	}
	return list
}

func set(field reflect.Value, value string) error {
	switch field.Kind() {
	case reflect.Int:
		n, err := strconv.Atoi(value)
		field.SetInt(int64(n))
		return err
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(value, 64)
		field.SetFloat(f)
		return err
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		field.SetBool(b)
		return err
	case reflect.String:
		field.SetString(value)
		return nil
	}
	return fmt.Errorf("draft: an option of type %s", field.Type())
}

// Option is an option of a family, for help texts.
type Option struct {
	Key     string
	Default any
	Help    string
}

// Listed returns the family's options with their defaults.
func (f *Family) Listed() []Option { return listed(f.Options) }

func listed(options any) (list []Option) {
	if options == nil {
		return nil
	}
	for _, o := range optionsOf(reflect.ValueOf(options).Elem()) {
		list = append(list, Option{o.key, o.value.Interface(), o.help})
	}
	return list
}
