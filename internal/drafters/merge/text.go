// The text form of a merged drafter.

package merge

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
)

// open reads the text after "merge:" and opens the parts.
func open(text string, _ registry.Modifiers, target registry.Target) (draft.Drafter, error) {
	options, texts, err := split(text)
	if err != nil {
		return nil, err
	}
	o := Default()
	if err := option.Parse(options, &o); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	var parts []Part
	for i, text := range texts {
		if name, _, _ := strings.Cut(text, ":"); name == "merge" {
			return nil, fmt.Errorf("merge: part %d, %s, is a merge itself: list its parts in this one", i+1, text)
		}
		d, err := registry.New(text, target)
		if err != nil {
			return nil, fmt.Errorf("merge: part %d: %w", i+1, err)
		}
		parts = append(parts, Part{text, d})
	}
	return New(o, target.Vocab, parts...)
}

// Adding returns the text of a drafter that adds a part to another drafter. If the other one is of the
// part's family or has a part that is, it is returned as it is. Otherwise the result is a merge: the
// other's with one more part if that is a merge already.
func Adding(part, drafter string) (string, error) {
	family, _, _ := registry.Split(part)
	name, _, _ := registry.Split(drafter)
	if name == family {
		return drafter, nil
	}
	if name != "merge" {
		return "merge:mode=" + Spliced + "," + bracketed(part) + "+" + bracketed(drafter), nil
	}
	_, text, _ := strings.Cut(drafter, ":")
	options, parts, err := split(text)
	if err != nil {
		return "", err
	}
	for _, p := range parts {
		if name, _, _ := registry.Split(p); name == family {
			return drafter, nil
		}
	}
	return "merge:" + options + bracketed(part) + "+" + text[len(options):], nil
}

// bracketed returns a drafter's text as a part.
func bracketed(drafter string) string {
	if strings.Contains(drafter, "+") {
		return "(" + drafter + ")"
	}
	return drafter
}

// split splits the text of a merge:
//
//	merge   = { option "," } part { "+" part }
//	option  = key "=" value, both without "," "+" ":" "("
//	part    = drafter | "(" drafter ")"
//	drafter = name [ ":" its options ], without "+" unless in round brackets
//
// So the options come before the first part, and a part extends to the next + whatever it contains:
// its own options are separated by commas too, and a path in them may contain nearly anything.
func split(text string) (options string, parts []string, err error) {
	rest := text
	for {
		end := strings.IndexAny(rest, ",+:(")
		item := rest
		if end >= 0 {
			item = rest[:end]
		}
		if !strings.Contains(item, "=") {
			break
		}
		if end < 0 || rest[end] != ',' {
			return "", nil, fmt.Errorf("merge: after the option %s: want a comma and the parts, as in merge:mode=%s,lookup+best-first", item, Spliced)
		}
		options, rest = options+rest[:end+1], rest[end+1:]
	}
	for more := true; more; {
		n := len(parts) + 1
		part := ""
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "(") {
			end := closing(rest)
			if end < 0 {
				return "", nil, fmt.Errorf("merge: part %d, %s: its ( has no )", n, rest)
			}
			part, rest = rest[1:end], strings.TrimSpace(rest[end+1:])
			if rest != "" && rest[0] != '+' {
				return "", nil, fmt.Errorf("merge: part %d, (%s): after its ) comes %q: want a + or the end", n, part,
					rest)
			}
			more = rest != ""
			rest = strings.TrimPrefix(rest, "+")
		} else {
			part, rest, more = strings.Cut(rest, "+")
		}
		part = strings.TrimSpace(part)
		if part == "" {
			return "", nil, fmt.Errorf("merge: part %d is empty: want two drafters or more, as in merge:lookup+best-first", n)
		}
		parts = append(parts, part)
	}
	return options, parts, nil
}

// closing returns where the bracket that begins text is closed, or -1 if it is not.
func closing(text string) int {
	open := 0
	for i, c := range text {
		switch c {
		case '(':
			open++
		case ')':
			open--
			if open == 0 {
				return i
			}
		}
	}
	return -1
}
