// The opcodes that make more than a constant.

package torch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/files/fileerr"
)

func (u *unpickler) scalar(op byte) error {
	switch op {
	case 'J':
		n, err := u.number(4)
		u.push(int64(int32(n)))
		return err
	case 'K', 'M':
		n, err := u.number(map[byte]uint64{'K': 1, 'M': 2}[op])
		u.push(int64(n))
		return err
	case 'G': // the only big-endian number
		b, err := u.take(8)
		if err == nil {
			u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
		return err
	}
	n, err := u.number(1) // LONG1
	if err != nil {
		return err
	}
	if n > 8 {
		return fmt.Errorf("a number of %d bytes", n)
	}
	x, err := u.number(n)
	if shift := 64 - 8*n; n > 0 {
		x = uint64(int64(x<<shift) >> shift)
	}
	u.push(int64(x))
	return err
}

func (u *unpickler) global(op byte) error {
	var module, name string
	if op == 'c' {
		var err error
		if module, err = u.line(); err != nil {
			return err
		}
		if name, err = u.line(); err != nil {
			return err
		}
	} else {
		pair, err := u.last(2)
		if err != nil {
			return err
		}
		module, _ = pair[0].(string)
		name, _ = pair[1].(string)
	}
	u.push(global{module, name})
	return nil
}

func (u *unpickler) remember(op byte) error {
	key, err := uint64(len(u.memo)), error(nil) // MEMOIZE
	switch op {
	case 'q', 'h':
		key, err = u.number(1)
	case 'r', 'j':
		key, err = u.number(4)
	}
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' {
		v, ok := u.memo[key]
		if !ok {
			return fmt.Errorf("nothing is remembered as %d", key)
		}
		u.push(v)
		return nil
	}
	if len(u.stack) == 0 {
		return fmt.Errorf("the stack is empty")
	}
	u.values++
	u.memo[key] = u.stack[len(u.stack)-1]
	return nil
}

// put adds to a list or a dictionary.
func (u *unpickler) put(op byte) error {
	var items []any
	var err error
	switch op {
	case 'a':
		items, err = u.last(1)
	case 's':
		items, err = u.last(2)
	default:
		items, err = u.since()
	}
	if err != nil {
		return err
	}
	if len(u.stack) == 0 {
		return fmt.Errorf("the stack is empty")
	}
	switch to := u.stack[len(u.stack)-1].(type) {
	case *list:
		if op == 'a' || op == 'e' {
			to.items = append(to.items, items...)
			return nil
		}
	case *dict:
		if op != 'a' && op != 'e' && len(items)%2 == 0 {
			for i := 0; i < len(items); i += 2 {
				to.keys, to.values = append(to.keys, items[i]), append(to.values, items[i+1])
			}
			return nil
		}
	case *built: // of a class that is skipped
		return nil
	}
	return fmt.Errorf("items for %s", describe(u.stack[len(u.stack)-1]))
}

// make represents a call that Python would run.
func (u *unpickler) make(op byte) error {
	if op == 'Q' {
		v, err := u.pop()
		if err != nil {
			return err
		}
		// ("storage", class, key, device, elements)
		t, ok := v.([]any)
		if !ok || len(t) != 5 || t[0] != "storage" {
			return fmt.Errorf("a reference to something that is no storage")
		}
		class, ok1 := t[1].(global)
		key, ok2 := t[2].(string)
		if !ok1 || !ok2 {
			return fmt.Errorf("a storage without class or key")
		}
		u.push(&storage{class, key})
		return nil
	}
	pair, err := u.last(2)
	if err != nil {
		return err
	}
	if op == 'b' { // the state of an object, which no tensor needs
		u.push(pair[0])
		return nil
	}
	f, ok := pair[0].(global)
	args, ok2 := pair[1].([]any)
	if !ok || !ok2 {
		return fmt.Errorf("a call of %s", describe(pair[0]))
	}
	if f == (global{"collections", "OrderedDict"}) {
		u.push(&dict{})
		return nil
	}
	u.push(&built{f, args})
	return nil
}

func describe(v any) string {
	switch v := v.(type) {
	case *built:
		return "what " + v.function.quote() + " makes"
	case global:
		return v.quote()
	case *list, []any:
		return "a list"
	case *dict:
		return "a dictionary"
	}
	return fmt.Sprintf("a %T", v)
}

// quote quotes the global's name for a message.
func (g global) quote() string {
	const most = 96 // more than fileerr.Quote shows
	return fileerr.Quote(g.module[:min(len(g.module), most)] + "." + g.name[:min(len(g.name), most)])
}
