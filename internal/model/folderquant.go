package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/tensor"
)

// Folders with weights in FP8 or NVFP4, as DeepSeek, Qwen, compressed-tensors and NVIDIA's modelopt
// write them. Weights become F32 on reading, the smallest type that holds the products of weights
// and scales. The scales of activations and of keys and values are dropped, as none of these are
// rounded. Tensors of module X:
//
//	FP8    X.weight F8_E4M3; X.weight_scale_inv or X.weight_scale: a factor of all, of each row, or of each block
//	NVFP4  X.weight_packed U8, two weights of E2M1 in a byte, the first in its low bits; X.weight_scale F8_E4M3, of every 16 weights;
//	       X.weight_global_scale, by which scales are divided
//	       modelopt: X.weight; X.weight_scale; X.weight_scale_2, by which scales are multiplied

// quantization is the quantization_config of a config.json.
type quantization struct {
	Method     string                       `json:"quant_method"`
	Bits       int                          `json:"bits"` // AWQ, GPTQ, AutoRound
	Middle     bool                         `json:"sym"`
	Version    string                       `json:"version"`           // AWQ
	Checkpoint string                       `json:"checkpoint_format"` // GPTQ
	Dynamic    map[string]any               `json:"dynamic"`           // GPTQ
	Packing    string                       `json:"packing_format"`    // AutoRound
	Extra      map[string]quantizationExtra `json:"extra_config"`      // AutoRound
	Algorithm  string                       `json:"quant_algo"`        // modelopt
	Format     string                       `json:"format"`            // compressed-tensors
	Number     string                       `json:"fmt"`
	Block      []int                        `json:"weight_block_size"`
	Groups     map[string]quantizationGroup `json:"config_groups"`
	Transform  map[string]any               `json:"transform_config"`
	Class      string                       `json:"linear_class"` // the rest is BitNet's
	Mode       string                       `json:"quantization_mode"`
	OwnNorm    bool                         `json:"use_rms_norm"`
	Kept       []string                     `json:"modules_to_not_convert"`
	Sparsity   struct {
		Format string `json:"format"`
	} `json:"sparsity_config"`
}

type quantizationGroup struct {
	Format  string `json:"format"`
	Weights *struct {
		Symmetric *bool  `json:"symmetric"`
		Type      string `json:"type"`
		Block     []int  `json:"block_structure"`
		Group     int    `json:"group_size"`
	} `json:"weights"`
}

// quantizationExtra is what AutoRound does with a module.
type quantizationExtra struct {
	Bits *int `json:"bits"`
}

// layout returns the method whose tensors a folder with weights in words has, awq or gptq.
func (q *quantization) layout() string {
	switch {
	case q == nil:
		return ""
	case q.Method == "auto-round":
		return strings.TrimPrefix(q.Packing, "auto_round:auto_")
	}
	return q.Method
}

// readable lists the formats of compressed-tensors that decodeFolder reads.
var readable = []string{"", "float-quantized", "naive-quantized", "nvfp4-pack-quantized", "mixed-precision",
	"pack-quantized", "int-quantized"}

