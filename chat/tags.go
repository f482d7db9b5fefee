package chat

// Rewriting one tag: its keyword, its names and its expressions.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// block rewrites a block: what stands between {% and %}.
func (p *preparer) block(word, body string) error {
	rest, err := lex(rewriteStrings(body[strings.Index(body, word)+len(word):]))
	if err != nil {
		return err
	}
	r := &rewriter{tokens: rest}
	write := func(format string, args ...any) { p.out.WriteString("{% " + fmt.Sprintf(format, args...) + " %}") }
	call := func(name string) { write("set _ = %s()", name) }
	switch word {
	case "if", "for", "macro", "call", "filter":
		p.blocks = append(p.blocks, "end"+word)
	case "endif", "endfor", "endmacro", "endcall", "endfilter":
		if len(p.blocks) > 0 {
			p.blocks = p.blocks[:len(p.blocks)-1]
		}
	}
	if len(p.blocks) > maxNesting {
		return fmt.Errorf("more than %d blocks within each other", maxNesting)
	}
	switch word {
	case "if", "elif":
		value, err := r.whole(nameValue, len(body))
		if err != nil {
			return err
		}
		write("%s %s", word, value)
	case "for":
		head, err := r.loop(len(body))
		if err != nil {
			return err
		}
		write("for %s", head)
		call(nameTurn)
		return nil
	case "set":
		sets, err := r.set(len(body))
		if err != nil {
			return err
		}
		for _, one := range sets {
			write("set %s", one)
		}
		return nil
	case "macro":
		head, err := r.macro()
		if err != nil {
			return err
		}
		write("macro %s", head)
		call(nameEnter)
		return nil
	case "call":
		head, name, err := r.call()
		if err != nil {
			return err
		}
		p.called = append(p.called, name)
		write("call%s", head)
		call(nameEnter)
		return nil
	case "endmacro", "endcall":
		call(nameLeave)
		write("%s", word)
	case "filter": // a block of text, and its filter
		name := fmt.Sprint(nameBlock, len(p.blocks))
		r.tokens = append([]token{{nameToken, name}, {signToken, "|"}}, r.tokens...)
		value, err := r.whole(nameOutput, len(body))
		if err != nil {
			return err
		}
		p.filters = append(p.filters, value)
		write("set %s", name)
		return nil
	case "endfilter":
		if len(p.filters) == 0 {
			return fmt.Errorf("endfilter without filter")
		}
		write("endset")
		p.out.WriteString("{{ " + p.filters[len(p.filters)-1] + " }}")
		p.filters = p.filters[:len(p.filters)-1]
	case "else", "endif", "endfor", "endset", "break", "continue", "generation", "endgeneration":
		write("%s", word)
	default:
		return fmt.Errorf("unknown statement %q", word)
	}
	return nil
}

// whole rewrites an expression that takes all tokens.
func (r *rewriter) whole(function string, length int) (string, error) {
	if len(r.tokens) == 0 {
		r.tokens = []token{{nameToken, "none"}}
	}
	text, err := r.sequence(asIs, false)
	if err == nil && len(r.tokens) > 0 {
		err = fmt.Errorf("%q stands at a wrong place", r.tokens[0].text)
	}
	return fmt.Sprintf("%s((%s), %d, %d)", function, text, length, r.made), err
}

// names takes names between commas, up to a sign.
func (r *rewriter) names(end string) ([]string, error) {
	var list []string
	for {
		if t := r.peek(0); t.text == end {
			return list, nil
		}
		if len(list) > 0 && !r.take(",") {
			return nil, fmt.Errorf("want names with commas between them, and %q", end)
		}
		if t := r.next(); t.kind == nameToken {
			list = append(list, t.text)
		} else if t.text != end || len(list) == 0 {
			return nil, fmt.Errorf("want names with commas between them, and %q", end)
		}
	}
}

// loop rewrites what follows for: names in list, with a condition or without.
func (r *rewriter) loop(length int) (string, error) {
	bracket := r.take("(")
	names, err := r.names(map[bool]string{true: ")", false: "in"}[bracket])
	if err != nil {
		return "", err
	}
	if bracket && !r.take(")") || !r.take("in") {
		return "", fmt.Errorf("for without in")
	}
	list, rest := r.tokens, []token(nil)
	depth := 0
	for i, t := range r.tokens { // the engine takes the first if for that of the loop
		switch {
		case t.kind == signToken && strings.Contains("([{", t.text):
			depth++
		case t.kind == signToken && strings.Contains(")]}", t.text):
			depth--
		}
		if depth == 0 && t.kind == nameToken && (t.text == "if" || t.text == "recursive") {
			list, rest = r.tokens[:i:i], r.tokens[i:]
			break
		}
	}
	r.tokens = list
	function := nameLoop
	if len(rest) > 0 {
		function = nameSelect
	}
	text, err := r.whole(function, length)
	text = strings.Join(names, ", ") + " in " + text
	if err != nil || len(rest) == 0 {
		return text, err
	}
	if r.tokens = rest; !r.take("if") {
		return "", fmt.Errorf("a recursive loop is not supported")
	}
	condition, err := r.whole(nameValue, length)
	return text + " if " + condition, err
}

