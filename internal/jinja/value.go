package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A Value is a Python value: nil is None, and bool, *big.Int, float64 and string are the
// corresponding Python types. The others are the types in this file.
type Value = any

// Markup is text that is safe in HTML: other text joined with it is escaped.
type Markup string

// A List is Python's list. Templates can append to it and pop from it.
type List struct{ Items []Value }

// A Tuple may have names for its items, as groupby's tuples have.
type Tuple struct {
	Items []Value
	names []string
}

// A Dict keeps the order in which keys were added.
type Dict struct {
	keys, values []Value
	index        map[string]int // of hash(key)
}

// Undefined stands for a variable, attribute or element that does not exist. It prints as nothing,
// is false and has no elements; any other use fails with the error why.
type Undefined struct{ why string }

type (
	// span is Python's range.
	span struct{ start, stop, step, n int }

	// view is a view of a dictionary's keys, values or items.
	view struct {
		dict *Dict
		kind string // keys, values, items
	}

	// iterator is Python's generator: its elements can be read once.
	iterator struct{ next func() (Value, bool) }

	function struct {
		call func(r *run, a *arguments) Value
	}

	namespace struct{ Dict }

	cycler struct {
		items []Value
		at    int
	}
)

// NewDict returns an empty dictionary.
func NewDict() *Dict { return &Dict{index: map[string]int{}} }

// Set sets the value of a key. An existing key keeps its place.
func (d *Dict) Set(key string, v Value) { d.put("s"+key, key, v) }

// Get returns the value of a key, None if there is none.
func (d *Dict) Get(key string) Value {
	v, _ := d.get("s" + key)
	return v
}

// Without returns a copy without a key.
func (d *Dict) Without(key string) *Dict {
	out := NewDict()
	for i, k := range d.keys {
		if h, _ := hash(k); h != "s"+key {
			out.put(h, k, d.values[i])
		}
	}
	return out
}

// Merge copies the entries of another dictionary.
func (d *Dict) Merge(other *Dict) {
	for i, key := range other.keys {
		h, _ := hash(key)
		d.put(h, key, other.values[i])
	}
}

func (d *Dict) put(h string, key, v Value) {
	if i, ok := d.index[h]; ok {
		d.values[i] = v
		return
	}
	d.index[h] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

func (d *Dict) get(h string) (Value, bool) {
	i, ok := d.index[h]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

func (d *Dict) pair(i int) Value { return &Tuple{Items: []Value{d.keys[i], d.values[i]}} }

func (v *view) at(i int) Value {
	switch v.kind {
	case "keys":
		return v.dict.keys[i]
	case "values":
		return v.dict.values[i]
	}
	return v.dict.pair(i)
}

func (s *span) at(i int) Value { return integer(s.start + i*s.step) }

// hash returns the same text for keys that Python considers equal. ok is false for values that cannot be keys.
func hash(key Value) (h string, ok bool) {
	switch k := key.(type) {
	case nil:
		return "n", true
	case bool, *big.Int:
		return "i" + whole(k).Text(16), true
	case float64:
		if k == math.Trunc(k) && !math.IsInf(k, 0) {
			i, _ := big.NewFloat(k).Int(nil)
			return "i" + i.Text(16), true
		}
		return "f" + strconv.FormatFloat(k, 'g', -1, 64), true
	case string:
		return "s" + k, true
	case Markup:
		return "s" + string(k), true
	case *Undefined:
		return "u", true
	case *Tuple:
		var b strings.Builder
		ok := k.hash(&b)
		return b.String(), ok
	case *span:
		return fmt.Sprintf("r%d,%d,%d", k.n, k.start*min(k.n, 1), k.step*min(max(k.n-1, 0), 1)), true
	case *List, *Dict, *view:
		return "", false
	}
	return fmt.Sprintf("p%p", key), true
}

// hash writes the items, each followed by its length.
func (t *Tuple) hash(b *strings.Builder) (ok bool) {
	b.WriteString("t")
	for _, item := range t.Items {
		start := b.Len()
		if sub, nested := item.(*Tuple); nested {
			ok = sub.hash(b)
		} else {
			var h string
			h, ok = hash(item)
			b.WriteString(h)
		}
		if !ok {
			return false
		}
		fmt.Fprintf(b, ":%016x", b.Len()-start)
	}
	return true
}

// small integers are shared.
var small = func() (list [1280]*big.Int) {
	for i := range list {
		list[i] = big.NewInt(int64(i - 256))
	}
	return list
}()

func integer(n int) Value {
	if n >= -256 && n < len(small)-256 {
		return small[n+256]
	}
	return big.NewInt(int64(n))
}

// whole returns the integer that a value represents, an integer or a bool; nil for others.
func whole(v Value) *big.Int {
	switch v := v.(type) {
	case *big.Int:
		return v
	case bool:
		if v {
			return small[257]
		}
		return small[256]
	}
	return nil
}

// text returns the string that a value represents.
func text(v Value) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case Markup:
		return string(v), true
	}
	return "", false
}

// likeText gives a text the type of another: text made from Markup is Markup.
func likeText(like Value, s string) Value {
	if _, ok := like.(Markup); ok {
		return Markup(s)
	}
	return s
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, *Undefined:
		return false
	case bool:
		return v
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	}
	n, ok := length(v)
	return !ok || n > 0
}

// length is Python's len(v), in bytes for a text.
func length(v Value) (n int, ok bool) {
	switch v := v.(type) {
	case string:
		return len(v), true
	case Markup:
		return len(v), true
	case *List:
		return len(v.Items), true
	case *Tuple:
		return len(v.Items), true
	case *Dict:
		return len(v.keys), true
	case *view:
		return len(v.dict.keys), true
	case *span:
		return v.n, true
	case *Undefined:
		return 0, true
	}
	return 0, false
}

// typeName returns Python's name of a value's type.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case Markup:
		return "Markup"
	case *List:
		return "list"
	case *Tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case *view:
		return "dict_" + v.kind
	case *span:
		return "range"
	case *iterator:
		return "generator"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	case *Undefined:
		return "Undefined"
	}
	return "function"
}
