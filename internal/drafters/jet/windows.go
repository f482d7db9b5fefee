package jet

import (
	"encoding/json"
	"fmt"
	"slices"
)

// cutWindows removes the fields of sliding windows from a config.json, since layers with them would
// be refused. It returns the window and which layers have one. If layer_types names none with a
// window, everything stays.
func cutWindows(data []byte) (rest []byte, window int, windowed []bool, err error) {
	var f struct {
		Types  []string `json:"layer_types"`
		Window *int     `json:"sliding_window"`
		Use    *bool    `json:"use_sliding_window"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, 0, nil, err
	}
	if !slices.Contains(f.Types, sliding) || f.Use != nil && !*f.Use {
		return data, 0, nil, nil
	}
	if f.Use == nil {
		return nil, 0, nil, fmt.Errorf("field \"layer_types\" has %q, and \"use_sliding_window\" is missing: other programs take that for false", sliding)
	}
	if f.Window == nil || *f.Window < 1 {
		return nil, 0, nil, fmt.Errorf("field \"layer_types\" has %q, and \"sliding_window\" does not say how wide: want a positive number", sliding)
	}
	for _, t := range f.Types {
		if t != sliding && t != "full_attention" {
			return nil, 0, nil, fmt.Errorf("field \"layer_types\" has %q: want full_attention or %s", t, sliding)
		}
		windowed = append(windowed, t == sliding)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, 0, nil, err
	}
	for _, name := range []string{"layer_types", "sliding_window", "use_sliding_window"} {
		delete(config, name)
	}
	rest, err = json.Marshal(config)
	return rest, *f.Window, windowed, err
}

// sliding is the name of a layer with a window in layer_types.
const sliding = "sliding_attention"
