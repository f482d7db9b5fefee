package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

type filterFunc = func(r *run, x Value, a *arguments) Value

// filters are those of jinja2 3.1, except the refused ones.
var filters map[string]filterFunc

// refused lists jinja2's filters that no chat template needs: they use chance, guess links or print addresses.
var refused = []string{"random", "urlize", "pprint", "wordwrap", "lipsum"}

func init() {
	filters = map[string]filterFunc{
		"abs": absolute, "attr": attr, "batch": batch, "capitalize": onText("capitalize"), "center": centered,
		"count": lengthOf, "length": lengthOf, "default": defaultTo, "d": defaultTo, "dictsort": dictSort,
		"e": escapeFilter, "escape": escapeFilter, "forceescape": forceEscape, "filesizeformat": fileSize,
		"first": first, "last": last, "float": toFloat, "int": toInt, "format": percentFilter, "groupby": groupBy,
		"indent": indent, "items": itemsOf, "join": join, "list": toList, "lower": onText("lower"), "upper": onText("upper"),
		"map": mapped, "max": extreme(1), "min": extreme(-1), "replace": replaceFilter, "reverse": reverse, "round": round,
		"safe": safe, "select": selecting(true, false), "reject": selecting(false, false),
		"selectattr": selecting(true, true), "rejectattr": selecting(false, true), "slice": columns, "sort": sortFilter,
		"string": toString, "striptags": stripTags, "sum": sum, "title": titleFilter, "tojson": toJSON, "trim": trim,
		"truncate": truncate, "unique": unique, "urlencode": urlEncode, "wordcount": wordCount, "xmlattr": xmlAttr,
	}
}

// soft returns the value as a text that keeps its type.
func (r *run) soft(x Value) Value {
	if _, ok := text(x); ok {
		return x
	}
	return r.str(x)
}

// onText returns a filter that calls a method of the value's text.
func onText(name string) filterFunc {
	return func(r *run, x Value, a *arguments) Value {
		x = r.soft(x)
		s, _ := text(x)
		return textMethods[name](r, x, s, a)
	}
}

func centered(r *run, x Value, a *arguments) Value {
	width := or(r.take("center", a, "width?")[0], integer(80))
	return onText("center")(r, x, &arguments{positional: []Value{width}})
}

func absolute(r *run, x Value, a *arguments) Value {
	r.take("abs", a)
	r.undefined(x)
	if f, ok := x.(float64); ok {
		return math.Abs(f)
	}
	i := whole(x)
	if i == nil {
		r.fail("abs wants a number, not a %s", typeName(x))
	}
	if i.Sign() < 0 {
		return r.unary("-", i)
	}
	return i
}

func attr(r *run, x Value, a *arguments) Value {
	name := r.string(r.take("attr", a, "name")[0], "attr")
	if _, ok := x.(*namespace); ok {
		r.fail("attr of a namespace is not supported")
	}
	if v, ok := r.getattr(x, name); ok {
		return v
	}
	return missing(x, name)
}

func lengthOf(r *run, x Value, a *arguments) Value {
	r.take("length", a)
	n, ok := r.len(x)
	if !ok {
		r.fail("a %s has no length", typeName(x))
	}
	return integer(n)
}

func defaultTo(r *run, x Value, a *arguments) Value {
	got := r.take("default", a, "default_value?", "boolean?")
	_, undefined := x.(*Undefined)
	if undefined || truth(or(got[1], false)) && !truth(x) {
		return or(got[0], "")
	}
	return x
}

func escapeFilter(r *run, x Value, a *arguments) Value {
	r.take("escape", a)
	return Markup(r.escaped(x))
}

func forceEscape(r *run, x Value, a *arguments) Value {
	r.take("forceescape", a)
	return Markup(r.escaped(r.str(x)))
}

func safe(r *run, x Value, a *arguments) Value {
	r.take("safe", a)
	return Markup(r.str(x))
}

func toString(r *run, x Value, a *arguments) Value {
	r.take("string", a)
	return r.soft(x)
}

func toFloat(r *run, x Value, a *arguments) Value {
	otherwise := or(r.take("float", a, "default?")[0], 0.0)
	if f, ok := r.float(x); ok {
		return f
	}
	if s, ok := text(x); ok {
		if f, ok := r.parseFloat(s); ok {
			return f
		}
		return otherwise
	}
	r.undefined(x)
	return otherwise
}

// parseFloat is Python's float(s).
func (r *run) parseFloat(s string) (float64, bool) {
	r.spend(len(s), 0)
	s = strings.TrimFunc(s, isSpace)
	s, ok := withoutMarks(s)
	if !ok || strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0) && !strings.ContainsAny(s, "nN")
}

