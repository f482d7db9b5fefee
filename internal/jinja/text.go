package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// textMethods are the methods of Python's str. s is the text of x.
var textMethods map[string]func(r *run, x Value, s string, a *arguments) Value

func init() {
	type f = func(r *run, x Value, s string, a *arguments) Value
	textMethods = map[string]f{
		"strip": stripping(strip), "lstrip": stripping(stripLeft), "rstrip": stripping(stripRight),
		"upper": mapping(upper), "lower": mapping(lower), "capitalize": mapping(capitalize), "title": mapping(title),
		"swapcase": mapping(swapCase), "casefold": mapping(func(s string) string { return cases.Fold().String(s) }),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"find": finding("find", strings.Index, -1), "rfind": finding("rfind", strings.LastIndex, -1),
		"index": finding("index", strings.Index, -2), "rindex": finding("rindex", strings.LastIndex, -2),
		"count": countText, "replace": replaceText, "join": joinText, "format": formatText, "format_map": formatMap,
		"split": splitText(false), "rsplit": splitText(true), "splitlines": splitLines,
		"partition": partition(strings.Index), "rpartition": partition(strings.LastIndex),
		"removeprefix": remove(strings.TrimPrefix), "removesuffix": remove(strings.TrimSuffix),
		"ljust": justify(0, 1), "rjust": justify(1, 0), "center": center, "zfill": zeroFill, "expandtabs": expandTabs,
		"isalpha": all(unicode.IsLetter), "isdigit": all(isDigit), "isdecimal": all(unicode.IsDigit),
		"isnumeric": all(isNumeric), "isalnum": all(func(c rune) bool { return unicode.IsLetter(c) || isNumeric(c) }),
		"isspace": all(isSpace), "isprintable": every(unicode.IsPrint), "isascii": every(func(c rune) bool { return c < 0x80 }),
		"isupper": asks(isUpper), "islower": asks(isLower), "istitle": asks(isTitle), "isidentifier": asks(isIdentifier),
	}
	for _, name := range []string{"encode", "translate", "maketrans", "unescape", "striptags", "escape"} {
		textMethods[name] = func(r *run, _ Value, _ string, _ *arguments) Value {
			r.fail("the method %s of a text is not supported", name)
			return nil
		}
	}
}

type textMethod = func(r *run, x Value, s string, a *arguments) Value

// string returns an argument, which must be a text.
func (r *run) string(v Value, what string) string {
	s, ok := text(v)
	if !ok {
		r.undefined(v)
		r.fail("%s wants a text, not a %s", what, typeName(v))
	}
	return s
}

func stripping(f func(s string, cut func(rune) bool) string) textMethod {
	return func(r *run, x Value, s string, a *arguments) Value {
		chars := or(r.take("strip", a, "/chars?")[0], nil)
		cut := isSpace
		if chars != nil {
			set := r.string(chars, "strip")
			cut = func(c rune) bool {
				r.spend(len(set), 0)
				return strings.ContainsRune(set, c)
			}
		}
		r.spend(len(s), 0)
		return likeText(x, f(s, cut))
	}
}

func strip(s string, cut func(rune) bool) string      { return strings.TrimFunc(s, cut) }
func stripLeft(s string, cut func(rune) bool) string  { return strings.TrimLeftFunc(s, cut) }
func stripRight(s string, cut func(rune) bool) string { return strings.TrimRightFunc(s, cut) }

func mapping(f func(string) string) textMethod {
	return func(r *run, x Value, s string, a *arguments) Value {
		r.take("this method", a)
		r.spend(4*len(s), len(s))
		return likeText(x, r.text(f(s)))
	}
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf })
}

func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

// firstTitle returns the form of a character at the start of a word.
func firstTitle(c rune) string {
	if c == 'ß' {
		return "Ss"
	}
	return string(unicode.ToTitle(c))
}

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return firstTitle(c) + lower(s[n:])
}

// isCased reports whether a character has a case, which determines the words of title.
func isCased(c rune) bool { return unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c) }

