package serve

import (
	"sort"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
)

// encode makes the tokens of a conversation. If truncate is set, it leaves out as few of the oldest
// turns, each from one message of the user to the next, as make it fit together with the first
// token of an answer; leftOut counts their messages.
func encode(layout *chat.Layout, list []grove.Message, options chat.Options, truncate bool,
	context int) (tokens []int32, leftOut int, err error) {
	of := func(list []grove.Message) ([]int32, error) { return encodeFitted(layout, list, options) }
	tokens, err = of(list)
	if err != nil || !truncate || len(tokens) < context {
		return tokens, 0, err
	}
	var system []grove.Message // always kept
	var begins []int           // where turns begin
	for i, m := range list {
		if isSystem(m) {
			system = append(system, m)
		} else if m.Role == "user" {
			begins = append(begins, i)
		}
	}
	at := sort.Search(len(begins), func(n int) bool {
		kept := append([]grove.Message(nil), system...)
		for _, m := range list[begins[n]:] {
			if !isSystem(m) {
				kept = append(kept, m)
			}
		}
		var shorter []int32
		if shorter, err = of(kept); err != nil || len(shorter) >= context {
			return false
		}
		tokens, leftOut = shorter, len(list)-len(kept)
		return true
	})
	if at == len(begins) { // even the last turn is too long
		tokens, err = of(list)
		return tokens, 0, err
	}
	return tokens, leftOut, nil
}
