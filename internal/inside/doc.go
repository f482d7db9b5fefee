// Package inside shows the parts of a grove.Model that programs do not see to the server, the
// commands and the measurements. Package grove sets its functions; the m of each is a *grove.Model, or
// embeds one.
//
// In comes a model; out come its target, its engine's figures or an adapter. Read grove.go of the root first, which
// has the model and sets the functions.
package inside

import (
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/engine"
)

// Target is the model as grove's own drafters know it. It and what it opens last until the model is
// closed.
var Target func(m any) registry.Target

// EngineStats say what the model's generations do and did.
var EngineStats func(m any) engine.Stats

// Adapter is the adapter of the head that a drafter runs, which has the modifier +adapt.
var Adapter func(m any, drafter string) (*adapt.Adapter, error)