// check refuses weights that decodeFolder cannot read.
func (q *quantization) check() error {
	if q == nil {
		return nil
	}
	unread := func(field, value string) error {
		return fmt.Errorf("quantization_config: grove does not read weights of the %s %q: "+
			"take a GGUF file of the model, or the original folder, in BF16", field, value)
	}
	switch q.Method {
	case "fp8", "fbgemm_fp8":
		if q.Number != "" && q.Number != "e4m3" {
			return unread("fmt", q.Number)
		}
	case "modelopt", "modelopt_fp4":
		if !slices.Contains([]string{"FP8", "NVFP4"}, q.Algorithm) {
			return unread("quant_algo", q.Algorithm)
		}
	case "bitsandbytes":
	case "awq":
		if !strings.EqualFold(q.Version, "gemm") && q.Version != "" || q.Bits != 4 {
			return unread("version", fmt.Sprintf("%s, of %d bits", q.Version, q.Bits))
		}
	case "gptq":
		for modules := range q.Dynamic {
			if !strings.HasPrefix(modules, "-:") { // modules that are not quantized
				return unread("dynamic", modules)
			}
		}
		if !slices.Contains([]string{"", "gptq", "gptq_v2"}, q.Checkpoint) || q.Bits != 4 && q.Bits != 8 {
			return unread("checkpoint_format", fmt.Sprintf("%s, of %d bits", q.Checkpoint, q.Bits))
		}
	case "auto-round":
		if !slices.Contains([]string{"awq", "gptq"}, q.layout()) || q.Bits != 4 && q.Bits != 8 {
			return unread("packing_format", fmt.Sprintf("%s, of %d bits", q.Packing, q.Bits))
		}
		for modules, extra := range q.Extra {
			if extra.Bits != nil && *extra.Bits != q.Bits && *extra.Bits < 16 {
				return unread("extra_config", modules)
			}
		}
	case "compressed-tensors":
		formats := []string{q.Format}
		for _, g := range q.Groups {
			formats = append(formats, g.Format)
			if w := g.Weights; w != nil && w.Symmetric != nil && !*w.Symmetric && w.Type != "int" {
				return unread("config_groups with zero points, of format", q.Format)
			}
		}
		for _, format := range formats {
			if !slices.Contains(readable, format) {
				return unread("format", format)
			}
		}
		if len(q.Transform) > 0 {
			return unread("transform_config with format", q.Format)
		}
		if s := q.Sparsity.Format; s != "" && s != "dense" {
			return unread("sparsity_config with format", s)
		}
	case "mxfp4":
		return unread("quant_method, but for gpt-oss,", q.Method)
	default:
		return unread("quant_method", q.Method)
	}
	return nil
}

// block returns the rows and columns that share a scale, where the shape of the scales leaves it open.
func (q *quantization) block() [2]int {
	if q != nil {
		blocks := [][]int{q.Block}
		for _, g := range q.Groups {
			if w := g.Weights; w != nil {
				blocks = append(blocks, w.Block)
				if w.Group > 0 {
					blocks = append(blocks, []int{1, w.Group})
				}
			}
		}
		for _, b := range blocks {
			if len(b) == 2 && b[0] > 0 && b[1] > 0 {
				return [2]int{b[0], b[1]}
			}
		}
	}
	return [2]int{128, 128}
}

// otherScales are the ends of the names of tensors that are ignored in folders with quantized weights:
// they scale what a pass does not round.
var otherScales = []string{".input_scale", ".input_global_scale", ".activation_scale", ".k_scale", ".v_scale",
	".kv_scale", ".q_scale", ".output_scale"}

// decodeFolder replaces a folder's quantized weights and their scales by tensors of F32.
func decodeFolder(f *safetensors.File, q *quantization) error {
	var found []safetensors.Info
	var ints, books []string
	for _, info := range f.Tensors {
		name := info.Name
		_, scaled := f.Tensor(name + "_scale")
		if isCodebook(name) {
			books = append(books, name)
		} else if isIntegers(f, info) {
			ints = append(ints, info.Name)
		} else if info.Type == numtype.F8_E4M3 && !strings.HasSuffix(name, "_scale") || info.Type == numtype.U8 && scaled ||
			strings.HasSuffix(name, ".weight_packed") {
			found = append(found, info)
		}
	}
	drop := map[string]bool{}
	for _, name := range ints {
		x, others, err := openIntegers(f, name, q)
		if err != nil {
			return err
		}
		f.Replace(name, x.tensor(), x.typ)
		for _, name := range others {
			drop[name] = true
		}
	}
	for _, name := range books {
		x, stored, others, err := openCodebook(f, name)
		if err != nil {
			return err
		}
		f.Replace(x.Name, x, stored)
		for _, name := range others {
			drop[name] = true
		}
	}
	for _, info := range found {
		var d decoded
		var scales []string
		var err error
		stem := strings.TrimSuffix(info.Name, "_packed")
		stored := tensor.Type(numtype.NVFP4)
		if info.Type == numtype.F8_E4M3 {
			stored = numtype.F8_E4M3
			scales, err = d.openFP8(f, info.Name, q.block())
		} else {
			scales, err = d.openNVFP4(f, info.Name, stem)
		}
		if err != nil {
			return err
		}
		t := d.tensor(stem)
		if err := t.Check(); err != nil {
			return err
		}
		f.Replace(info.Name, t, stored)
		for _, name := range scales {
			drop[name] = true
		}
	}
	if len(found)+len(ints)+len(books) > 0 {
		f.Drop(func(name string) bool {
			return drop[name] || slices.ContainsFunc(otherScales, func(end string) bool { return strings.HasSuffix(name, end) })
		})
	}
	return nil
}

