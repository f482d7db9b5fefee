package main

import (
	"path/filepath"

	_ "github.com/grovellm/grove/internal/drafters/drafttest/hostile" // what the controller is measured against
	"github.com/grovellm/grove/internal/model"
)

// ownName is what a model calls itself, or its path; without one it is in the program. There is no name of no model.
func ownName(m *model.Model, path string) string {
	switch {
	case m == nil:
		return ""
	case m.Config.Name != "":
		return m.Config.Name
	case path == "":
		return embedded
	}
	return filepath.Base(path)
}
