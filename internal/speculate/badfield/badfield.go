// Package badfield is how package sample says that an option has a value that it cannot have.
package badfield

// Error names a field of sample.Params.
type Error struct {
	Field  string // as Go spells it
	Reason string // the value, and what to give instead
}

func (e *Error) Error() string { return "sample: " + e.Field + ": " + e.Reason }