func title(s string) string {
	var b strings.Builder
	inside := false
	for _, c := range s {
		switch {
		case inside && c == 'İ':
			b.WriteString("i̇")
		case inside:
			b.WriteRune(unicode.ToLower(c))
		default:
			b.WriteString(firstTitle(c))
		}
		inside = isCased(c)
	}
	return b.String()
}

func swapCase(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
}

func affix(has func(s, part string) bool) textMethod {
	return func(r *run, _ Value, s string, a *arguments) Value {
		got := r.take("startswith", a, "/part", "/start?", "/stop?")
		s, ok := r.part(s, got[1], got[2])
		parts := []Value{got[0]}
		if t, isTuple := got[0].(*Tuple); isTuple {
			parts = t.Items
		}
		found := false
		for _, p := range parts {
			part := r.string(p, "startswith")
			r.spend(16+len(part), 0)
			found = found || ok && has(s, part)
		}
		return found
	}
}

// part returns s[start:stop], and whether start is within s.
func (r *run) part(s string, start, stop Value) (part string, ok bool) {
	if or(start, nil) == nil && or(stop, nil) == nil {
		return s, true
	}
	n, _ := r.len(s)
	first, last := r.window(n, start, stop)
	if first > last {
		return "", first <= n && first <= last
	}
	from := runeOffset(s, first)
	return s[from : from+runeOffset(s[from:], last-first)], true
}

// runeOffset returns where the character with an index begins.
func runeOffset(s string, index int) int {
	for at := range s {
		if index == 0 {
			return at
		}
		index--
	}
	return len(s)
}

// finding returns a method that searches for a text. Without a match it returns none, or fails if none is −2.
func finding(name string, index func(s, part string) int, none int) textMethod {
	return func(r *run, _ Value, s string, a *arguments) Value {
		got := r.take(name, a, "/part", "/start?", "/stop?")
		part := r.string(got[0], name)
		r.seek(s, part)
		in, ok := r.part(s, got[1], got[2])
		at := -1
		if ok {
			at = index(in, part)
		}
		if at >= 0 {
			n, _ := r.len(s)
			first, _ := r.window(n, got[1], got[2])
			return integer(first + utf8.RuneCountInString(in[:at]))
		}
		if none == -2 {
			r.fail("%s: the text is not found", name)
		}
		return integer(none)
	}
}

func countText(r *run, _ Value, s string, a *arguments) Value {
	got := r.take("count", a, "/part", "/start?", "/stop?")
	part := r.string(got[0], "count")
	r.seek(s, part)
	in, ok := r.part(s, got[1], got[2])
	if !ok {
		return integer(0)
	}
	return integer(strings.Count(in, part))
}

func replaceText(r *run, x Value, s string, a *arguments) Value {
	got := r.take("replace", a, "/old", "/new", "/count?")
	by := r.string(got[1], "replace")
	if _, safe := x.(Markup); safe {
		by = r.escaped(got[1])
	}
	count := -1
	if v := or(got[2], nil); v != nil {
		count = r.index(v, "replace")
	}
	return likeText(x, r.replaced(s, r.string(got[0], "replace"), by, count))
}

// escaped returns the value's text, safe for HTML.
func (r *run) escaped(v Value) string {
	if m, ok := v.(Markup); ok {
		return string(m)
	}
	s := r.str(v)
	r.spend(len(s), 0)
	return r.text(escape(s))
}

// replaced replaces a text, after charging for the result.
func (r *run) replaced(s, old, by string, count int) string {
	r.seek(s, old)
	n := strings.Count(s, old)
	if count >= 0 {
		n = min(n, count)
	}
	size := len(s) + product(n, len(by))
	r.spend(size, size+16)
	return strings.Replace(s, old, by, n)
}

func joinText(r *run, x Value, s string, a *arguments) Value {
	items := r.elements(r.take("join", a, "/items")[0])
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = r.string(item, "join")
		if _, safe := x.(Markup); safe {
			parts[i] = r.escaped(item)
		}
	}
	return likeText(x, r.joined(parts, s))
}

