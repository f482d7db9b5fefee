package grove

import (
	"fmt"

	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/model"
)

// OptionError says that a field of a Request or of Options has an invalid value.
type OptionError struct {
	Field  string // the Go field: MaxTokens, Sampling.TopP
	Reason string // what is wrong, and which values are valid
}

func (e *OptionError) Error() string { return e.Field + ": " + e.Reason }

func optionf(field, format string, args ...any) error {
	return &OptionError{field, fmt.Sprintf(format, args...)}
}

// ContextError says that a prompt does not fit in the model's context. Its fields Need and Limit count tokens.
type ContextError = model.ContextError

// Errors of generations that cannot start: the queue (Options.Queue) is full, or the model is draining or closed.
var (
	ErrFull   = engine.ErrFull
	ErrClosed = engine.ErrClosed
)
