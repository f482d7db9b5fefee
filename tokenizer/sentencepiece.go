package tokenizer

// SentencePiece's tokenizer.model: a BPE whose merges have scores.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"google.golang.org/protobuf/encoding/protowire"
)

// pieceFile is what grove reads of a SentencePiece model, under the names and with the defaults of its description
// (sentencepiece_model.proto).
type pieceFile struct {
	pieces []piece

	modelType    uint64
	suffixSpace  bool   // treat_whitespace_as_suffix
	charsmap     []byte // precompiled_charsmap
	dummyPrefix  bool   // add_dummy_prefix
	extraSpaces  bool   // remove_extra_whitespaces
	escapeSpaces bool   // escape_whitespaces
}

type piece struct {
	text  string
	score float32
	kind  uint64
}

// readSentencePiece reads a BPE model. tokenizer_config.json may rename tokens and say which begins a text.
func (f *files) readSentencePiece() (*made, error) {
	p := pieceFile{modelType: 1, dummyPrefix: true, extraSpaces: true, escapeSpaces: true}
	if err := p.read(f.SentencePiece); err != nil {
		return nil, fmt.Errorf("this is no SentencePiece model: %w", err)
	}
	const remedy = "make tokenizer.json from it with transformers"
	switch {
	case p.modelType != 2:
		return nil, fmt.Errorf("model_type %d is not BPE: %s", p.modelType, remedy)
	case p.suffixSpace || p.extraSpaces || !p.escapeSpaces:
		return nil, fmt.Errorf("treat_whitespace_as_suffix, remove_extra_whitespaces or no escape_whitespaces: %s", remedy)
	}
	var config struct {
		AddBOS *bool                 `json:"add_bos_token"`
		BOS    *tokenText            `json:"bos_token"`
		Added  map[string]addedToken `json:"added_tokens_decoder"`
	}
	if len(f.Config) > 0 {
		if err := json.Unmarshal(f.Config, &config); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", jsonError(err))
		}
	}
	f.BOS, f.EOS = "<s>", "</s>"
	m := &made{vocab: map[string]int32{}}
	m.model = object{"fuse_unk": true, "byte_fallback": slices.ContainsFunc(p.pieces, func(x piece) bool {
		return x.kind == uint64(tokenkind.Byte)
	})}
	texts, merged := make([]string, len(p.pieces)), map[string]int32{}
	for id, x := range p.pieces {
		a, named := config.Added[strconv.Itoa(id)]
		if !named {
			a = addedToken{Content: x.text, Special: x.kind != uint64(tokenkind.UserDefined)}
		}
		a.ID, texts[id] = int64(id), a.Content
		switch kind := int32(x.kind); {
		case kind == tokenkind.Unused && !named:
			continue
		case kind == tokenkind.Unknown:
			m.model["unk_token"] = a.Content
			m.added = append(m.added, a)
		case named || kind == tokenkind.Control || kind == tokenkind.UserDefined:
			m.added = append(m.added, a)
		case kind == tokenkind.Normal:
			merged[x.text] = int32(id)
		}
		if same, ok := m.vocab[a.Content]; ok {
			return nil, fmt.Errorf("pieces %d and %d are both %q", same, id, a.Content)
		}
		m.vocab[a.Content] = int32(id)
	}
	for id, a := range config.Added {
		if n, err := strconv.Atoi(id); err == nil && n >= len(p.pieces) {
			a.ID = int64(n)
			m.added = append(m.added, a)
		}
	}
	slices.SortFunc(m.added, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	m.merges = mergesByRank(texts, merged, func(id int32) float64 { return float64(p.pieces[id].score) })
	m.rest = pieceSteps(p.dummyPrefix)
	if len(p.charsmap) > 0 {
		m.rest["normalizer"] = object{"type": "Sequence", "normalizers": []any{
			object{"type": "Precompiled", "precompiled_charsmap": p.charsmap}, m.rest["normalizer"]}}
	}
	if config.AddBOS == nil || *config.AddBOS {
		m.bos = f.BOS
		if config.BOS != nil {
			m.bos = string(*config.BOS)
		}
		if _, ok := m.vocab[m.bos]; !ok && config.AddBOS == nil && config.BOS == nil {
			m.bos = "" // of other models of this kind
		}
	}
	return m, nil
}

// pieceSteps is lower.PieceSteps.
func pieceSteps(front bool) object {
	spaces := object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}
	decode := []object{{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
		{"type": "ByteFallback"}, {"type": "Fuse"}}
	normalizer := spaces
	if front {
		normalizer = object{"type": "Sequence", "normalizers": []object{{"type": "Prepend", "prepend": "▁"}, spaces}}
		decode = append(decode, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	return object{"normalizer": normalizer, "decoder": object{"type": "Sequence", "decoders": decode}}
}

// read reads the fields of a message in protocol buffers' format.
func (p *pieceFile) read(b []byte) error {
	return eachField(b, func(field protowire.Number, value uint64, part []byte) error {
		switch field {
		case 1:
			x := piece{kind: uint64(tokenkind.Normal)}
			err := eachField(part, func(field protowire.Number, value uint64, part []byte) error {
				switch field {
				case 1:
					x.text = string(part)
				case 2:
					x.score = math.Float32frombits(uint32(value))
				case 3:
					x.kind = value
				}
				return nil
			})
			p.pieces = append(p.pieces, x)
			return err
		case 2: // TrainerSpec
			return eachField(part, func(field protowire.Number, value uint64, _ []byte) error {
				switch field {
				case 3:
					p.modelType = value
				case 24:
					p.suffixSpace = value != 0
				}
				return nil
			})
		case 3: // NormalizerSpec
			return eachField(part, func(field protowire.Number, value uint64, part []byte) error {
				switch field {
				case 2:
					p.charsmap = part
				case 3:
					p.dummyPrefix = value != 0
				case 4:
					p.extraSpaces = value != 0
				case 5:
					p.escapeSpaces = value != 0
				}
				return nil
			})
		}
		return nil
	})
}

// eachField calls f with the fields of a message in turn: the value of a number, or the part of the message.
func eachField(b []byte, f func(field protowire.Number, value uint64, part []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		var value uint64
		var part []byte
		if n >= 0 {
			b = b[n:]
			switch kind {
			case protowire.VarintType:
				value, n = protowire.ConsumeVarint(b)
			case protowire.Fixed32Type:
				var v uint32
				v, n = protowire.ConsumeFixed32(b)
				value = uint64(v)
			case protowire.BytesType:
				part, n = protowire.ConsumeBytes(b)
			default:
				n = protowire.ConsumeFieldValue(field, kind, b)
			}
		}
		if n < 0 {
			return errors.Join(protowire.ParseError(n), errors.New("the file is cut or damaged: fetch it again"))
		}
		b = b[n:]
		if err := f(field, value, part); err != nil {
			return err
		}
	}
	return nil
}
