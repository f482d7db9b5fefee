package chat

// Changes within one tag.

import (
	"fmt"
	"strconv"
	"strings"
)

// checkNesting bounds what a recursive parser has to go down into.
func checkNesting(body string) error {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '\'', '"':
			i = quoteEnd(body, i)
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("more than %d brackets within each other", maxNesting)
			}
		case ')', ']', '}':
			depth--
		}
	}
	if n := strings.Count(body, "not ") + strings.Count(body, " else ") + strings.Count(body, "-"); n > 10*maxNesting {
		return fmt.Errorf("an expression of %d operators", n)
	}
	return nil
}

// apartBraces puts a space between two closing braces, which the engine would take for the end.
func apartBraces(body string) string {
	if !strings.Contains(body, "}}") {
		return body
	}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if c := body[i]; c == '\'' || c == '"' {
			end := min(quoteEnd(body, i), len(body)-1)
			b.WriteString(body[i : end+1])
			i = end
			continue
		}
		b.WriteByte(body[i])
		if strings.HasPrefix(body[i:], "}}") {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// rewriteStrings replaces Python's escapes that the engine does not know by what they stand for.
func rewriteStrings(body string) string {
	if !strings.Contains(body, `\`) {
		return body
	}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\'' && body[i] != '"' {
			b.WriteByte(body[i])
			continue
		}
		end := quoteEnd(body, i)
		b.WriteByte(body[i])
		for i++; i < end; i++ {
			if body[i] == '\\' && i+1 < end && !strings.ContainsRune(`nt\'"`, rune(body[i+1])) {
				if r, _, rest, err := strconv.UnquoteChar(body[i:end], 0); err == nil {
					b.WriteRune(r)
					i = end - len(rest) - 1
					continue
				}
			}
			b.WriteByte(body[i])
			if body[i] == '\\' && i+1 < end {
				i++
				b.WriteByte(body[i])
			}
		}
		if end < len(body) {
			b.WriteByte(body[end])
		}
	}
	return b.String()
}

// rewriteTojson turns x | tojson(…) into a call of our function where x is a variable with fields and
// indices, or a bracket. Other operands keep the engine's filter, which differs where it indents.
func rewriteTojson(body string) string {
	if len(body) > maxTag {
		return body // looking back for operands is quadratic
	}
	for from := 0; ; {
		k := strings.Index(body[from:], "tojson")
		if k < 0 {
			return body
		}
		k += from
		from = k + len("tojson")
		if from < len(body) && identByte(body[from]) || insideString(body, k) {
			continue
		}
		pipe := strings.TrimRight(body[:k], " \n\t")
		if !strings.HasSuffix(pipe, "|") {
			continue
		}
		end := len(strings.TrimRight(pipe[:len(pipe)-1], " \n\t"))
		start := operandStart(body, end)
		if start == end {
			continue
		}
		call, rest := nameTojson+"("+body[start:end], body[from:]
		if strings.HasPrefix(rest, "(") {
			if rest = strings.TrimLeft(rest[1:], " \n\t"); !strings.HasPrefix(rest, ")") {
				call += ", "
			}
		} else {
			rest = ")" + rest
		}
		body = body[:start] + call + rest
		from = start + len(call)
	}
}

// rewriteTimes turns products into calls of our function, which bounds what text times a number gives.
func rewriteTimes(body string) (string, error) {
	for from := 0; ; {
		k := strings.IndexByte(body[from:], '*')
		if k < 0 {
			return body, nil
		}
		k += from
		from = k + 1
		if strings.HasPrefix(body[from:], "*") { // a power
			from++
			continue
		}
		if insideString(body, k) {
			continue
		}
		end := len(strings.TrimRight(body[:k], " \n\t"))
		start := operandStart(body, end)
		right := k + 1 + len(body[k+1:]) - len(strings.TrimLeft(body[k+1:], " \n\t"))
		stop := operandEnd(body, right)
		before := strings.TrimRight(body[:start], " \n\t")
		if len(body) > maxTag || start == end || stop == right || strings.HasSuffix(before, "/") || strings.HasSuffix(before, "%") ||
			strings.HasPrefix(strings.TrimLeft(body[stop:], " \n\t"), "|") || strings.HasPrefix(strings.TrimLeft(body[stop:], " \n\t"), "**") {
			return "", fmt.Errorf("a product of more than variables, numbers, texts and brackets: %q; put its factors in brackets", strings.TrimSpace(body))
		}
		call := nameTimes + "(" + body[start:end] + ", " + body[right:stop] + ")"
		body = body[:start] + call + body[stop:]
		from = start + len(call)
	}
}

// setOne splits set a, b = x, y into sets of one variable each. Other sets stay as they are.
func setOne(body string) []string {
	names, value, ok := strings.Cut(body, "=")
	names = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(names), "set"))
	if !ok || !strings.Contains(names, ",") || strings.ContainsAny(names, "'\"([{") {
		return []string{body}
	}
	if topLevelComma(value) {
		value = "[" + value + "]"
	}
	list := []string{"set " + namePair + " = " + value}
	for i, name := range strings.Split(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			list = append(list, fmt.Sprintf("set %s = %s[%d]", name, namePair, i))
		}
	}
	return list
}
