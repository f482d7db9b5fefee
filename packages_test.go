package grove_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/grovellm/grove"

// The packages of the laboratory: only the command grove-lab imports them.
const laboratory = module + "/internal/lab/"

// At most this many packages can be imported by others.
const publicPackages = 12

// The table of packages in docs/design.md has every package, and no package imports one of a higher floor.
func TestFloors(t *testing.T) {
	text, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	floors, seen := map[string]int{}, map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \|`).FindAllStringSubmatch(string(text), -1) {
		floor, _ := strconv.Atoi(row[1])
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			path := module + "/" + name[1]
			if name[1] == "grove" {
				path = module
			}
			if _, twice := floors[path]; twice {
				t.Errorf("docs/design.md lists %s twice", name[1])
			}
			floors[path] = floor
		}
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...", "./internal/testing/testdata")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		floor, known := floors[p.ImportPath]
		if !known {
			t.Errorf("docs/design.md does not list %s", p.ImportPath)
			continue
		}
		seen[p.ImportPath] = true
		for _, i := range p.Imports {
			if strings.HasPrefix(i, laboratory) && !strings.HasPrefix(p.ImportPath, laboratory) &&
				p.ImportPath != module+"/cmd/grove-lab" {
				t.Errorf("%s imports %s, of the laboratory", p.ImportPath, i)
			}
			if floors[i] > floor { // 0 for packages of others
				t.Errorf("%s on floor %d imports %s on floor %d", p.ImportPath, floor, i, floors[i])
			}
		}
	}
	public := 0
	for path := range floors {
		if seen[path] {
			if !strings.Contains(path, "/internal/") && !strings.Contains(path, "/cmd/") {
				public++
			}
			continue
		}
		t.Errorf("docs/design.md lists %s, which is no package", path)
	}
	if public > publicPackages {
		t.Errorf("%d packages can be imported by others: at most %d", public, publicPackages)
	}
}

// Each room of internal has a page: what comes in, what goes out, and what to read first.
func TestRoomsHavePages(t *testing.T) {
	rooms, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		name := room.Name()
		if strings.HasPrefix(name, "_") || name == "testing" {
			continue
		}
		page, err := os.ReadFile(filepath.Join("internal", name, "doc.go"))
		if err != nil {
			t.Error(err)
			continue
		}
		text := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "//", "")), " ")
		if !strings.HasPrefix(text, "Package "+name+" ") ||
			!regexp.MustCompile(`\bInput: .*\bOutput: `).MatchString(text) ||
			!regexp.MustCompile(`Read .{1,80}\bfirst\b|To read: `).MatchString(text) {
			t.Errorf("internal/%s/doc.go: want what comes in, what goes out and what to read first", name)
		}
	}
}

// Few files outside its own packages know a kind of head: those that list the kinds, and for EAGLE
// and DFlash heads that have their layers. The laboratory may know them.
func TestFewFilesImportHeads(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`, "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for kind, most := range map[string]int{"specblock": 2, "assistant": 1, "eagle": 11, "falcon": 2, "jet": 4, "spark": 3,
		"mtp": 2, "peagle": 2, "medusa": 2} {
		var found []string
		for file := range strings.FieldsSeq(string(out)) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			inside := strings.Contains(file, "/drafters/"+kind+"/") || strings.Contains(file, "/train/"+kind+"/") ||
				strings.Contains(file, "/grove-lab/") || strings.Contains(file, "/internal/lab/")
			if !inside && regexp.MustCompile(`"`+module+`/internal/(drafters|train)/`+kind+`"`).Match(text) {
				found = append(found, file)
			}
		}
		if len(found) > most || len(found) == 0 {
			t.Errorf("%d files import the packages of %s, want %d at most:\n%s", len(found), kind, most, strings.Join(found, "\n"))
		}
	}
}

// Only its own packages, those named after it, know a family of heads. Few other files name it: the
// lists of what is registered, embedded and trained. The laboratory may name them.
func TestHeadFamiliesStayApart(t *testing.T) {
	for family, most := range map[string]int{"eagle": 3, "falcon": 3, "peagle": 3, "specblock": 3, "jet": 3, "medusa": 3,
		"mtp": 3, "spark": 3} {
		var also []string
		switch family {
		case "eagle": // whose layers they have
			also = []string{"peagle", "mtp"}
		case "spark": // heads with a correction learn as block heads do
			also = []string{"jet"}
		case "jet": // whose layers they have; and a tree that P-EAGLE takes too has the name of a drafter
			also = []string{"spark", "onepass"}
		case "falcon": // language models of that name have a tokenizer, and an architecture
			also = []string{"tokenizer", "model"}
		}
		words := family
		if family == "jet" {
			words = "jet|jetspec|dflash|ddtree"
		}
		named := regexp.MustCompile("^(" + words + ")[0-9]*([:+.-]|$)")
		var files []string
		err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
			switch name := e.Name(); {
			case err != nil:
				return err
			case e.IsDir() && (name == family || name == "lab" || name == "grove-lab" || slices.Contains(also, name) ||
				name == "testdata" || len(name) > 1 && strings.ContainsAny(name[:1], "._")):
				return fs.SkipDir
			case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			if err == nil && names(path, text, family, named) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > most {
			t.Errorf("%d files outside its packages name %s, at most %d should: %s", len(files), family, most,
				strings.Join(files, ", "))
		}
	}
}

// names reports whether code names a family: in an import, an identifier, or a value that is one of
// its names. Comments and help texts may give it as an example.
func names(path string, text []byte, family string, named *regexp.Regexp) bool {
	file := token.NewFileSet().AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		_, tok, literal := s.Scan()
		literal = strings.ToLower(literal)
		switch tok {
		case token.EOF:
			return false
		case token.IDENT:
			if strings.HasPrefix(literal, family) || strings.HasSuffix(literal, family) {
				return true
			}
		case token.STRING:
			literal = strings.Trim(literal, "\"`")
			if strings.HasSuffix(literal, "/"+family) || named.MatchString(literal) && !strings.Contains(literal, " ") {
				return true
			}
		}
	}
}
