package jinja

import (
	"fmt"
	"strings"
	"time"
)

// layouts are the codes of strftime that Go's time package also supports.
var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'P': "pm",
	'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'e': "_2",
	'Z': "", 'z': "", // as for Python's datetime.now(), which has no zone
	'j': "002", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'r': "03:04:05 PM",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime is Python's on Linux, in the C locale.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		trim := format[i] == '-' && i+1 < len(format) // no leading zero
		if trim {
			i++
		}
		text, ok := timeCode(format[i], t)
		switch {
		case !ok && trim:
			b.WriteString(format[i-2 : i+1])
		case !ok:
			b.WriteString(format[i-1 : i+1])
		case trim && text != "":
			text = strings.TrimLeft(text[:len(text)-1], "0 ") + text[len(text)-1:] // midnight is 0
			fallthrough
		default:
			b.WriteString(text)
		}
	}
	return b.String()
}

func timeCode(code byte, t time.Time) (text string, ok bool) {
	if layout, ok := layouts[code]; ok {
		return t.Format(layout), true
	}
	year, week := t.ISOWeek()
	day := int(t.Weekday())
	switch code {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 's':
		return fmt.Sprint(t.Unix()), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'G':
		return fmt.Sprint(year), true
	case 'g':
		return fmt.Sprintf("%02d", year%100), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'u':
		return fmt.Sprint((day+6)%7 + 1), true
	case 'w':
		return fmt.Sprint(day), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-day)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(day+6)%7)/7), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	}
	return "", false
}
