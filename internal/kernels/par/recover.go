package par

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Panicked is a panic as an error.
type Panicked struct {
	What  string // the code that panicked, as the subject of a sentence
	Value any    // the value of the panic
	Stack []byte // of the goroutine that panicked
}

func (p *Panicked) Error() string { return fmt.Sprintf("%s panicked: %v", p.What, p.Value) }

func (p *Panicked) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Recover, deferred, turns a panic into an error of the function that defers it. For a panic in a
// worker, the stack is the worker's.
func Recover(what string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	p := &Panicked{What: what, Value: v, Stack: debug.Stack()}
	if e, ok := v.(error); ok {
		var w *Panic
		if errors.As(e, &w) {
			p.Value, p.Stack = w.Value, w.Stack
		}
	}
	*err = p
}
