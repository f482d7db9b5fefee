package convert

// The information for people in a GGUF file (name, licence, tags) is in a folder's model card:
// README.md begins with fields in YAML. The names are those that llama.cpp reads; keys without such
// a name keep their own.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/infile"
)

// cardFields are the fields of a card, by the keys of GGUF files after "general.". lists says which are lists.
var cardFields = []struct {
	key, field string
	list       bool
}{
	{"name", "model_name", false}, {"author", "model_author", false}, {"version", "model_version", false},
	{"organization", "model_organization", false}, {"description", "model_description", false}, {"finetune",
		"model_finetune", false},
	{"basename", "model_basename", false}, {"size_label", "model_size_label", false}, {"source.url", "model_url", false},
	{"source.doi", "model_doi", false}, {"source.uuid", "model_uuid", false}, {"source.repo_url", "model_repo_url", false},
	{"license", "license", false}, {"license.name", "license_name", false}, {"license.link", "license_link", false},
	{"tags", "tags", true}, {"languages", "language", true},
}

// ofFile matches the keys after "general." that describe the file itself: they are written anew.
var ofFile = regexp.MustCompile(`^(architecture|type|alignment|file_type|quantization_version)$`)

// cardOf makes a model card from a file's keys general.*. It is empty if none are for people.
func cardOf(f *gguf.File) string {
	var b strings.Builder
	name := modelName(f.Path)
	for full, v := range f.Meta() {
		key, ok := strings.CutPrefix(full, "general.")
		if !ok || ofFile.MatchString(key) {
			continue
		}
		field := full
		for _, c := range cardFields {
			if c.key == key {
				field = c.field
			}
		}
		var value any
		text, isText := gguf.As[string](v)
		list, isList := gguf.As[[]string](v)
		number, isNumber := gguf.As[uint64](v)
		switch {
		case isText:
			value = text
		case isList:
			value = list
		case isNumber && v.Type() == "u32":
			value = number
		default: // settings of sampling, which do not describe the model
			continue
		}
		if key == "name" && isText {
			name = text
		}
		line, err := json.Marshal(value) // JSON is YAML too
		if err == nil {
			fmt.Fprintf(&b, "%s: %s\n", field, line)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "---\n" + b.String() + "---\n\n# " + strings.Join(strings.Fields(name), " ") + "\n"
}

// writeCard writes the folder's README.md.
func writeCard(f *gguf.File, dir string) error {
	card := cardOf(f)
	if card == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(card), 0o666)
}

const maxCard = 1 << 20 // maximum size of a README.md in bytes

// setCard sets the keys general.* from the fields of the folder's model card.
func setCard(w *gguf.Writer, dir string) error {
	text, err := infile.ReadFile(filepath.Join(dir, "README.md"), maxCard)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fields := frontMatter(string(text))
	for _, c := range cardFields {
		switch v := fields[c.field]; {
		case len(v) == 0:
		case c.list:
			w.Set("general."+c.key, v.texts())
		case len(v) == 1 && !v[0].inList:
			w.Set("general."+c.key, v[0].text)
		}
	}
	for field, v := range fields {
		key, ok := strings.CutPrefix(field, "general.")
		if !ok || ofFile.MatchString(key) {
			continue
		}
		number, err := strconv.ParseUint(v[0].text, 10, 32)
		switch {
		case v[0].inList:
			w.Set(field, v.texts())
		case err == nil && !v[0].quoted:
			w.Set(field, uint32(number))
		default:
			w.Set(field, v[0].text)
		}
	}
	return nil
}

// cardValue is the value of a field of a card: a text or a list of texts.
type cardValue []cardText

type cardText struct {
	text           string
	quoted, inList bool
}

func (v cardValue) texts() []string {
	out := make([]string, len(v))
	for i, x := range v {
		out[i] = x.text
	}
	return out
}

// fieldLine matches an unindented field, and the rest of its line.
var fieldLine = regexp.MustCompile(`^([A-Za-z_][\w.\-]*):(?:[ \t]+(.*))?$`)

// frontMatter reads the fields at the beginning of a card. It reads a subset of YAML: texts, quoted
// or not, and lists of them in brackets or line by line. It skips fields of another form, because
// none of the wanted ones has one.
func frontMatter(card string) map[string]cardValue {
	fields := map[string]cardValue{}
	lines := strings.Split(strings.ReplaceAll(card, "\r\n", "\n"), "\n")
	if lines[0] != "---" {
		return fields
	}
	name := "" // of the field whose list continues
	for _, line := range lines[1:] {
		m := fieldLine.FindStringSubmatch(line)
		item, isItem := strings.CutPrefix(strings.TrimLeft(line, " "), "- ")
		switch {
		case line == "---":
			return fields
		case m == nil && isItem && name != "":
			if x, ok := scalar(item); ok {
				x.inList = true
				fields[name] = append(fields[name], x)
			}
		case m == nil: // a comment, or an unknown form
		default:
			name = ""
			switch value := strings.TrimSpace(m[2]); {
			case value == "":
				name = m[1]
			case strings.HasPrefix(value, "["):
				fields[m[1]] = flowList(value)
			default:
				if x, ok := scalar(value); ok {
					fields[m[1]] = cardValue{x}
				}
			}
		}
	}
	return map[string]cardValue{} // the end of the fields is missing
}

// flowList reads [a, "b"].
func flowList(text string) cardValue {
	var quoted []string
	var out cardValue
	if json.Unmarshal([]byte(text), &quoted) == nil {
		for _, x := range quoted {
			out = append(out, cardText{x, true, true})
		}
		return out
	}
	inner, ok := strings.CutSuffix(text[1:], "]")
	if !ok {
		return nil
	}
	for part := range strings.SplitSeq(inner, ",") {
		if x, ok := scalar(strings.TrimSpace(part)); ok {
			x.inList = true
			out = append(out, x)
		}
	}
	return out
}

// scalar reads a text, quoted or not. It refuses blocks, maps and references.
func scalar(text string) (x cardText, ok bool) {
	switch {
	case strings.HasPrefix(text, `"`):
		x.quoted = true
		return x, json.Unmarshal([]byte(text), &x.text) == nil
	case strings.HasPrefix(text, "'"):
		x.quoted = true
		x.text, ok = strings.CutSuffix(text[1:], "'")
		x.text = strings.ReplaceAll(x.text, "''", "'")
		return x, ok
	}
	text, _, _ = strings.Cut(text, " #") // a comment
	x.text = strings.TrimSpace(text)
	return x, x.text != "" && !strings.ContainsAny(x.text[:1], "{[|>&*!%@`#") && !strings.Contains(x.text, ": ")
}
