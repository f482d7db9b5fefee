package grove

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/engine/pagestore"
	"github.com/grovellm/grove/internal/files/filelock"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/model"
)

// defaultCacheDirSize is the size for an Options.CacheDirSize of 0.
const defaultCacheDirSize = 16 << 30

// setStore opens the folder that keeps prompts, if there is to be one, for an engine whose model is in a file.
func (o *Options) setStore(e *engine.Options, file registry.Head, m *model.Model) error {
	if o.CacheDir == "" {
		return nil
	}
	contents, err := describeFile(file)
	if err != nil {
		return err
	}
	build := ""
	if b, ok := debug.ReadBuildInfo(); ok { // another version may round differently
		build = b.String()
	}
	e.Model = fmt.Sprint(contents, "\n", m.NewCache().Pages().Layout(), "\n", m.Config.Parameters(), cpu.Active(),
		o.more.PadType, o.more.PadExperts, o.more.PadUsed, "\n", build)
	e.Disk, err = pagestore.Open(o.CacheDir, cmp.Or(o.CacheDirSize, defaultCacheDirSize))
	switch {
	case errors.As(err, new(*filelock.HeldError)):
		return optionf("CacheDir", "%v: give each model of each process its own folder", err)
	case err != nil:
		return optionf("CacheDir", "%v: want a folder that can be written", err)
	}
	return nil
}

// describe sets files, if a folder keeps prompts.
func (d *drafting) describe(o *Options) error {
	if o.CacheDir == "" {
		return nil
	}
	d.files = "of\n"
	for _, h := range append(slices.Clip(d.heads), registry.Head{Name: o.Draft, Data: o.DraftGGUF}) {
		if h.Name == "" && h.Data == nil {
			continue
		}
		text, err := describeFile(h)
		if err != nil {
			return err
		}
		d.files += text + "\n"
	}
	return nil
}

// splitName matches the path of one part of a split GGUF file.
var splitName = regexp.MustCompile(`([^/\\]*-)\d{5}(-of-\d{5}\.gguf)$`)

// describeFile returns text that identifies a model's file, with its parts, or its folder: by
// names, sizes and times, or by the contents in memory.
func describeFile(file registry.Head) (string, error) {
	if file.Data != nil {
		return fmt.Sprint(pagestore.Root(string(file.Data))), nil
	}
	st, err := os.Stat(file.Name)
	if err != nil {
		return "", err
	}
	dir, base := filepath.Dir(file.Name), filepath.Base(file.Name)
	belongs := func(name string) bool { return name == base }
	if st.IsDir() {
		dir = file.Name
		belongs = func(string) bool { return true }
	} else if part := splitName.FindStringSubmatch(file.Name); part != nil {
		belongs = func(name string) bool { return strings.HasPrefix(name, part[1]) && strings.HasSuffix(name, part[2]) }
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	text := ""
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name())) // of the target of a link
		if err == nil && info.Mode().IsRegular() && belongs(e.Name()) {
			text += fmt.Sprintf("%q %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return text, nil
}
