// Prompt suites: the prompts that methods are measured on.

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Prompt is a text to continue, or a question to answer.
type Prompt struct {
	Name     string // its origin
	Text     string
	Question bool // may be put into a chat template

	// Forced, if not empty, is the text that the target is made to write: see forcedTarget.
	Forced string
}

// Suite is a set of prompts of one kind.
type Suite struct {
	Name    string
	About   string // its contents, in one line
	Prompts []Prompt
	Spare   []Prompt // more of the kind, none of them in Prompts, to warm up with
}

// SuiteOptions say where suites are and how much of them is wanted.
type SuiteOptions struct {
	Data   string // folder with prompts/, math/ and prose/
	GoRoot string // of the toolchain whose library the suite "go" reads
	N      int    // maximum prompts of a suite; 0: all
	Spare  int    // prompts to warm up with, in addition to N, if there are that many
}

type namedSuite struct {
	name, about string
	ordered     bool
	read        func(o *SuiteOptions, q query) ([]Prompt, error)
}

// named lists the suites that are more than a file's lines. If ordered is set, they take the first
// prompts in order, as the papers do, and otherwise evenly spread ones.
var named = []namedSuite{
	{"go", "functions of packages of Go's library that no model of ours has seen, to be written from their first line", false, readFunctions},
	{"edit", "files of the same packages, to be repeated with an identifier renamed: the target is made to write that", false, readEdits},
	{"math", "GSM8K test problems", false, readMath},
	{"prose", "the beginning of each novel (the PG-19 protocol: 1000 characters)", true, readProse},
	{"wikitext", "passages of WikiText-2's validation split by DynaTree's rule (800 characters; few articles have many)", true, readPassages},
	{"wikitext-articles", "the first passage of each article of the same", false, readArticles},
}

// query is a parsed suite name: "wikitext:chars=400".
type query struct {
	name  string
	chars int    // maximum characters of a prompt; 0: the suite's own
	field string // of the objects in a jsonl file; empty: found by name
	times int    // how often the whole list of prompts is repeated
}

// mostTimes limits how often prompts are repeated.
const mostTimes = 1000

func parseQuery(text string) (query, error) {
	q := query{name: text, times: 1}
	at := strings.LastIndexByte(text, ':')
	if at < 0 || !strings.Contains(text[at:], "=") {
		return q, nil
	}
	q.name = text[:at]
	for option := range strings.SplitSeq(text[at+1:], ",") {
		key, value, _ := strings.Cut(option, "=")
		switch n, err := strconv.Atoi(value); {
		case key == "chars" && err == nil && n > 0:
			q.chars = n
		case key == "chars":
			return q, fmt.Errorf("suite %q: chars=%s: want a number of characters, such as 400", text, value)
		case key == "field" && value != "":
			q.field = value
		case key == "times" && err == nil && n >= 1 && n <= mostTimes:
			q.times = n
		case key == "times":
			return q, fmt.Errorf("suite %q: times=%s: want 1 to %d", text, value, mostTimes)
		default:
			return q, fmt.Errorf("suite %q: option %q: want chars=N, times=N or field=NAME", text, option)
		}
	}
	return q, nil
}

// OpenSuite reads a suite: go, edit, math, prose, wikitext, wikitext-articles, the name of a file
// in the data folder's prompts/ (mt_bench for mt_bench.jsonl), or the path of a jsonl file. Options
// may follow a colon: chars=N cuts its prompts to N characters, times=N repeats them N times,
// field=NAME names the field of a jsonl file that has them. The same files give the same prompts.
func OpenSuite(text string, o SuiteOptions) (Suite, error) {
	q, err := parseQuery(text)
	if err != nil {
		return Suite{}, err
	}
	s := Suite{Name: text}
	var all []Prompt
	ordered := false
	if i := slices.IndexFunc(named, func(s namedSuite) bool { return s.name == q.name }); i >= 0 {
		s.About, ordered = named[i].about, named[i].ordered
		all, err = named[i].read(&o, q)
	} else {
		s.About, all, err = readFileSuite(&o, q)
	}
	if err != nil {
		return s, fmt.Errorf("suite %s: %w", q.name, err)
	}
	s.Prompts, s.Spare = divide(all, o.N, o.Spare, ordered)
	s.Prompts = slices.Repeat(s.Prompts, q.times)
	return s, nil
}

// divide takes n prompts to measure and others to warm up with. If ordered is set, it takes the first ones.
func divide(all []Prompt, n, spare int, ordered bool) (measured, warm []Prompt) {
	if n == 0 || n > len(all) {
		n = len(all)
	}
	total := min(len(all), n+spare)
	if ordered {
		return all[:n], all[n:total]
	}
	// Prompts to warm up with are spread too, so that the measured ones stay spread.
	for i, p := range spread(all, total) {
		if k := total - n; i*k/total != (i+1)*k/total {
			warm = append(warm, p)
		} else {
			measured = append(measured, p)
		}
	}
	return measured, warm
}

// spread returns n evenly spread prompts.
func spread(all []Prompt, n int) []Prompt {
	var out []Prompt
	for i := range n {
		out = append(out, all[(2*i+1)*len(all)/(2*n)])
	}
	return out
}

// data returns a path in the data folder, and checks that it exists.
func (o *SuiteOptions) data(parts ...string) (string, error) {
	path := filepath.Join(append([]string{o.Data}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no %s: name the folder that holds %s with --data or GROVE_DATA", path, filepath.Join(parts...))
	}
	return path, nil
}

// cut takes the first n characters of text.
func cut(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// SuiteNames lists the available suites, each with a line about it, those of the data folder last.
func SuiteNames(dataFolder string) [][2]string {
	var list [][2]string
	for _, s := range named {
		list = append(list, [2]string{s.name, s.about})
	}
	for _, pattern := range []string{"*.jsonl", "*.jsonl.gz"} {
		files, _ := filepath.Glob(filepath.Join(dataFolder, "prompts", pattern))
		for _, f := range files {
			list = append(list, [2]string{fileSuite(f), filepath.Join("prompts", filepath.Base(f))})
		}
	}
	return list
}
