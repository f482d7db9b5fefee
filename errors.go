package grove

import (
	"fmt"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/model"
)

// OptionError says that a field of a Request or of Options has a value it cannot have.
type OptionError struct {
	Field  string // as Go spells it: MaxTokens, Sampling.TopP
	Reason string // what is wrong, and what to give instead
}

func (e *OptionError) Error() string { return e.Field + ": " + e.Reason }

func optionf(field, format string, args ...any) error {
	return &OptionError{field, fmt.Sprintf(format, args...)}
}

// ContextError says that a prompt does not fit into the model's context: its fields Need and Limit count tokens.
type ContextError = model.ContextError

// Errors of generations that do not begin: the queue of Options.Queue is full, or the model drains or is closed.
var (
	ErrFull   = engine.ErrFull
	ErrClosed = engine.ErrClosed
)
