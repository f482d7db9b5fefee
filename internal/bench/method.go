// Methods, as text: the ways of decoding that are compared with plain decoding.

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/speculate"
)

// Plain is the name of the method that all others are compared with.
const Plain = registry.Plain

// Method is a way of decoding.
type Method struct {
	Name         string // in its row
	Drafter      string // as package draft parses it; empty: plain decoding
	Budget       int    // maximum nodes of a tree; 0: the loop's default
	Accept       string // acceptance rule: speculate.Coupled, speculate.Rejection or speculate.Typical
	Uncontrolled bool   // no controller
	Prefix       string // what exists of a prompt before it is read: Cached, Resumed, or empty: nothing
	Memory       bool   // drafts also from its outputs for earlier prompts
}

// Prefixes of a prompt.
const (
	Cached  = "cached"  // the target's rows, except the last
	Resumed = "resumed" // the same, and what the drafter computed from them
)

// MethodUsage is the syntax of a method.
const MethodUsage = `plain, or a drafter with its options (dynatree:d0=5,tau-h=0.9), then settings of its own: @budget=N, @coupled,
@rejection, @typical (Medusa's rule, which changes the text: lossy), @controller, @no-controller, @paper (its method
as published: the paper's options where none are given, @rejection and @no-controller), @cached (the
target has read the prompt before, as at a prefix hit), @resumed (the drafter has read it too, as on a later turn of
a chat), @name=NAME (settings after it are added to the name). {a,b} in it stands for one method with each`

// SplitList splits a list of methods or suites at its commas, except those within {} or (), and
// those before an option (key=value) of an item: lookup:min=3,branches=2,plain is two methods.
func SplitList(list string) []string {
	var out []string
	depth, from := 0, 0
	add := func(part string) {
		key, _, option := strings.Cut(part, "=")
		last := len(out) - 1
		if option && last >= 0 && !strings.ContainsAny(key, ":@") && strings.ContainsRune(out[last], ':') &&
			!strings.ContainsRune(out[last], '@') {
			out[last] += "," + part
		} else if strings.TrimSpace(part) != "" {
			out = append(out, strings.TrimSpace(part))
		}
	}
	for i, c := range list {
		switch {
		case c == '{' || c == '(':
			depth++
		case c == '}' || c == ')':
			depth--
		case c == ',' && depth <= 0:
			add(list[from:i])
			from = i + 1
		}
	}
	add(list[from:])
	return out
}

// ParseMethods parses methods, with base's settings for those that a method does not name. It puts
// plain decoding first if the list lacks it, since the others are compared with it. No two may have
// the same name.
func ParseMethods(texts []string, base Method) ([]Method, error) {
	var methods []Method
	for _, text := range texts {
		all, err := expand(text)
		if err != nil {
			return nil, fmt.Errorf("method %q: %w", text, err)
		}
		for _, t := range all {
			m, err := ParseMethod(t, base)
			if err != nil {
				return nil, fmt.Errorf("method %q: %w", t, err)
			}
			if slices.ContainsFunc(methods, func(o Method) bool { return o.Name == m.Name }) {
				return nil, fmt.Errorf("method %q: another is named %s already: give one of them a name with @name=NAME", t, m.Name)
			}
			methods = append(methods, m)
		}
	}
	if !slices.ContainsFunc(methods, func(m Method) bool { return m.Drafter == "" }) {
		if slices.ContainsFunc(methods, func(m Method) bool { return m.Name == Plain }) {
			return nil, fmt.Errorf("a method with a drafter is named %s: that is plain decoding's name", Plain)
		}
		methods = slices.Insert(methods, 0, Method{Name: Plain})
	}
	return methods, nil
}

// ParseMethod parses one method, with base's settings for those that it does not name.
func ParseMethod(text string, base Method) (Method, error) {
	m := base
	parts := strings.Split(text, "@")
	m.Drafter = strings.TrimSpace(parts[0])
	named := m.Drafter
	settings := false
	var shown []string // settings that distinguish methods, if the name does not
	for _, setting := range parts[1:] {
		key, value, _ := strings.Cut(strings.TrimSpace(setting), "=")
		switch key {
		case speculate.Coupled, speculate.Rejection, speculate.Typical:
			m.Accept = key
		case "controller", "no-controller":
			m.Uncontrolled = key == "no-controller"
		case "paper":
			m.Drafter = registry.AsPaper(m.Drafter)
			m.Accept = speculate.Rejection
			m.Uncontrolled = true
		case Cached, Resumed:
			m.Prefix = key
		case "memory":
			m.Memory = true
		case "budget":
			n, err := strconv.Atoi(value)
			if err != nil || n < 2 {
				return m, fmt.Errorf("@budget=%s: want a number of nodes, 2 or more", value)
			}
			m.Budget = n
		case "name":
			m.Name = strings.TrimSpace(value)
			if m.Name == "" {
				return m, fmt.Errorf("@name= is empty: want a name")
			}
			shown = nil
			continue
		default:
			return m, fmt.Errorf("there is no setting @%s: want @budget=N, @coupled, @rejection, @typical, @controller, "+
				"@no-controller, @paper, @cached, @resumed, @memory or @name=NAME", setting)
		}
		shown, settings = append(shown, "@"+strings.TrimSpace(setting)), true
	}
	m.Name = cmp.Or(m.Name, named) + strings.Join(shown, "")
	switch m.Drafter {
	case "":
		return m, fmt.Errorf("no drafter: want %s", MethodUsage)
	case Plain:
		if settings {
			return m, fmt.Errorf("plain decoding has no settings")
		}
		return Method{Name: m.Name}, nil
	}
	return m, nil
}

