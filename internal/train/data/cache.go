package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
)

// A cache file is a header of 80 bytes and the tokens:
//
//	0  magic        8  key (32)     40  text bytes   48  documents
//	56 bytes a token               64  data bytes    72  CRC-32C of the data
//
// Its name and its key are a hash of the text and of the tokenizer, so that a change of either
// makes another file. An incomplete file is ignored.
const (
	cacheMagic  = "grovetk1"
	cacheHeader = 80
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// setKey hashes everything that determines the tokens: the vocabulary, the encoding of a piece of
// the text, which distinguishes merges, and the text.
func setKey(docs []Document, tok *tokenizer.Tokenizer) [32]byte {
	h := sha256.New()
	io.WriteString(h, cacheMagic)
	number := func(n int) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	text := func(s string) {
		number(len(s))
		io.WriteString(h, s)
	}
	number(tok.VocabSize())
	for id := range int32(tok.VocabSize()) {
		text(tok.Text(id))
		number(int(lower.TokenKind(tok, id)))
	}
	number(int(tok.EOS()))
	sample := 64 << 10
	for i := 0; i < len(docs) && sample > 0; i++ {
		s := docs[i].Text()
		s = s[:min(len(s), sample)]
		sample -= len(s)
		for _, id := range tok.Encode(s, tokenizer.EncodeOptions{}) {
			number(int(id))
		}
	}
	number(len(docs))
	for i := range docs {
		number(len(docs[i].Parts))
		for _, p := range docs[i].Parts {
			if p.Control {
				number(-1)
			}
			text(p.Text)
		}
	}
	return [32]byte(h.Sum(nil))
}

// cacheName returns a valid file name on every system.
func cacheName(name string, key [32]byte) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
	return safe[:min(len(safe), 40)] + "-" + hex.EncodeToString(key[:8]) + ".tokens"
}

func (s *Set) writeCache(path string) error {
	head := append([]byte(cacheMagic), s.key[:]...)
	width := uint64(2)
	if s.wide {
		width = 4
	}
	for _, n := range []uint64{uint64(s.Bytes), uint64(s.Docs), width, uint64(len(s.data)),
		uint64(crc32.Checksum(s.data, castagnoli))} {
		head = binary.LittleEndian.AppendUint64(head, n)
	}
	err := atomicfile.Write(path, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		_, err := w.Write(s.data)
		return err
	})
	if err != nil {
		return fmt.Errorf("token cache: %w", err)
	}
	return nil
}

// readCache returns nil if there is no complete file with that key.
func readCache(path string, key [32]byte) (*Set, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("token cache: %w", err)
	}
	if len(b) < cacheHeader || string(b[:8]) != cacheMagic || !bytes.Equal(b[8:40], key[:]) {
		return nil, nil
	}
	var n [5]uint64
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(b[40+8*i:])
	}
	data := b[cacheHeader:]
	width := n[2]
	if (width != 2 && width != 4) || n[3] != uint64(len(data)) || n[3]%width != 0 ||
		n[4] != uint64(crc32.Checksum(data, castagnoli)) {
		return nil, nil
	}
	return &Set{Bytes: int64(n[0]), Docs: int(n[1]), wide: width == 4, data: data, key: key}, nil
}
