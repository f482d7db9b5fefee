package grove_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Code is written one statement a line (CONTRIBUTING.md): an if or a switch may declare a value or
// take an error before its condition and does nothing else there, and no assignment makes three
// values or more unless one call has them as results. Names and comments have the words of the
// field. Lines fit a screen.
func TestStyle(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() == "node_modules" ||
			strings.HasPrefix(e.Name(), ".") && path != "."):
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		files++
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		list := findFaults(f)
		if !ast.IsGenerated(f) {
			list = append(list, findLong(set.File(f.Pos()), src)...)
		}
		for _, fault := range list {
			t.Errorf("%s: %s", set.Position(fault.at), fault.what)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("read %d files alone", files)
	}
}

// fault is code against the rules of TestStyle.
type fault struct {
	at   token.Pos
	what string
}

// Words that grove's code once had of its own, for things that the field calls otherwise.
var (
	private    = regexp.MustCompile(`(?i)\b(meets?|told|trunks?|vain|beside)\b`)
	figurative = regexp.MustCompile(`(?i)\b(trunks?|in vain)\b`)
)

// spaced is a name with a space before each of its words.
func spaced(name string) string {
	var words strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) || r == '_' {
			words.WriteByte(' ')
		}
		words.WriteRune(r)
	}
	return words.String()
}

func findFaults(f *ast.File) (list []fault) {
	for _, group := range f.Comments {
		if word := figurative.FindString(group.Text()); word != "" {
			list = append(list, fault{group.Pos(), word + ": a metaphor in a comment: say what it is"})
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		var before ast.Stmt
		switch n := n.(type) {
		case *ast.IfStmt:
			before = n.Init
		case *ast.SwitchStmt:
			before = n.Init
		case *ast.Ident:
			if private.MatchString(spaced(n.Name)) {
				list = append(list, fault{n.Pos(), n.Name + ": a private word in a name: take the field's"})
			}
		case *ast.AssignStmt:
			if len(n.Lhs) > 2 && len(n.Lhs) == len(n.Rhs) {
				list = append(list, fault{n.Pos(), "an assignment of more than two values: give each a line"})
			}
		}
		if before != nil && !declares(before) {
			list = append(list, fault{before.Pos(), "a statement before a condition: give it a line of its own"})
		}
		return true
	})
	return list
}

// columns is how wide code may be. What closes brackets may stand beyond. A literal counts as at
// most shown columns of it: texts are not cut to fit.
const columns, shown = 120, 60

// findLong lists the lines that are too long, and the comments of prose that are.
func findLong(file *token.File, src []byte) (list []fault) {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(src)), src, nil, scanner.ScanComments)
	line, last := 0, 0 // the number of this line, and of the last that is listed
	end, width := 0, 0 // of the line's words so far: where they end, and in columns
	for {
		pos, tok, text := s.Scan()
		at := int(pos) - 1
		if tok == token.EOF {
			return list
		}
		if tok == token.SEMICOLON && text != ";" {
			continue
		}
		if text == "" {
			text = tok.String()
		}
		if n := file.Line(file.Pos(at)); n != line {
			line = n
			start := file.Offset(file.LineStart(n))
			width = utf8.RuneCount(src[start:at])
		} else {
			width += min(at-end, 1)
		}
		end = at + len(text)
		size := utf8.RuneCountInString(text)
		switch {
		case tok == token.STRING:
			size = min(size, shown)
		case tok == token.COMMENT && !prose.MatchString(text):
			continue
		}
		width += size
		if tok == token.STRING && strings.Contains(text, "\n") {
			line = file.Line(file.Pos(end))
			width = min(utf8.RuneCountInString(text[strings.LastIndex(text, "\n")+1:]), shown)
		}
		closes := strings.Contains(",.;:(){}[]", text)
		if width > columns && !closes && line != last {
			last = line
			list = append(list, fault{file.Pos(at), "a line of more than 120 columns"})
		}
	}
}

// prose is a comment of one line that is neither code, a table nor a directive.
var prose = regexp.MustCompile(`^// [^ ]`)

// declares reports whether a statement declares values, or takes an error.
func declares(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	if !ok || a.Tok != token.ASSIGN {
		return ok && a.Tok == token.DEFINE
	}
	name := ""
	switch last := a.Lhs[len(a.Lhs)-1].(type) {
	case *ast.Ident:
		name = last.Name
	case *ast.SelectorExpr:
		name = last.Sel.Name
	}
	return name == "err" || name == "failed" || strings.HasSuffix(name, "Err")
}

// The rules find what they are for, and leave alone what they allow.
func TestStyleRules(t *testing.T) {
	for code, want := range map[string]int{
		"if x := f(); x > 0 {\n}":                    0,
		"if err = f(); err != nil {\n}":              0,
		"if n, err = f(); err != nil {\n}":           0,
		"if closeErr = f(); closeErr != nil {\n}":    0,
		"if n++; n > 3 {\n}":                         1,
		"if kind = name; kind != \"\" {\n}":          1,
		"if f(); n > 3 {\n}":                         1,
		"if n > 3 {\n} else if n += 2; n > 1 {\n}":   1,
		"switch n = f(); {\ncase n > 3:\n}":          1,
		"switch x := f(); {\ncase x > 3:\n}":         0,
		"for i, n = 0, 1; i < n; i++ {\n}":           0,
		"a, b = b, a":                                0,
		"a, b, c = 1, 2, 3":                          1,
		"a, b, c := f()":                             0,
		"for a, b, c := 1, 2, 3; a < b; a, b = c, a": 1,
		"runTrunk(besidesMe, Trunks)":                2,
		"x := told // in vain":                       2,
		"meeting, unmet := met, foretold":            0,
	} {
		if strings.HasPrefix(code, "for a") {
			code += " {\n}"
		}
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+code+"\n}\n", parser.ParseComments)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		if got := findFaults(f); len(got) != want {
			t.Errorf("%s\nhas %d faults, want %d", code, len(got), want)
		}
	}
}

// Lines are measured to their last word, with texts cut.
func TestFindLong(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for code, want := range map[string]int{
		"var x = `" + long + "`":                         0,
		"var x = f(`" + long + "`, `" + long + "`)":      1,
		"var x = `" + strings.Repeat("word\n", 60) + "`": 0,
		"var x = " + strings.Repeat("x + ", 27) + "x[0]": 0,
		"var x = " + strings.Repeat("x + ", 29) + "x[0]": 1,
		"// " + long: 1,
		"//	" + long: 0,
		"var x = 1 // " + strings.Repeat("é", 107):                     0,
		"var x = 1 // " + strings.Repeat("é", 108):                     1,
		"var x = f(" + strings.Repeat("x, ", 36) + "x)))))))))))))))":  0,
		"var x = map[int]int{\n" + strings.Repeat("1: 2,\n", 50) + "}": 0,
	} {
		src := []byte("package p\n" + code + "\n")
		set := token.NewFileSet()
		file := set.AddFile("", -1, len(src))
		file.SetLinesForContent(src)
		if got := len(findLong(file, src)); got != want {
			t.Errorf("%s\nhas %d long lines, want %d", code, got, want)
		}
	}
}
