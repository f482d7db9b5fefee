// The pickle machine, as far as PyTorch's files need it: a stack of values, built by one opcode
// after another. Calls that Python would run are kept as a name and arguments.

package torch

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Values are nil, bool, int64, float64, string, []byte, []any (tuples and lists), and these.
type (
	dict struct{ keys, values []any }

	// global is the name of a class or function. Its parts are kept separate: if they were joined for
	// each reference to two long texts, they would take unbounded memory.
	global struct{ module, name string }

	// built is the result of a call that Python would run.
	built struct {
		function global
		args     []any
	}

	// storage is a persistent reference to an entry with numbers.
	storage struct {
		class global
		key   string
	}

	mark struct{}
)

// list is a Python list, which opcodes append to.
type list struct{ items []any }

// maxValues bounds how many values a pickle pushes and remembers. Each takes at least a byte of the
// pickle and at most about 100 bytes of memory. A tensor has about 36 of them.
const maxValues = 1 << 19

// unpickler is the machine. Strings are copied from the pickle once. A value is moved from the stack to a
// tuple, a list or a dictionary at most once. So the number of values and the length bound memory and work.
type unpickler struct {
	in     []byte
	stack  []any
	memo   map[uint64]any
	values int // pushed or remembered so far
}

// unpickle runs a pickle of protocol 2 to 4.
func unpickle(text []byte) (any, error) { return newUnpickler(text).run() }

func newUnpickler(text []byte) *unpickler { return &unpickler{in: text, memo: map[uint64]any{}} }

func (u *unpickler) run() (any, error) {
	text := u.in
	for at := 0; ; at = len(text) - len(u.in) {
		op, err := u.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' {
			return u.pop()
		}
		if err := u.step(op[0]); err != nil {
			return nil, fmt.Errorf("opcode %q at %d: %w", op[0], at, err)
		}
		if u.values > maxValues {
			return nil, fmt.Errorf("it has more than %d values", maxValues)
		}
	}
}

func (u *unpickler) take(n uint64) ([]byte, error) {
	if n > uint64(len(u.in)) {
		return nil, fmt.Errorf("the pickle ends too soon")
	}
	b := u.in[:n]
	u.in = u.in[n:]
	return b, nil
}

// number reads an unsigned number of n bytes.
func (u *unpickler) number(n uint64) (uint64, error) {
	b, err := u.take(n)
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:]), err
}

func (u *unpickler) line() (string, error) {
	i := bytes.IndexByte(u.in, '\n')
	if i < 0 {
		return "", fmt.Errorf("the pickle ends too soon")
	}
	s := string(u.in[:i])
	u.in = u.in[i+1:]
	return s, nil
}

func (u *unpickler) push(v any) {
	u.values++
	u.stack = append(u.stack, v)
}

func (u *unpickler) pop() (any, error) {
	if len(u.stack) == 0 {
		return nil, fmt.Errorf("the stack is empty")
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

// since pops the values pushed since the last mark.
func (u *unpickler) since() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, ok := u.stack[i].(mark); ok {
			items := append([]any(nil), u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, fmt.Errorf("there is no mark")
}

// last pops n values.
func (u *unpickler) last(n int) ([]any, error) {
	if len(u.stack) < n {
		return nil, fmt.Errorf("the stack has %d values: want %d", len(u.stack), n)
	}
	items := append([]any(nil), u.stack[len(u.stack)-n:]...)
	u.stack = u.stack[:len(u.stack)-n]
	return items, nil
}

// sized are opcodes with a length and that many bytes: how many bytes the length has, and whether the bytes are text.
var sized = map[byte]struct {
	length uint64
	text   bool
}{'X': {4, true}, 0x8c: {1, true}, 0x8d: {8, true}, 'U': {1, true}, 'T': {4, true}, 'B': {4, false},
	'C': {1, false}, 0x8e: {8, false}}

func (u *unpickler) step(op byte) error {
	if s, ok := sized[op]; ok {
		n, err := u.number(s.length)
		if err != nil {
			return err
		}
		b, err := u.take(n)
		if s.text {
			u.push(string(b))
		} else {
			u.push(b)
		}
		return err
	}
	switch op {
	case 0x80, 0x95: // the protocol, the length of a frame
		_, err := u.take(map[byte]uint64{0x80: 1, 0x95: 8}[op])
		return err
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(op == 0x88)
	case '(':
		u.push(mark{})
	case ')':
		u.push([]any{})
	case ']':
		u.push(&list{})
	case '}':
		u.push(&dict{})
	case 'J', 'K', 'M', 0x8a, 'G':
		return u.scalar(op)
	case 'c', 0x93:
		return u.global(op)
	case 'q', 'r', 0x94, 'h', 'j':
		return u.remember(op)
	case '0':
		_, err := u.pop()
		return err
	case 't', 0x85, 0x86, 0x87:
		items, err := []any(nil), error(nil)
		if op == 't' {
			items, err = u.since()
		} else {
			items, err = u.last(int(op) - 0x84)
		}
		u.push(items)
		return err
	case 'a', 'e', 's', 'u':
		return u.put(op)
	case 'Q', 'R', 0x81, 'b':
		return u.make(op)
	default:
		return fmt.Errorf("is not one that PyTorch writes")
	}
	return nil
}
