// Numbers and text as people read them.

package command

import (
	"fmt"
	"strconv"
)

// Size writes bytes for a person.
func Size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// Count writes a large number for a person.
func Count(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 1e6:
		return fmt.Sprintf("%.1f K", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f B", float64(n)/1e9)
}

// PlainText is text itself where a terminal can show it, quoted where not.
func PlainText(text string) string {
	if q := strconv.Quote(text); q != `"`+text+`"` {
		return q
	}
	return text
}
