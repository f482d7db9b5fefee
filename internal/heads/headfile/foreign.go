// Published heads that grove does not run.

package headfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/model"
)

// Foreign is a kind of published head that grove does not run, with its marks in a folder.
type Foreign struct {
	Name    string
	Types   []string // values of speculators_model_type or model_type, or elements of architectures
	Fields  []string // of config.json
	Tensors []string // prefixes of names
}

// others lists the kinds that resemble none that grove runs; see Kind.Foreign for those that do.
var others = []Foreign{
	{Name: "a Hydra head", Types: []string{"hydra"}, Fields: []string{"hydra_num_heads"}},
	{
		Name:    "a DSpark head of another family or of llama.cpp",
		Types:   []string{"dsv4_dspark", "Gemma4DSparkModel"},
		Tensors: []string{"markov_w", "conf_proj."},
	},
	{Name: "an MLP speculator", Types: []string{"mlp", "mlp_speculator"}},
}

// refuseForeign returns an error that names the kind of head that config.json or the tensors
// indicate, if grove does not run it.
func refuseForeign(config map[string]any, tensors []string) error {
	type mark struct{ field, value string }
	var marks []mark
	add := func(field string, value any) {
		if s, ok := value.(string); ok {
			marks = append(marks, mark{field, s})
		}
	}
	add("model_type", config["model_type"])
	names, _ := config["architectures"].([]any)
	for _, name := range names {
		add("architectures", name)
	}
	speculator, _ := config["speculators_model_type"].(string)
	add("speculators_model_type", config["speculators_model_type"])
	refuse := func(kind, format string, args ...any) error {
		return fmt.Errorf("%s: this is %s, which grove does not run: want a %s", fmt.Sprintf(format, args...), kind, Names())
	}
	all := slices.Clone(others)
	for _, k := range kinds {
		all = append(all, k.Foreign...)
	}
	for _, f := range all {
		for _, m := range marks {
			if slices.Contains(f.Types, m.value) {
				return refuse(f.Name, "field %q is %q", m.field, m.value)
			}
		}
		for _, field := range f.Fields {
			if config[field] != nil {
				return refuse(f.Name, "field %q", field)
			}
		}
		for _, name := range tensors {
			if slices.ContainsFunc(f.Tensors, func(start string) bool { return strings.HasPrefix(name, start) }) {
				return refuse(f.Name, "tensor %s", fileerr.Quote(name))
			}
		}
	}
	if speculator != "" && !slices.ContainsFunc(kinds, func(k *Kind) bool {
		return slices.Contains(k.Speculators, speculator)
	}) {
		return refuse("another head of vLLM's speculators", "field \"speculators_model_type\" is %s",
			fileerr.Quote(speculator))
	}
	return nil
}

// ReadFolder returns the config.json of a head's folder. vLLM's speculators keep the layers' fields
// in transformer_layer_config: ReadFolder moves them to the top level. It refuses heads of kinds
// that grove does not run.
func ReadFolder(dir string) ([]byte, error) {
	data, err := model.ReadFolderFile(dir)
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err = json.Unmarshal(data, &config); err == nil {
		err = refuseForeign(config, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	layers, ok := config["transformer_layer_config"].(map[string]any)
	if !ok {
		return data, nil
	}
	maps.Copy(config, layers)
	return json.Marshal(config)
}