// decoded is a tensor of codes and its scales.
type decoded struct {
	codes, scales tensor.Tensor // the rows of scales are those of all matrices
	rows, cols    int           // of a matrix
	grid          [2]int        // rows and columns of a matrix's scales
	block         [2]int        // rows and columns of weights that share a scale
	perByte       int           // codes in a byte
	global        float32       // scales of FP8 are multiplied by it
	divide        bool          // or divided by it
}

// scaling returns a tensor that scales the named weights.
func scaling(f *safetensors.File, weights string, names ...string) (t tensor.Tensor, err error) {
	for _, name := range names {
		if t, ok := f.Tensor(name); ok {
			return t, nil
		}
	}
	return t, fmt.Errorf("tensor %s is quantized, and tensor %s, which scales it, is missing: the folder is incomplete, "+
		"or its quantization is one that grove does not read: take a GGUF file of the model", fileerr.Quote(weights), names[0])
}

func (d *decoded) openFP8(f *safetensors.File, name string, block [2]int) (scales []string, err error) {
	d.codes, _ = f.Tensor(name)
	d.perByte = 1
	if d.scales, err = scaling(f, name, name+"_scale_inv", name+"_scale"); err != nil {
		return nil, err
	}
	return []string{d.scales.Name}, d.arrange(block)
}

func (d *decoded) openNVFP4(f *safetensors.File, name, stem string) (scales []string, err error) {
	d.codes, _ = f.Tensor(name)
	d.perByte = 2
	if d.codes.Type != numtype.U8 {
		return nil, fmt.Errorf("tensor %s is %v: want U8, codes of NVFP4: take a GGUF file of the model", fileerr.Quote(name), d.codes.Type)
	}
	if d.scales, err = scaling(f, name, stem+"_scale"); err != nil {
		return nil, err
	}
	global, err := scaling(f, name, stem+"_scale_2", stem+"_global_scale")
	if err != nil {
		return nil, err
	}
	if d.scales.Type != numtype.F8_E4M3 || global.Type != tensor.F32 || global.Elements() != 1 {
		return nil, fmt.Errorf("tensor %s is %v and %s %v of shape %v: want F8_E4M3, and a single F32 number: take a GGUF file of the model",
			fileerr.Quote(d.scales.Name), d.scales.Type, fileerr.Quote(global.Name), global.Type, global.Shape)
	}
	one, err := global.Float32s()
	if err != nil {
		return nil, err
	}
	d.global, d.divide = one[0], strings.HasSuffix(global.Name, "_global_scale")
	return []string{d.scales.Name, global.Name}, d.arrange([2]int{1, 16})
}