// withoutMarks removes underscores, which must be between digits.
func withoutMarks(s string) (string, bool) {
	isDigitAt := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z')
	}
	for i := range len(s) {
		if s[i] == '_' && !(isDigitAt(i-1) && isDigitAt(i+1)) {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}

func toInt(r *run, x Value, a *arguments) Value {
	got := r.take("int", a, "default?", "base?")
	base := r.index(or(got[1], integer(10)), "int")
	if i := whole(x); i != nil {
		return i
	}
	if f, ok := x.(float64); ok {
		switch {
		case math.IsInf(f, 0):
			r.fail("int: a float is infinite")
		case math.IsNaN(f):
			return or(got[0], integer(0))
		}
		i, _ := big.NewFloat(f).Int(nil)
		return i
	}
	s, ok := text(x)
	if !ok {
		r.undefined(x)
		return or(got[0], integer(0))
	}
	if i := r.parseInt(s, base); i != nil {
		return i
	}
	if f, ok := r.parseFloat(s); ok && !math.IsInf(f, 0) && !math.IsNaN(f) {
		i, _ := big.NewFloat(f).Int(nil)
		return i
	}
	return or(got[0], integer(0))
}

// parseInt is Python's int(s, base), or returns nil.
func (r *run) parseInt(s string, base int) *big.Int {
	r.spend(len(s), 0)
	s = strings.TrimFunc(s, isSpace)
	digits := s[signLength(s):]
	s = s[:len(s)-len(digits)]
	if base < 0 || base == 1 || base > 36 {
		return nil
	}
	for prefix, b := range map[string]int{"0x": 16, "0o": 8, "0b": 2} {
		if len(digits) > 2 && strings.EqualFold(digits[:2], prefix) && (base == 0 || base == b) {
			digits, base = strings.TrimPrefix(digits[2:], "_"), b
			break
		}
	}
	if base == 0 {
		base = 10
		if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0_") != "" {
			return nil
		}
	}
	digits, ok := withoutMarks(digits)
	if !ok || digits == "" || len(digits) > maxDigits && base&(base-1) != 0 || signLength(digits) > 0 {
		return nil
	}
	i, ok := new(big.Int).SetString(s+digits, base)
	switch {
	case !ok:
		return nil
	case i.BitLen() > maxBits:
		r.fail("int: an integer of more than %d bits is not supported", maxBits)
	}
	return i
}

func percentFilter(r *run, x Value, a *arguments) Value {
	if len(a.positional) > 0 && len(a.names) > 0 {
		r.fail("format takes arguments by place or by name, not both")
	}
	var v Value = &Tuple{Items: a.positional}
	if len(a.names) > 0 {
		d := NewDict()
		for i, n := range a.names {
			d.Set(n, a.named[i])
		}
		v = d
	}
	x = r.soft(x)
	s, _ := text(x)
	return r.percent(x, s, v)
}

func indent(r *run, x Value, a *arguments) Value {
	got := r.take("indent", a, "width?", "first?", "blank?")
	by, ok := text(or(got[0], nil))
	if !ok {
		by = r.repeated(" ", r.index(or(got[0], integer(4)), "indent"))
	}
	s := r.string(x, "indent")
	lines := r.lines(s+"\n", false)
	first, blank := truth(or(got[1], false)), truth(or(got[2], false))
	parts := make([]string, 0, 2*len(lines))
	for i, line := range lines {
		if i == 0 && first || i > 0 && (blank || line != "") {
			parts = append(parts, by)
		}
		if i < len(lines)-1 {
			line += "\n"
		}
		parts = append(parts, line)
	}
	return likeText(x, r.joined(parts, ""))
}

func replaceFilter(r *run, x Value, a *arguments) Value {
	got := r.take("replace", a, "old", "new", "count?")
	count := -1
	if v := or(got[2], nil); v != nil {
		count = r.index(v, "replace")
	}
	return r.replaced(r.str(x), r.str(got[0]), r.str(got[1]), count)
}

func round(r *run, x Value, a *arguments) Value {
	got := r.take("round", a, "precision?", "method?")
	method := r.string(or(got[1], "common"), "round")
	precision := or(got[0], integer(0))
	digits := r.index(precision, "round")
	r.undefined(x)
	switch method {
	case "common":
		return r.rounded(x, digits)
	case "ceil", "floor":
		shift := r.binary("**", integer(10), precision)
		product := r.binary("*", x, shift)
		if f, ok := product.(float64); ok {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				r.fail("round: a float has no integer")
			}
			f = map[string]func(float64) float64{"ceil": math.Ceil, "floor": math.Floor}[method](f)
			product, _ = big.NewFloat(f).Int(nil)
		}
		return r.binary("/", product, shift)
	}
	r.fail("round: the method is none of common, ceil and floor")
	return nil
}

