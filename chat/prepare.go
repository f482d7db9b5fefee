package chat

import (
	"fmt"
	"strings"
)

// Names that prepare puts into a template; no template has them.
const (
	nameTojson = "grove_tojson"
	nameTurn   = "grove_turn"
	nameEnter  = "grove_enter"
	nameLeave  = "grove_leave"
)

// A tag is one {{ }}, {% %} or {# #} of a template, from start to end.
type tag struct {
	start, end int
	body       string // without the delimiters and their trim marks
	open, shut string // the delimiters with their trim marks
}

// nextTag finds the first tag at or after i. Delimiters within quoted strings do not count.
func nextTag(s string, i int) (t tag, ok bool, err error) {
	for ; i+1 < len(s); i++ {
		if s[i] != '{' || s[i+1] != '{' && s[i+1] != '%' && s[i+1] != '#' {
			continue
		}
		closer := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[s[i+1]]
		from := i + 2
		if from < len(s) && (s[from] == '-' || s[from] == '+') {
			from++
		}
		for k := from; k < len(s); k++ {
			switch c := s[k]; {
			case s[i+1] != '#' && (c == '\'' || c == '"'):
				for k++; k < len(s) && s[k] != c; k++ {
					if s[k] == '\\' {
						k++
					}
				}
			case strings.HasPrefix(s[k:], closer):
				to := k
				if to > from && (s[to-1] == '-' || s[to-1] == '+') && s[i+1] != '#' {
					to--
				}
				return tag{i, k + 2, s[from:to], s[i:from], s[to : k+2]}, true, nil
			}
		}
		return t, false, fmt.Errorf("line %d: %q is not closed", 1+strings.Count(s[:i], "\n"), s[i:i+2])
	}
	return t, false, nil
}

// prepare checks the source's size and nesting, and rewrites it as program.go tells.
func prepare(source string) (string, error) {
	if len(source) > maxSource {
		return "", fmt.Errorf("%d bytes long, more than the %d that grove takes", len(source), maxSource)
	}
	var b strings.Builder
	done, blocks := 0, 0
	for {
		t, ok, err := nextTag(source, done)
		if err != nil {
			return "", err
		}
		if !ok {
			b.WriteString(source[done:])
			return b.String(), nil
		}
		b.WriteString(source[done:t.start])
		done = t.end
		if t.open[1] == '#' {
			b.WriteString(source[t.start:t.end])
			continue
		}
		if err := checkNesting(t.body); err != nil {
			return "", fmt.Errorf("line %d: %w", 1+strings.Count(source[:t.start], "\n"), err)
		}
		word := ""
		if t.open[1] == '%' {
			word, _, _ = strings.Cut(strings.TrimSpace(t.body), " ")
		}
		switch word {
		case "raw":
			end := strings.Index(source[done:], "endraw")
			if end < 0 {
				return "", fmt.Errorf("line %d: raw without endraw", 1+strings.Count(source[:t.start], "\n"))
			}
			b.WriteString(source[t.start : done+end])
			done += end
			continue
		case "if", "for", "macro", "call", "filter":
			blocks++
		case "endif", "endfor", "endmacro", "endcall", "endfilter":
			blocks--
		}
		if blocks > maxNesting {
			return "", fmt.Errorf("line %d: more than %d blocks within each other", 1+strings.Count(source[:t.start], "\n"), maxNesting)
		}
		if word == "endmacro" {
			b.WriteString(t.open + " set _ = " + nameLeave + "() %}")
		}
		b.WriteString(t.open + rewriteTojson(t.body) + t.shut)
		switch word {
		case "for":
			b.WriteString("{% set _ = " + nameTurn + "() " + t.shut)
		case "macro":
			b.WriteString("{% set _ = " + nameEnter + "() " + t.shut)
		}
	}
}

// checkNesting bounds what a recursive parser has to go down into.
func checkNesting(body string) error {
	depth, words := 0, 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '\'', '"':
			for i++; i < len(body) && body[i] != c; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("more than %d brackets within each other", maxNesting)
			}
		case ')', ']', '}':
			depth--
		}
	}
	words = max(strings.Count(body, "not "), strings.Count(body, " else "), strings.Count(body, "-"))
	if words > 10*maxNesting {
		return fmt.Errorf("an expression of more than %d operators", 10*maxNesting)
	}
	return nil
}

// rewriteTojson turns x|tojson(…) into a call of our function where x is a plain variable with fields
// and indices; other operands keep the engine's filter, which differs only where it indents.
func rewriteTojson(body string) string {
	from := 0
	for {
		k := strings.Index(body[from:], "tojson")
		if k < 0 {
			return body
		}
		k += from
		from = k + len("tojson")
		if from < len(body) && identByte(body[from]) {
			continue
		}
		pipe := strings.TrimRight(body[:k], " \n\t")
		if !strings.HasSuffix(pipe, "|") {
			continue
		}
		end := len(strings.TrimRight(pipe[:len(pipe)-1], " \n\t"))
		start := operandStart(body, end)
		if start == end || strings.Count(body[:start], "'")%2 == 1 || strings.Count(body[:start], `"`)%2 == 1 {
			continue
		}
		call, rest := nameTojson+"("+body[start:end], body[from:]
		if strings.HasPrefix(rest, "(") {
			if rest = strings.TrimLeft(rest[1:], " "); !strings.HasPrefix(rest, ")") {
				call += ", "
			}
		} else {
			rest = ")" + rest
		}
		body = body[:start] + call + rest
		from = start + len(call)
	}
}

func identByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// operandStart finds where a variable with fields and indices that ends at end begins; end itself
// where what stands there is something else.
func operandStart(s string, end int) int {
	i := end
	for i > 0 {
		switch c := s[i-1]; {
		case identByte(c) || c == '.':
			i--
			continue
		case c == ']':
			open := strings.LastIndexByte(s[:i], '[')
			if open <= 0 || strings.ContainsAny(s[open+1:i-1], "]()|") || !identByte(s[open-1]) && s[open-1] != ']' {
				return end
			}
			i = open
			continue
		}
		break
	}
	before := strings.TrimRight(s[:i], " \n\t")
	if i == end || s[i] == '.' || '0' <= s[i] && s[i] <= '9' || before != "" && strings.ContainsAny(before[len(before)-1:], "|.)]}'\"") {
		return end
	}
	return i
}
