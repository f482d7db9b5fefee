// Published heads that grove does not run.

package headfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// foreign are the kinds of published heads that grove does not run, and what shows them in a
// folder.
var foreign = []struct {
	kind    string
	types   []string // values of speculators_model_type or model_type, or in architectures
	fields  []string // of config.json
	tensors []string // beginnings of names
}{
	{
		kind:  "a Hydra head",
		types: []string{"hydra"}, fields: []string{"hydra_num_heads"},
	},
	{
		kind:  "an MTP head of vLLM's speculators",
		types: []string{"fast_mtp", "MTPDraftModel", "MTPSpeculator"}, fields: []string{"mtp_loss_step_weights"},
		tensors: []string{"mtp_layers."},
	},
	{
		kind:    "a DSpark head",
		types:   []string{"dspark", "dsv4_dspark", "Qwen3DSparkModel", "DSparkDraftModel"},
		tensors: []string{"markov_", "conf_proj."},
	},
	{
		kind:  "a DFlash-2 head",
		types: []string{"dflash2", "DFlash2DraftModel"},
	},
	{
		kind:  "an MLP speculator",
		types: []string{"mlp", "mlp_speculator"},
	},
	{
		kind:  "a causal block head of vLLM's speculators",
		types: []string{"jetspec"},
	},
}

// refuseForeign returns an error that names the kind of head that config.json or the tensors show,
// where grove does not run it.
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
	for _, f := range foreign {
		for _, m := range marks {
			if slices.Contains(f.types, m.value) {
				return refuse(f.kind, "field %q is %q", m.field, m.value)
			}
		}
		for _, field := range f.fields {
			if config[field] != nil {
				return refuse(f.kind, "field %q", field)
			}
		}
		for _, name := range tensors {
			if slices.ContainsFunc(f.tensors, func(start string) bool { return strings.HasPrefix(name, start) }) {
				return refuse(f.kind, "tensor %s", tensor.Quote(name))
			}
		}
	}
	if speculator != "" && !slices.ContainsFunc(kinds, func(k *Kind) bool { return slices.Contains(k.Speculators, speculator) }) {
		return refuse("another head of vLLM's speculators", "field \"speculators_model_type\" is %s",
			tensor.Quote(speculator))
	}
	return nil
}

// ReadFolder returns the config.json of a head's folder. vLLM's speculators have the fields of the
// layers apart, in transformer_layer_config: ReadFolder moves them to the top. It refuses heads of
// kinds that grove does not run.
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
