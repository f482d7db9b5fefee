// Models in the hub's cache, found when a flag or an argument names one.

package command

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove/internal/hub"
)

// findCached replaces ORG/REPO in a flag or an argument by the path of that cached model. A file or
// folder with that name takes precedence.
func findCached(k *kong.Context) error {
	var values []*kong.Value
	for _, f := range k.Flags() {
		values = append(values, f.Value)
	}
	if node := k.Selected(); node != nil {
		values = append(values, node.Positional...)
	}
	for _, v := range values {
		if !v.Tag.Has("hub") {
			continue
		}
		if v.Target.Kind() != reflect.Slice {
			if err := findOne(v.Target); err != nil {
				return err
			}
			continue
		}
		for i := range v.Target.Len() {
			if err := findOne(v.Target.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func findOne(v reflect.Value) error {
	text := v.String()
	if _, err := os.Stat(text); err == nil {
		return nil
	}
	name, ok := hub.ParseName(text)
	if !ok || strings.HasSuffix(name.Repo, ".gguf") {
		return nil // opening the file will say what is wrong
	}
	c, err := hub.FromEnv()
	if err != nil {
		return err
	}
	path, err := c.Find(name)
	if err != nil {
		return fmt.Errorf("there is no file %s, and as a model %w; fetch it with: grove pull %[1]s", text, err)
	}
	v.SetString(path)
	return nil
}