// Cross returns methods once with each setting ("budget=64"), except plain decoding and methods
// that already have a setting of the kind, which begins with one of kinds.
func Cross(texts, settings []string, kinds ...string) (out []string) {
	for _, t := range texts {
		has := func(kind string) bool { return strings.Contains(t, "@"+kind) }
		if t == Plain || slices.ContainsFunc(kinds, has) {
			out = append(out, t)
			continue
		}
		for _, s := range settings {
			out = append(out, t+"@"+s)
		}
	}
	return out
}

// budgetLine returns the method's name without its budget: methods that differ only in budgets are drawn as one line.
func (m *MethodReport) budgetLine() string {
	if m.Budget == 0 {
		return ""
	}
	return strings.Replace(m.Name, fmt.Sprintf("@budget=%d", m.Budget), "", 1)
}

// listLine returns the drafter without the size of its shortlist: drafters that differ only in
// sizes are drawn as one line. It is empty without a shortlist.
func (m *MethodReport) listLine() string {
	name, options, modifiers := registry.Split(m.Drafter)
	line, found := []string{name}, false
	if options != "" {
		line[0] += ":" + options
	}
	for _, text := range modifiers {
		name, options, _ := strings.Cut(text, ":")
		kept := slices.DeleteFunc(strings.Split(options, ","), func(o string) bool {
			key, _, _ := strings.Cut(o, "=")
			return o == "" || strings.TrimSpace(key) == "size"
		})
		at := slices.IndexFunc(registry.AllModifiers, func(k registry.Modifier) bool { return k.Name == name })
		found = found || at >= 0 && len(registry.AllModifiers[at].Listed()) > 0 // not +text, nor a merge's parts
		if len(kept) > 0 {
			name += ":" + strings.Join(kept, ",")
		}
		line = append(line, name)
	}
	if !found {
		return ""
	}
	return strings.Join(line, "+")
}

// expand expands the braces: a{b,c}d is abd and acd.
func expand(text string) ([]string, error) {
	open := strings.IndexByte(text, '{')
	if open < 0 {
		if strings.IndexByte(text, '}') >= 0 {
			return nil, fmt.Errorf("} without {")
		}
		return []string{text}, nil
	}
	length := strings.IndexAny(text[open+1:], "{}")
	if length < 0 || text[open+1+length] == '{' {
		return nil, fmt.Errorf("{ without }")
	}
	var out []string
	for choice := range strings.SplitSeq(text[open+1:open+1+length], ",") {
		rest, err := expand(text[open+length+2:])
		if err != nil {
			return nil, err
		}
		for _, r := range rest {
			out = append(out, text[:open]+choice+r)
		}
		if len(out) > maxMethods {
			return nil, fmt.Errorf("the braces stand for more than %d methods", maxMethods)
		}
	}
	return out, nil
}

const maxMethods = 200

// String returns the method as ParseMethod parses it, except for its name.
func (m *Method) String() string {
	if m.Drafter == "" {
		return Plain
	}
	text := m.Drafter
	if m.Budget > 0 {
		text += fmt.Sprintf("@budget=%d", m.Budget)
	}
	if m.Accept != "" {
		text += "@" + m.Accept
	}
	if m.Uncontrolled {
		text += "@no-controller"
	}
	if m.Prefix != "" {
		text += "@" + m.Prefix
	}
	if m.Memory {
		text += "@memory"
	}
	return text
}

// option returns the text of an option of the drafter or of one of its modifiers.
func (m *Method) option(key string) (string, bool) {
	_, options, modifiers := registry.Split(m.Drafter)
	for _, text := range modifiers {
		_, more, _ := strings.Cut(text, ":")
		options += "," + more
	}
	for o := range strings.SplitSeq(options, ",") {
		if k, v, ok := strings.Cut(o, "="); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}