// arrange determines which weights each scale applies to.
func (d *decoded) arrange(block [2]int) error {
	wrong := func() error {
		return fmt.Errorf("tensor %s of shape %v does not fit tensor %s of shape %v, with one scale for all of it, each row, or each %d × %d",
			fileerr.Quote(d.scales.Name), d.scales.Shape, fileerr.Quote(d.codes.Name), d.codes.Shape, block[0], block[1])
	}
	if d.codes.Type == numtype.F8_E4M3 && !d.scales.Type.Decodes() {
		return fmt.Errorf("tensor %s is %v: want F32, BF16 or F16: take a GGUF file of the model",
			fileerr.Quote(d.scales.Name), d.scales.Type)
	}
	shape := slices.Clone(d.codes.Shape)
	n := len(shape)
	if n < 2 || n > 3 {
		return wrong()
	}
	shape[n-1] *= d.perByte
	d.rows, d.cols = shape[n-2], shape[n-1]
	matrices := d.codes.Rows() / max(d.rows, 1)
	given := d.scales.Shape
	switch {
	case d.scales.Elements() == 1 && matrices == 1:
		d.grid = [2]int{1, 1}
	case len(given) == 1 && n == 2:
		d.grid = [2]int{given[0], 1}
	case len(given) == n && (n == 2 || given[0] == matrices):
		d.grid = [2]int{given[n-2], given[n-1]}
	default:
		return wrong()
	}
	for i, size := range []int{d.rows, d.cols} {
		switch {
		case d.grid[i] == 1:
			d.block[i] = size
		case d.grid[i] == size:
			d.block[i] = 1
		default:
			d.block[i] = block[i]
		}
		if size == 0 || (size+d.block[i]-1)/d.block[i] != d.grid[i] {
			return wrong()
		}
	}
	d.scales.Shape = []int{matrices * d.grid[0], d.grid[1]}
	return nil
}

// tensor returns the weights in F32.
func (d *decoded) tensor(name string) tensor.Tensor {
	shape := slices.Clone(d.codes.Shape)
	shape[len(shape)-1] = d.cols
	return tensor.Tensor{Name: name, Type: tensor.F32, Shape: shape, Reader: d.read}
}

func (d *decoded) read(dst []byte, r0, r1 int) error {
	size := d.cols / d.perByte
	codes := make([]byte, (r1-r0)*size)
	if err := d.codes.ReadRows(codes, r0, r1); err != nil {
		return err
	}
	scales, last := make([]float32, d.grid[1]), -1
	for r := r0; r < r1; r++ {
		at := r/d.rows*d.grid[0] + r%d.rows/d.block[0]
		if at != last {
			if err := d.readScales(scales, at); err != nil {
				return err
			}
			last = at
		}
		for c := range d.cols {
			var v float32
			if d.perByte == 1 {
				v = e4m3[codes[c]]
			} else {
				v = float32(num.MXFP4[codes[c/2]>>(c%2*4)&15]) / 2
			}
			binary.LittleEndian.PutUint32(dst[4*c:], math.Float32bits(v*scales[c/d.block[1]]))
		}
		codes, dst = codes[size:], dst[4*d.cols:]
	}
	return nil
}

// readScales reads a row of scales.
func (d *decoded) readScales(dst []float32, row int) error {
	if d.scales.Type != numtype.F8_E4M3 {
		return d.scales.DequantizeRows(dst, row, row+1)
	}
	codes := make([]byte, len(dst))
	if err := d.scales.ReadRows(codes, row, row+1); err != nil {
		return err
	}
	for i, code := range codes {
		dst[i] = e4m3[code] * d.global
		if d.divide {
			dst[i] = e4m3[code] / d.global
		}
	}
	return nil
}

// e4m3 lists the numbers of F8_E4M3: a sign, four bits of exponent, three of mantissa; no infinities, and two NaNs.
var e4m3 = func() (numbers [256]float32) {
	for code := range numbers {
		exp, mantissa := code>>3&15, float64(code&7)
		x := math.Ldexp(mantissa, -9)
		if exp > 0 {
			x = math.Ldexp(8+mantissa, exp-10)
		}
		if code&127 == 127 {
			x = math.NaN()
		}
		if code >= 128 {
			x = -x
		}
		numbers[code] = float32(x)
	}
	return numbers
}()
