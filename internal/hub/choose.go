// Which files of a repository are a model, and which model a name means.

package hub

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/tensor"
)

// File is a file of a repository.
type File struct {
	Path string // with slashes
	Size int64
	Hash string // SHA-256, or git's SHA-1 of a blob, as hexadecimal digits; empty for a file found in the cache
}

// Model is a model of a repository: a GGUF file, whole or in parts, or the folder.
type Model struct {
	Path  string // of the file to open, the first part; "." for the folder
	Type  string // Q4_K_M and so on, from the file's name; safetensors or pytorch for the folder
	Files []File // the small ones first

	parts int // the number of parts in all; 0 for a file in one part
}

// Bytes is the size of all files.
func (m *Model) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Manifest is the file in which a repository names draft heads and draft models.
const Manifest = "grove.json"

// MaxManifest is the maximum size of a manifest, in bytes.
const MaxManifest = 1 << 20

// folderFiles are the files of a folder in addition to the weights.
var (
	folderFiles = strings.Fields(`config.json generation_config.json tokenizer.json tokenizer_config.json
		special_tokens_map.json chat_template.jinja chat_template.json
		additional_chat_templates/tool_use.jinja vocab_mapping.pt 1_Pooling/config.json ` + Manifest)
	partPattern = regexp.MustCompile(`^(.*)-(\d+)-of-(\d+)(\.\w+)$`)
	// shardPattern matches shards without numbers, such as layers-0, which only the index counts.
	shardPattern = regexp.MustCompile(`^(?:layers-\d+|outside|(?:model[-_])?mtp)\.safetensors$`)
	mixPattern   = regexp.MustCompile(`(_K|_0)_(?:XL|L|M|S)$`)
	typePattern  = regexp.MustCompile(`(?i)(?:^|[-._/])((?:IQ|TQ|Q)\d\w*|BF16|FP?16|FP?32|MXFP4\w*|NVFP4\w*)`)
)

// preferred lists the types in order of preference, for names without a type. Q4_K_M is first: its
// kernels are among the fastest, and its error is small for its size.
var preferred = strings.Fields("Q4_K_M Q4_K_S Q4_0 Q4_1 Q5_K_M Q5_K_S Q5_0 Q5_1 Q6_K Q8_0 BF16 F16 F32")

// mixes maps names of files whose matrices are of several types to one of those types.
var mixes = map[string]string{"IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_XXS", "IQ3_M": "IQ3_S", "Q8_K": "Q8_0"}

// Runs reports whether grove runs files of a type, by its name.
func Runs(typ string) bool {
	name := mixPattern.ReplaceAllString(strings.TrimSuffix(typ, "_MOE"), "$1")
	t, err := tensor.ParseType(cmp.Or(mixes[name], name))
	return typ == "" || typ == folderType || typ == torchType || err == nil && t.Decodes()
}

const (
	folderType = "safetensors"
	torchType  = "pytorch"
)

// Models lists the models among a repository's files: GGUF files by their path, then the folder.
func Models(files []File) (list []Model) {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	has := map[string]File{}
	for _, f := range files {
		has[f.Path] = f
	}
	split := map[string]int{} // the index in list, by the name without part numbers
	for _, f := range files {
		base := path.Base(f.Path)
		if !strings.HasSuffix(strings.ToLower(base), ".gguf") || strings.Contains(base, "mmproj") ||
			strings.Contains(base, "imatrix") {
			continue // a projector for pictures or an importance matrix is not a model
		}
		stem, parts := f.Path, 0
		if m := partPattern.FindStringSubmatch(f.Path); m != nil {
			stem = m[1] + m[4]
			parts, _ = strconv.Atoi(m[3])
			if at, ok := split[stem+m[3]]; ok {
				list[at].Files = append(list[at].Files, f)
				continue
			}
			split[stem+m[3]] = len(list)
		}
		list = append(list, Model{Path: f.Path, Type: typeOf(stem), Files: []File{f}, parts: parts})
	}
	for i := range list {
		if f, ok := has[Manifest]; ok {
			list[i].Files = append([]File{f}, list[i].Files...)
		}
	}
	return append(list, folder(files, has)...)
}

// typeOf returns the last type in a file's name or path.
func typeOf(stem string) string {
	found := typePattern.FindAllStringSubmatch(stem[:len(stem)-len(".gguf")], -1)
	if found == nil {
		return ""
	}
	typ := strings.ToUpper(found[len(found)-1][1])
	if width, ok := strings.CutPrefix(typ, "FP"); ok {
		return "F" + width
	}
	return typ
}