// rounded is Python's round(x, digits).
func (r *run) rounded(x Value, digits int) Value {
	if f, ok := x.(float64); ok {
		r.spend(floatWork, 0)
		switch {
		case math.IsNaN(f) || math.IsInf(f, 0) || digits > 340:
			return f
		case digits >= 0:
			f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
			return f
		case digits < -340:
			return math.Copysign(0, f)
		}
		exact, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
		ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
		i := halfEven(exact.Num(), new(big.Int).Mul(exact.Denom(), ten))
		f2, _ := new(big.Rat).SetInt(i.Mul(i, ten)).Float64()
		if f2 == 0 {
			return math.Copysign(0, f)
		}
		return f2
	}
	i := whole(x)
	switch {
	case i == nil:
		r.fail("round wants a number, not a %s", typeName(x))
	case digits >= 0:
		return i
	case digits < -maxDigits:
		return integer(0)
	}
	ten := r.power(big.NewInt(10), big.NewInt(int64(-digits))).(*big.Int)
	r.spend(product(words(i), words(ten)), 8*words(i))
	z := halfEven(i, ten)
	return z.Mul(z, ten)
}

// halfEven returns the quotient rounded to the nearest integer, with ties to even.
func halfEven(i, by *big.Int) *big.Int {
	quotient, rest := new(big.Int).DivMod(i, by, new(big.Int))
	if c := rest.Lsh(rest, 1).Cmp(by); c > 0 || c == 0 && quotient.Bit(0) == 1 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
}

func trim(r *run, x Value, a *arguments) Value {
	chars := or(r.take("trim", a, "chars?")[0], nil)
	return onText("strip")(r, x, &arguments{positional: []Value{chars}})
}

// titleFilter capitalises each word. Words begin after white space and - ( { [ <.
func titleFilter(r *run, x Value, a *arguments) Value {
	r.take("title", a)
	s := r.str(x)
	r.spend(16*len(s), 0)
	var b strings.Builder
	begins := true
	for _, c := range s {
		if isSpace(c) || strings.ContainsRune("-({[<", c) {
			b.WriteRune(c)
			begins = true
			continue
		}
		if begins {
			b.WriteString(upper(string(c)))
		} else {
			b.WriteString(lower(string(c)))
		}
		begins = false
	}
	return r.text(b.String())
}

func truncate(r *run, x Value, a *arguments) Value {
	got := r.take("truncate", a, "length?", "killwords?", "end?", "leeway?")
	limit := r.index(or(got[0], integer(255)), "truncate")
	end := r.string(or(got[2], "..."), "truncate")
	leeway := 5
	if v := or(got[3], nil); v != nil {
		leeway = r.index(v, "truncate")
	}
	n, ok := r.len(x)
	if !ok {
		r.fail("truncate wants a text, not a %s", typeName(x))
	}
	tail := utf8.RuneCountInString(end)
	switch {
	case limit < tail || leeway < 0:
		r.fail("truncate: the length is less than that of the end, or the leeway is negative")
	case n-leeway <= limit:
		return x
	}
	s := r.string(x, "truncate")
	s = s[:runeOffset(s, limit-tail)]
	if !truth(or(got[1], false)) {
		if at := strings.LastIndexByte(s, ' '); at >= 0 {
			s = s[:at]
		}
	}
	return r.binary("+", likeText(x, s), or(got[2], "..."))
}

func wordCount(r *run, x Value, a *arguments) Value {
	r.take("wordcount", a)
	s := r.str(x)
	r.spend(8*len(s), 0)
	return integer(len(strings.FieldsFunc(s, func(c rune) bool { return c != '_' && !isNumericOrLetter(c) })))
}

func isNumericOrLetter(c rune) bool { return isWord(c) || isNumeric(c) }

func fileSize(r *run, x Value, a *arguments) Value {
	binary := truth(or(r.take("filesizeformat", a, "binary?")[0], false))
	size, ok := r.float(x)
	if s, isText := text(x); isText {
		size, ok = r.parseFloat(s)
	}
	if !ok {
		r.undefined(x)
		r.fail("filesizeformat wants a number")
	}
	base, mark := 1000.0, "B"
	if binary {
		base, mark = 1024, "iB"
	}
	switch {
	case size == 1:
		return "1 Byte"
	case size < base:
		return strconv.FormatFloat(math.Trunc(size)+0, 'f', 0, 64) + " Bytes"
	}
	unit := base
	letters := "kMGTPEZY"
	if binary {
		letters = "KMGTPEZY"
	}
	for i := range len(letters) {
		unit = math.Pow(base, float64(i+2))
		if size < unit || i == len(letters)-1 {
			return strconv.FormatFloat(base*size/unit, 'f', 1, 64) + " " + letters[i:i+1] + mark
		}
	}
	return ""
}
