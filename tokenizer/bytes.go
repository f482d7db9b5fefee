package tokenizer

// GPT-2's byte alphabet: a printable character for every byte, so that a vocabulary of bytes can be
// written down as text. Printable Latin-1 stands for itself, the other 68 bytes for U+0100 and up.

var (
	byteRune [256]rune
	runeByte [0x144]int16 // −1 for characters that are not of the alphabet
)

func init() {
	for i := range runeByte {
		runeByte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !('!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ') {
			r = next
			next++
		}
		byteRune[b] = r
		runeByte[r] = int16(b)
	}
}

// alphabetBytes turns text in the alphabet into the bytes it stands for; ok is false where a
// character is not of the alphabet.
func alphabetBytes(dst []byte, text string) (_ []byte, ok bool) {
	for _, r := range text {
		if int(r) >= len(runeByte) || runeByte[r] < 0 {
			return dst, false
		}
		dst = append(dst, byte(runeByte[r]))
	}
	return dst, true
}

// fallbackByte reads SentencePiece's name of a byte, <0x0A>.
func fallbackByte(text string) (byte, bool) {
	if len(text) != 6 || text[:3] != "<0x" || text[5] != '>' {
		return 0, false
	}
	hi, ok1 := hexDigit(text[3])
	lo, ok2 := hexDigit(text[4])
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
