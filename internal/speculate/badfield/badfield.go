// Package badfield is package sample's error for an invalid value of an option.
package badfield

// Error names a field of sample.Params.
type Error struct {
	Field  string // as Go spells it
	Reason string // the value, and what to give instead
}

func (e *Error) Error() string { return "sample: " + e.Field + ": " + e.Reason }
