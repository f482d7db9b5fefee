// Package catalog finds models on disk, and for each the draft heads and the draft model that are
// to draft for it.
//
// A manifest, grove.json in the model's folder, names them; see hub.Manifest. In a folder of models
// without a manifest, a model gets the heads that fit it by the sizes that the files state.
package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/hub"
	"github.com/grovellm/grove/internal/model"
)

// Model is a model that can be opened, and the files that draft for it.
type Model struct {
	Name    string // of the file or folder
	Path    string // of a GGUF file or a Hugging Face folder
	Heads   []string
	Draft   string // empty: none
	Drafter string // from the manifest; empty: none
}

// manifest is the contents of grove.json: the files that draft for the folder's models, and for single ones by file.
type manifest struct {
	drafters
	Models map[string]drafters `json:"models"`
}

type drafters struct {
	hub.Offers
	Drafter string `json:"drafter"`
}

// depth is how deeply folders are searched for models: LM Studio keeps PUBLISHER/REPOSITORY/FILE.
const depth = 3

// Find lists the models at a path: a GGUF file, a Hugging Face folder, or a folder of these. Notes
// say what is left out.
func Find(path string) (list []Model, notes []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	f := finder{manifests: map[string]*manifest{}}
	if !info.IsDir() || isFolder(path) {
		f.list = []found{{Model: Model{Name: nameOf(hub.Shown(path)), Path: path}}}
	} else if err := f.scan(path, depth); err != nil {
		return nil, nil, err
	} else if len(f.list) == 0 {
		none := path + ": no model found: neither a GGUF file nor a folder with config.json"
		notes = append([]string{none}, f.notes...)
		return nil, nil, errors.New(strings.Join(notes, "\n"))
	}
	for i := range f.list {
		if err := f.complete(&f.list[i]); err != nil {
			return nil, nil, err
		}
		list = append(list, f.list[i].Model)
	}
	return list, f.notes, nil
}

// found is a model with its shape, which is nil if it was not read.
type found struct {
	Model
	config *model.Config
}

type finder struct {
	list      []found
	heads     []string
	manifests map[string]*manifest // by folder; nil: there is none
	notes     []string
}

func (f *finder) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

// scan finds models and heads in a folder and its subfolders.
func (f *finder) scan(dir string, deep int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var files []hub.File
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // of a link's target
		switch {
		case err != nil || strings.HasPrefix(e.Name(), "."):
		case !info.IsDir():
			files = append(files, hub.File{Path: e.Name(), Size: info.Size()})
		case isFolder(path):
			c, err := model.ReadFolder(path)
			f.add(path, c, err)
		case deep > 1:
			if err := f.scan(path, deep-1); err != nil { // such as lost+found on a volume
				f.note("%s is left out: %v", path, err)
			}
		}
	}
	for _, m := range hub.Models(files) {
		path := filepath.Join(dir, m.Path)
		if err := m.Whole(); err != nil {
			f.note("%s: %v", path, err)
			continue
		}
		c, err := readGGUF(path)
		f.add(path, c, err)
	}
	return nil
}

