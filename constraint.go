package grove

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/tokenizer"
)

// mostConstraints is the number of grammars that a model caches with their masks.
const mostConstraints = 16

// constraints caches the grammars of recent requests to a model.
type constraints struct {
	once  sync.Once
	vocab *grammar.Vocab

	mu    sync.Mutex
	known []knownConstraint // the last used at the end
}

type knownConstraint struct {
	key     string
	grammar func() (*grammar.Constraint, error)
}

// constraint returns what a request's output must match, or nil for no constraint.
func (m *Model) constraint(r *Request) (*grammar.Constraint, error) {
	source := grammar.Source{Grammar: r.Grammar, JSONSchema: r.JSONSchema, Regex: r.Regex, ThinkingNow: r.ReasoningOpen}
	source.Marks, source.Answer = m.marks()
	source.Thinking = r.Reasoning && source.Marks != callform.Channels
	source.NoThought = r.Reasoning && r.ReasoningBudget < 0
	field := ""
	for _, f := range []struct {
		name string
		set  bool
	}{{"Grammar", r.Grammar != ""}, {"JSONSchema", r.JSONSchema != ""}, {"Regex", r.Regex != ""}} {
		switch {
		case !f.set:
		case field != "":
			return nil, optionf(f.name, "%s is set too: set only one of them", field)
		default:
			field = f.name
		}
	}
	limited := source.Thinking && r.ReasoningBudget != 0
	if field == "" && r.Tools == nil && !limited {
		return nil, nil
	}
	if r.Tools != nil {
		switch {
		case callform.Of(r.Tools.Form) == nil:
			return nil, optionf("Tools", "Form is missing: take it from chat.Layout.CallForm")
		case r.Grammar != "":
			return nil, optionf("Grammar", "Tools is set too: Tools can be combined only with JSONSchema or Regex")
		case field == "":
			field = "Tools"
		}
		for _, tool := range r.Tools.List {
			if !callform.IsName(tool.Name) {
				return nil, optionf("Tools", "a tool is named %q: want letters, digits, _, - and .", tool.Name)
			}
			source.Tools = append(source.Tools, grammar.Tool(tool))
		}
		source.Form = callform.Of(r.Tools.Form)
		source.Must = r.Tools.Required
		source.Single = r.Tools.Single
	}
	t := m.m.Tokenizer
	if t == nil {
		return nil, errNoTokenizer
	}
	c := &m.constraints
	c.once.Do(func() { c.vocab = grammar.VocabOf(t, m.m.Config.Vocab) })
	if limited && r.ReasoningBudget < 0 && !r.ReasoningOpen {
		source.Thinking, limited = false, false
	}
	budget := r.ReasoningBudget
	return c.find(sourceKey(source, budget), func() (*grammar.Constraint, error) {
		g, err := source.Compile()
		if err != nil {
			if wrong := new(grammar.ToolError); errors.As(err, &wrong) {
				field = "Tools"
			}
			return nil, optionf(field, "%v", err)
		}
		made := &grammar.Constraint{Grammar: g, Vocab: c.vocab, Encode: func(text string) []int32 {
			return t.Encode(text, tokenizer.EncodeOptions{})
		}}
		if limited {
			if made.Closed, err = source.Closed().Compile(); err != nil {
				return nil, optionf("ReasoningBudget", "%v", err)
			}
			made.Budget = max(budget, 0)
		}
		return made, nil
	})()
}

// sourceKey identifies a source by its form's contents, not its address.
func sourceKey(s grammar.Source, budget int) string {
	form := callform.Form{}
	if s.Form != nil {
		form = *s.Form
	}
	s.Form = nil
	return fmt.Sprintf("%#v %#v %d", s, form, budget)
}

// find returns the function that makes the grammar of a key. For a cached grammar it is the one
// that made it, or that is still making it for another choice of the request.
func (c *constraints) find(key string, compile func() (*grammar.Constraint, error)) func() (*grammar.Constraint, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := knownConstraint{key, sync.OnceValues(compile)}
	at := slices.IndexFunc(c.known, func(k knownConstraint) bool { return k.key == key })
	switch {
	case at >= 0:
		k = c.known[at]
		c.known = slices.Delete(c.known, at, at+1)
	case len(c.known) == mostConstraints:
		c.known = slices.Delete(c.known, 0, 1)
	}
	c.known = append(c.known, k)
	return k.grammar
}
