package serve

import (
	"fmt"
	"strconv"
	"strings"
)

// warningHeader is the header of an answer that says what of the request was left out or relaxed.
const warningHeader = "X-Grove-Warning"

// maxWarnings bounds what one answer's headers say.
const maxWarnings = 16

// warning says that a part of a field is not obeyed, though the request is answered.
func warning(path, format string, args ...any) string {
	return path + ": " + fmt.Sprintf(format, args...)
}

// warn tells the client, in headers, and the log what of the request is not obeyed.
func (x *exchange) warn(warnings []string) {
	if len(warnings) == 0 {
		return
	}
	var parts []string
	for i, text := range warnings {
		if i == maxWarnings {
			parts = append(parts, fmt.Sprintf("%d more", len(warnings)-i))
			break
		}
		text = strconv.QuoteToASCII(text)
		if len(text) > 300 { // a client's name may hold anything
			text = text[:300]
		}
		parts = append(parts, strings.Trim(text, `"`))
	}
	for _, text := range parts {
		x.Header().Add(warningHeader, text)
	}
	x.s.o.Log.Warn("a part of the request is not obeyed", "id", x.id, "parts", parts)
}
