// How a Reader reads arguments whose lists and objects are elements.

package callform

import (
	"slices"
	"strconv"
	"strings"
)

// readElement takes the value of an argument, of which elements may be a part, up to its end.
func (r *Reader) readElement(done bool) bool {
	tag := r.form.Arguments.Nested.Tag
	n, ok := elementLength(r.held, tag)
	if !ok {
		return false
	}
	_, rest, ended := strings.Cut(r.held[n+len(tag):], ">")
	if !ended || r.follows(rest, done) == matchPart {
		return false
	}
	r.put(r.element(r.key, r.held[:n]))
	r.close(rest)
	return true
}

// elementLength is the length of the content of an element, which a text begins with, up to the tag that ends it.
func elementLength(text, tag string) (n int, ok bool) {
	for depth := 0; ; n += len(tag) + 1 {
		at := strings.Index(text[n:], tag+"<")
		if at < 0 || len(text) == n+at+len(tag)+1 {
			return 0, false
		}
		n += at
		switch ends := text[n+len(tag)+1] == '/'; {
		case !ends:
			depth++
		case depth == 0:
			return n, true
		default:
			depth--
		}
	}
}

// element returns the content of an element as JSON. path is how Kinds names it.
func (r *Reader) element(path, content string) string {
	tag := r.form.Arguments.Nested.Tag
	text, others := r.kinds(r.name, path)
	may := func(begin string) bool { return strings.Contains(others, begin) }
	var names, values []string
	for rest := content; ; {
		begun, ok := strings.CutPrefix(strings.TrimLeft(rest, space), tag+"<")
		name, inner, named := strings.Cut(begun, ">")
		n, ended := elementLength(inner, tag)
		if !ok || !named || !ended {
			break
		}
		_, rest, _ = strings.Cut(inner[n+len(tag):], ">")
		names, values = append(names, name), append(values, inner[:n])
	}
	isList := !slices.ContainsFunc(names, func(name string) bool { return name != "item" }) && (may("[") || !may("{"))
	switch {
	case len(names) > 0:
	case content == "" && !text && may("["):
		return "[]"
	case content == "" && !text && may("{"):
		return "{}"
	case !text || LooksOther(content, others, JSON.Words):
		if value, ok := readLiteral(content, &r.form.Arguments); ok {
			return value
		}
		fallthrough
	default:
		return quoteJSON(content)
	}
	for i, name := range names {
		if isList {
			values[i] = r.element(path+Within+strconv.Itoa(i), values[i])
		} else {
			values[i] = quoteJSON(name) + ": " + r.element(path+Within+name, values[i])
		}
	}
	if isList {
		return "[" + strings.Join(values, ", ") + "]"
	}
	return "{" + strings.Join(values, ", ") + "}"
}
