// Drafters as they were published.

package registry

import (
	"slices"
	"strings"
)

// AsPaper returns a drafter's text with the options of its method and modifiers as they were
// published. Options in the text stay, and so do the parts of a merge.
func AsPaper(text string) string {
	name, options, modifiers := Split(text)
	for _, f := range all() {
		if f.Name != name {
			continue
		}
		if f.Parts {
			return text
		}
		options = joinOptions(options, f.PaperOptions)
	}
	text = withOptions(name, options)
	for _, m := range modifiers {
		name, options, _ := strings.Cut(m, ":")
		for i := range AllModifiers {
			if AllModifiers[i].Name == name {
				options = joinOptions(options, AllModifiers[i].paperOptions)
			}
		}
		text += "+" + withOptions(name, options)
	}
	return text
}

// joinOptions adds to options those of more whose keys are not there yet.
func joinOptions(options, more string) string {
	var keys []string
	for o := range strings.SplitSeq(options, ",") {
		key, _, _ := strings.Cut(o, "=")
		keys = append(keys, strings.TrimSpace(key))
	}
	for o := range strings.SplitSeq(more, ",") {
		key, _, _ := strings.Cut(o, "=")
		switch {
		case slices.Contains(keys, key):
		case options == "":
			options = o
		default:
			options += "," + o
		}
	}
	return options
}

func withOptions(name, options string) string {
	if options == "" {
		return name
	}
	return name + ":" + options
}