// texts makes a list of parts of a text.
func (r *run) texts(like Value, parts []string) Value {
	r.spend(16*len(parts), 16*len(parts)) // in addition to what listed charges
	items := make([]Value, len(parts))
	for i, p := range parts {
		items[i] = likeText(like, p)
	}
	return r.listed(items)
}

func splitText(right bool) textMethod {
	return func(r *run, x Value, s string, a *arguments) Value {
		got := r.take("split", a, "sep?", "maxsplit?")
		limit := -1
		if v := or(got[1], integer(-1)); v != nil {
			limit = r.index(v, "split")
		} else {
			r.fail("split wants an integer")
		}
		r.spend(2*len(s), 0)
		sep := or(got[0], nil)
		if sep == nil {
			return r.texts(x, r.splitSpace(s, limit, right))
		}
		by := r.string(sep, "split")
		if by == "" {
			r.fail("split: the separator is empty")
		}
		r.seek(s, by)
		n := strings.Count(s, by)
		if limit >= 0 {
			n = min(n, limit)
		}
		r.spend(48*n, 48*n)
		parts := make([]string, n+1)
		for i := range n {
			if right {
				at := strings.LastIndex(s, by)
				parts[n-i], s = s[at+len(by):], s[:at]
				continue
			}
			at := strings.Index(s, by)
			parts[i], s = s[:at], s[at+len(by):]
		}
		if right {
			parts[0] = s
		} else {
			parts[n] = s
		}
		return r.texts(x, parts)
	}
}

// splitSpace splits at white space, at most limit times unless limit is negative.
func (r *run) splitSpace(s string, limit int, right bool) []string {
	var parts []string
	trim, index := stripLeft, strings.IndexFunc
	if right {
		trim, index = stripRight, strings.LastIndexFunc
	}
	for s = trim(s, isSpace); s != ""; s = trim(s, isSpace) {
		r.spend(48, 48)
		at := index(s, isSpace)
		switch {
		case at < 0 || limit >= 0 && len(parts) == limit:
			parts, s = append(parts, s), ""
		case right:
			_, n := utf8.DecodeRuneInString(s[at:])
			parts, s = append(parts, s[at+n:]), s[:at]
		default:
			parts, s = append(parts, s[:at]), s[at:]
		}
	}
	if right {
		slices.Reverse(parts)
	}
	return parts
}

func splitLines(r *run, x Value, s string, a *arguments) Value {
	keep := truth(or(r.take("splitlines", a, "keepends?")[0], false))
	return r.texts(x, r.lines(s, keep))
}