// folder returns the model made of config.json and the weights next to it, if there is one.
func folder(files []File, has map[string]File) []Model {
	if _, ok := has["config.json"]; !ok {
		return nil
	}
	for _, kind := range []struct{ typ, name, end string }{
		{folderType, "model", ".safetensors"}, {torchType, "pytorch_model", ".bin"},
		{folderType, "medusa_lm_head", ".safetensors"}, {torchType, "medusa_lm_head", ".pt"},
	} {
		m := Model{Path: ".", Type: kind.typ}
		names := append(slices.Clone(folderFiles), kind.name+kind.end+".index.json")
		if _, ok := has["tokenizer.json"]; !ok {
			names = append(names, "tekken.json", "tiktoken.model", "tokenizer.model")
		}
		for _, name := range names {
			if f, ok := has[name]; ok {
				m.Files = append(m.Files, f)
			}
		}
		if f, ok := has[kind.name+kind.end]; ok {
			m.Files = append(m.Files, f)
			return []Model{m}
		}
		_, indexed := has[kind.name+kind.end+".index.json"]
		small := len(m.Files)
		for _, f := range files {
			switch p := partPattern.FindStringSubmatch(f.Path); {
			case p != nil && p[4] == kind.end && strings.TrimSuffix(p[1], kind.end) == kind.name:
				m.parts, _ = strconv.Atoi(p[3])
				m.Files = append(m.Files, f)
			case indexed && shardPattern.MatchString(f.Path):
				m.Files = append(m.Files, f)
			}
		}
		if len(m.Files) > small {
			return []Model{m}
		}
	}
	return nil
}

// Whole returns an error if parts are missing.
func (m *Model) Whole() error {
	have, beyond := 0, 0
	for _, f := range m.Files {
		if p := partPattern.FindStringSubmatch(f.Path); p != nil {
			have++
			if strings.Trim(p[2], "0") == "" { // counted from 0 up to the number of parts, as in gpt-oss
				beyond = 1
			}
		}
	}
	if have != m.parts && have != m.parts+beyond {
		return fmt.Errorf("%s: only %d of %d parts are there: fetch the others", m.Path, have, m.parts)
	}
	return nil
}

// Choose returns the model that what names: a file, the end of a file's name, or a type, in upper
// or lower case. An empty what means the type that grove prefers.
func Choose(files []File, what string) (Model, error) {
	list := Models(files)
	if len(list) == 0 {
		return Model{}, fmt.Errorf("no model found: neither a GGUF file nor a folder with config.json and weights")
	}
	rank := func(m Model) int { // the best model has the lowest rank
		switch at := slices.Index(preferred, m.Type); {
		case m.Whole() != nil: // left by an interrupted fetch; prefer a whole one
			return len(preferred) + 2
		case at >= 0:
			return at
		case m.Path == ".":
			return len(preferred)
		case Runs(m.Type):
			return len(preferred) + 1
		}
		return len(preferred) + 2
	}
	slices.SortStableFunc(list, func(a, b Model) int { return cmp.Compare(rank(a), rank(b)) })
	m := pick(list, what)
	if m == nil {
		return Model{}, fmt.Errorf("there is no %s: want %s", what, options(list))
	}
	return *m, m.refuse()
}

// pick returns the first model that best matches what: by its path or file name, else by its type,
// else by the end of its file name, else by the beginning of its type. It returns nil if there is
// none.
func pick(list []Model, what string) *Model {
	what = strings.ToLower(what)
	best, at := 0, -1
	for i, m := range list {
		name, typ := strings.ToLower(m.Path), strings.ToLower(m.Type)
		stem := name
		if p := partPattern.FindStringSubmatch(name); p != nil {
			stem = p[1]
		}
		stem = "/" + strings.TrimSuffix(stem, ".gguf")
		fit := 0
		switch end, ok := strings.CutSuffix(stem, what); {
		case what == "" || name == what || path.Base(name) == what:
			fit = 4
		case typ == what:
			fit = 3
		case ok && (end == "" || strings.ContainsAny(end[len(end)-1:], "-./")):
			fit = 2
		case strings.HasPrefix(typ, what+"_"):
			fit = 1
		}
		if fit > best {
			best, at = fit, i
		}
	}
	if at < 0 {
		return nil
	}
	return &list[at]
}

func (m *Model) refuse() error {
	if !Runs(m.Type) {
		return fmt.Errorf("%s: grove does not run type %s", m.Path, m.Type)
	}
	return m.Whole()
}

// options lists the possible names.
func options(list []Model) string {
	var names []string
	for _, m := range list {
		switch {
		case m.Type == "":
			names = append(names, m.Path)
		case Runs(m.Type) && !slices.Contains(names, m.Type):
			names = append(names, m.Type)
		}
	}
	if len(names) == 0 {
		return "a file of another type"
	}
	return strings.Join(names, ", ")
}