// set rewrites what follows set, into a set of each name.
func (r *rewriter) set(length int) ([]string, error) {
	name := r.next()
	if name.kind != nameToken {
		return nil, fmt.Errorf("set without a name")
	}
	if len(r.tokens) == 0 { // the text up to endset
		return []string{name.text}, nil
	}
	target := name.text
	if r.take(".") {
		field := r.next()
		if field.kind != nameToken {
			return nil, fmt.Errorf("set without the name of a field")
		}
		target += "." + field.text
	}
	names := []string{target}
	if r.take(",") {
		more, err := r.names("=")
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	if !r.take("=") {
		return nil, fmt.Errorf("set without =")
	}
	if slices.Contains(r.commas(), 0) { // a list without its brackets
		r.tokens = append(append([]token{{signToken, "["}}, r.tokens...), token{signToken, "]"})
	}
	value, err := r.whole(nameValue, length)
	if err != nil || len(names) == 1 {
		return []string{names[0] + " = " + value}, err
	}
	sets := []string{namePair + " = " + value}
	for i, name := range names {
		sets = append(sets, fmt.Sprintf("%s = %s[%d]", name, namePair, i))
	}
	return sets, nil
}

// commas returns how deep in brackets each comma stands.
func (r *rewriter) commas() (depths []int) {
	depth := 0
	for _, t := range r.tokens {
		switch {
		case t.kind != signToken:
		case strings.Contains("([{", t.text):
			depth++
		case strings.Contains(")]}", t.text):
			depth--
		case t.text == ",":
			depths = append(depths, depth)
		}
	}
	return depths
}

// macro rewrites what follows macro: a name and its parameters. The engine cuts parameters at every
// comma, so a default is one token, or an empty list or dictionary.
func (r *rewriter) macro() (string, error) {
	name := r.next()
	if name.kind != nameToken || !r.take("(") {
		return "", fmt.Errorf("macro without a name and parameters")
	}
	if slices.Contains(builtins, name.text) {
		return "", fmt.Errorf("a macro named %q, as a function is", name.text)
	}
	var parameters []string
	for !r.take(")") {
		if len(parameters) > 0 && !r.take(",") {
			return "", fmt.Errorf("macro %s: want parameters with commas between them", name.text)
		}
		if r.peek(0).text == ")" {
			continue
		}
		one := r.next()
		if one.kind != nameToken {
			return "", fmt.Errorf("macro %s: want parameters with commas between them", name.text)
		}
		text := one.text
		if r.take("=") {
			sign := ""
			if r.take("-") {
				sign = "-"
			}
			value := r.next()
			switch {
			case value.text == "[" && r.take("]"):
				value.text = "[]"
			case value.text == "{" && r.take("}"):
				value.text = "{} "
			case value.kind == signToken || strings.Contains(value.text, ","):
				return "", fmt.Errorf("macro %s: the default of %s is no name, number or text", name.text, text)
			}
			text += "=" + sign + value.text
		}
		parameters = append(parameters, text)
	}
	if len(r.tokens) > 0 {
		return "", fmt.Errorf("macro %s: want parameters with commas between them", name.text)
	}
	return name.text + "(" + strings.Join(parameters, ", ") + ")", nil
}

var builtins = []string{"namespace", "raise_exception", "range", "joiner", "dict", "cycler", "strftime_now"}

// call rewrites what follows call: parameters of the caller, and the call of a macro by its name. The
// engine prints what it gives, which is short if it is a macro's text.
func (r *rewriter) call() (head, name string, err error) {
	if r.take("(") {
		names, err := r.names(")")
		if err != nil || !r.take(")") {
			return "", "", fmt.Errorf("call: want parameters with commas between them")
		}
		head = "(" + strings.Join(names, ", ") + ")"
	}
	macro := r.next()
	if macro.kind != nameToken || !r.take("(") {
		return "", "", fmt.Errorf("call: want a macro by its name, with its arguments")
	}
	args, err := r.closed(")", asIs, false)
	if err == nil && len(r.tokens) > 0 {
		err = fmt.Errorf("call: want a macro by its name, with its arguments")
	}
	return fmt.Sprintf("%s %s(%s)(%s)", head, nameMacro, macro.text, args), macro.text, err
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