// lines returns the lines of Python's splitlines.
func (r *run) lines(s string, keep bool) []string {
	r.spend(2*len(s), 0)
	var parts []string
	for s != "" {
		at := strings.IndexFunc(s, func(c rune) bool {
			return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
		})
		r.spend(48, 48)
		if at < 0 {
			return append(parts, s)
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		if strings.HasPrefix(s[at:], "\r\n") {
			n = 2
		}
		if keep {
			parts = append(parts, s[:at+n])
		} else {
			parts = append(parts, s[:at])
		}
		s = s[at+n:]
	}
	return parts
}

func partition(index func(s, part string) int) textMethod {
	return func(r *run, x Value, s string, a *arguments) Value {
		sep := r.string(r.take("partition", a, "/sep")[0], "partition")
		if sep == "" {
			r.fail("partition: the separator is empty")
		}
		r.seek(s, sep)
		r.spend(0, 160)
		at := index(s, sep)
		parts := [3]string{s, "", ""}
		switch {
		case at >= 0:
			parts = [3]string{s[:at], sep, s[at+len(sep):]}
		case index("..", ".") == 1: // from the right
			parts = [3]string{"", "", s}
		}
		return &Tuple{Items: []Value{likeText(x, parts[0]), likeText(x, parts[1]), likeText(x, parts[2])}}
	}
}

func remove(trim func(s, part string) string) textMethod {
	return func(r *run, x Value, s string, a *arguments) Value {
		part := r.string(r.take("removeprefix", a, "/part")[0], "removeprefix")
		r.spend(len(part), 0)
		return likeText(x, trim(s, part))
	}
}

// justify pads a text, with shares of the padding before and after it.
func justify(before, behind int) textMethod {
	return func(r *run, x Value, s string, a *arguments) Value {
		n, fill := r.filling(x, s, a)
		return likeText(x, r.joined([]string{r.repeated(fill, before*n), s, r.repeated(fill, behind*n)}, ""))
	}
}

// filling returns the number of characters that a text lacks to a width, and the padding character.
func (r *run) filling(x Value, s string, a *arguments) (n int, fill string) {
	got := r.take("ljust", a, "/width", "/fillchar?")
	fill = r.string(or(got[1], " "), "ljust")
	if utf8.RuneCountInString(fill) != 1 {
		r.fail("ljust wants one character to fill with")
	}
	if _, safe := x.(Markup); safe {
		fill = escape(fill)
	}
	have, _ := r.len(s)
	width := max(0, r.index(got[0], "ljust"))
	return max(0, min(width, r.maxMade+have+1)-have), fill
}

func center(r *run, x Value, s string, a *arguments) Value {
	n, fill := r.filling(x, s, a)
	have, _ := r.len(s)
	left := n/2 + n&(n+have)&1
	return likeText(x, r.joined([]string{r.repeated(fill, left), s, r.repeated(fill, n-left)}, ""))
}

func zeroFill(r *run, x Value, s string, a *arguments) Value {
	width := max(0, r.index(r.take("zfill", a, "/width")[0], "zfill"))
	have, _ := r.len(s)
	sign := signLength(s)
	return likeText(x, r.joined([]string{s[:sign], r.repeated("0", min(width, r.maxMade+have+1)-have), s[sign:]}, ""))
}

func expandTabs(r *run, x Value, s string, a *arguments) Value {
	size := r.index(or(r.take("expandtabs", a, "tabsize?")[0], integer(8)), "expandtabs")
	r.spend(len(s), 0)
	var b strings.Builder
	column := 0
	for _, c := range s {
		switch c {
		case '\t':
			if size > 0 {
				n := size - column%size
				b.WriteString(r.repeated(" ", n))
				column += n
			}
		case '\n', '\r':
			b.WriteRune(c)
			column = 0
		default:
			b.WriteRune(c)
			column++
		}
	}
	return likeText(x, r.text(b.String()))
}

// every returns a method that tests every character; all also requires at least one.
func every(is func(rune) bool) textMethod {
	return asks(func(s string) bool { return strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0 })
}

func all(is func(rune) bool) textMethod {
	return asks(func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0
	})
}

func asks(is func(string) bool) textMethod {
	return func(r *run, _ Value, s string, a *arguments) Value {
		r.take("this method", a)
		r.spend(len(s), 0)
		return is(s)
	}
}

// isDigit reports whether Python considers c a digit: decimal digits, superscripts and subscripts.
func isDigit(c rune) bool {
	return unicode.IsDigit(c) || strings.ContainsRune("²³¹", c) || c == 0x2070 || c >= 0x2074 && c <= 0x2079 ||
		c >= 0x2080 && c <= 0x2089
}

func isNumeric(c rune) bool { return unicode.IsNumber(c) }

func hasCased(s string) bool { return strings.ContainsFunc(s, isCased) }

func isUpper(s string) bool {
	return hasCased(s) && !strings.ContainsFunc(s, func(c rune) bool { return unicode.IsLower(c) || unicode.IsTitle(c) })
}

func isLower(s string) bool {
	return hasCased(s) && !strings.ContainsFunc(s, func(c rune) bool { return unicode.IsUpper(c) || unicode.IsTitle(c) })
}

func isTitle(s string) bool {
	inside := false
	for _, c := range s {
		if upper := unicode.IsUpper(c) || unicode.IsTitle(c); upper && inside || unicode.IsLower(c) && !inside {
			return false
		}
		inside = isCased(c)
	}
	return hasCased(s)
}

func isIdentifier(s string) bool {
	for i, c := range s {
		if !isWord(c) || i == 0 && unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}
