package serve

import (
	"fmt"
	"strconv"
	"strings"
)

// warningHeader is the header that says which parts of the request were left out or relaxed.
const warningHeader = "X-Grove-Warning"

// maxWarnings bounds the warnings in one answer's headers.
const maxWarnings = 16

// warning says that a part of a field is not obeyed, although the request is answered.
func warning(path, format string, args ...any) string {
	return path + ": " + fmt.Sprintf(format, args...)
}

// warn tells the client, in headers, and the log which parts of the request are not obeyed.
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
		if len(text) > 300 { // a client's name may contain anything
			text = text[:300]
		}
		parts = append(parts, strings.Trim(text, `"`))
	}
	for _, text := range parts {
		x.Header().Add(warningHeader, text)
	}
	x.s.o.Log.Warn("a part of the request is ignored", "id", x.id, "parts", parts)
}