// isFolder reports whether a folder is a model: it has config.json, as some folders of only GGUF files do too.
func isFolder(path string) bool {
	entries, _ := os.ReadDir(path) // whoever opens it will get the error
	var files []hub.File
	for _, e := range entries {
		files = append(files, hub.File{Path: e.Name()})
	}
	models := hub.Models(files)
	return exists(filepath.Join(path, "config.json")) && (len(models) == 0 || models[len(models)-1].Path == ".")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ReadModel reads the shape of the model in a GGUF file or a Hugging Face folder.
func ReadModel(path string) (model.Config, error) {
	if exists(filepath.Join(path, "config.json")) {
		return model.ReadFolder(path)
	}
	return readGGUF(path)
}

// readGGUF reads a model's shape. The error is model.ErrHead for heads and routers.
func readGGUF(path string) (model.Config, error) {
	file, err := gguf.Open(path)
	if err != nil {
		return model.Config{}, err
	}
	defer file.Close()
	c, err := model.ReadGGUF(file)
	if err != nil && heads.Is(registry.Head{Name: path}) {
		err = model.ErrHead
	}
	return c, err
}

// add adds a file or folder, whose shape may have been read with an error.
func (f *finder) add(path string, c model.Config, err error) {
	if err == nil { // weights may be missing, or of a type without kernels
		_, err = (&Model{Path: path}).Bytes()
	}
	if err != nil { // an EAGLE-2 head's config.json looks like a model's
		if _, none := heads.Describe(registry.Head{Name: path}); none == nil {
			err = model.ErrHead
		}
	}
	switch {
	case errors.Is(err, model.ErrHead):
		f.heads = append(f.heads, path)
	case err != nil:
		f.note("%s is left out: %v", path, err)
	case !utf8.ValidString(nameOf(path)):
		f.note("%q is left out because its name is not UTF-8: rename it", path)
	default:
		f.list = append(f.list, found{Model{Name: nameOf(path), Path: path}, &c})
	}
}

var part = regexp.MustCompile(`-\d{5}-of-\d{5}$`)

// nameOf returns the name of a file without its extension and part number, or of a folder.
func nameOf(path string) string {
	if whole, err := filepath.Abs(path); err == nil { // for the current folder too
		path = whole
	}
	return part.ReplaceAllString(strings.TrimSuffix(filepath.Base(path), ".gguf"), "")
}

// complete finds the files that draft for a model.
func (f *finder) complete(m *found) error {
	dir, file := filepath.Dir(m.Path), filepath.Base(m.Path)
	if exists(filepath.Join(m.Path, hub.Manifest)) { // a Hugging Face folder has a manifest of its own
		dir, file = m.Path, "."
	}
	all, err := f.manifest(dir)
	if err != nil {
		return err
	}
	said := drafters{}
	if all != nil {
		said = all.drafters
		if one, ok := all.Models[file]; ok {
			said.Drafter = cmp.Or(one.Drafter, said.Drafter)
			if one.Heads != nil {
				said.Heads = one.Heads
			}
			if one.Drafts != nil {
				said.Drafts = one.Drafts
			}
		}
	}
	m.Drafter = said.Drafter
	for _, name := range said.Heads {
		if path := f.resolve(dir, name); path != "" && path != m.Path {
			m.Heads = append(m.Heads, path)
		}
	}
	for _, name := range said.Drafts {
		if path := f.resolve(dir, name); path != "" && path != m.Path && m.Draft == "" {
			m.Draft = path
		}
	}
	if said.Heads == nil && said.Drafts == nil && m.config != nil {
		for _, path := range f.heads {
			if heads.Check(registry.Head{Name: path}, *m.config) == nil {
				m.Heads = append(m.Heads, path)
			}
		}
	}
	return nil
}

// manifest reads a folder's manifest, once.
func (f *finder) manifest(dir string) (*manifest, error) {
	if m, ok := f.manifests[dir]; ok {
		return m, nil
	}
	path := filepath.Join(dir, hub.Manifest)
	data, err := infile.ReadFile(path, hub.MaxManifest)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f.manifests[dir] = nil
		return nil, nil
	}
	m := &manifest{}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // editors on Windows begin files with it
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&manifest{}); err != nil {
		f.note("%s: %v: the file is ignored", path, err)
	}
	for file := range m.Models {
		if !exists(filepath.Join(dir, file)) {
			f.note("%s: there is no %s", path, file)
		}
	}
	f.manifests[dir] = m
	return m, nil
}

// resolve returns the path for a name in a manifest: a file next to it, after a colon, or a model
// in the hub's cache. It is empty, with a note, if there is none.
func (f *finder) resolve(dir, name string) string {
	path := filepath.Join(dir, hub.Manifest)
	if file, ok := strings.CutPrefix(name, ":"); ok {
		if at := filepath.Join(dir, file); filepath.IsLocal(file) && exists(at) {
			return at
		}
		f.note("%s: there is no file %s in its folder, so it is not used", path, file)
		return ""
	}
	n, ok := hub.ParseName(name)
	if !ok {
		f.note("%s: %q: want :FILE, ORG/REPO or ORG/REPO:FILE", path, name)
		return ""
	}
	c, err := hub.FromEnv()
	at := ""
	if err == nil {
		at, err = c.Find(n)
	}
	if err != nil {
		f.note("%s: %s is not used: %v; fetch it with: grove pull %[2]s", path, name, err)
	}
	return at
}

// Bytes returns the memory that the weights of the model and of its drafters take.
func (m *Model) Bytes() (sum int64, err error) {
	for _, path := range slices.DeleteFunc([]string{m.Path, m.Draft}, func(p string) bool { return p == "" }) {
		types, err := model.ReadMemory(path)
		if err != nil {
			return 0, err
		}
		for _, t := range types {
			sum += t.Memory
		}
	}
	for _, head := range m.Heads {
		err := filepath.WalkDir(head, func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				var info fs.FileInfo
				if info, err = os.Stat(path); err == nil && info.Mode().IsRegular() {
					sum += info.Size()
				}
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}
