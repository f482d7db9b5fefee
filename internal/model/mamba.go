package model

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// MambaConfig is the shape of layers of Mamba-2.
type MambaConfig struct {
	Heads, Groups     int // the heads of a group share keys and queries
	HeadDim, StateDim int

	Plain bool // results are not normalised
	Rank  int  // of Mamba, before Mamba-2, where HeadDim is the width of one head: that of the time steps; 0: Mamba-2
}

// inner is the width of all heads.
func (m *MambaConfig) inner() int { return m.Heads * m.HeadDim }

// channels is the width of the convolution: values, keys and queries.
func (m *MambaConfig) channels() int { return m.inner() + 2*m.Groups*m.StateDim }

func (m *MambaConfig) validate() error {
	widest := maxWidth / maxHeads
	if m.Rank != 0 {
		widest = maxWidth
	}
	if m.Rank < 0 || m.Rank > maxWidth {
		return fmt.Errorf("time steps of Mamba have the rank %d: want 1 to %d", m.Rank, maxWidth)
	}
	for _, f := range []struct {
		what  string
		v, hi int
	}{{"heads", m.Heads, maxHeads}, {"groups", m.Groups, maxHeads}, {"dimensions of a head", m.HeadDim, widest},
		{"dimensions of a state", m.StateDim, maxWidth / maxHeads}} {
		if f.v < 1 || f.v > f.hi {
			return fmt.Errorf("Mamba-2 with %d %s: want 1 to %d", f.v, f.what, f.hi)
		}
	}
	if m.Heads%m.Groups != 0 {
		return fmt.Errorf("Mamba-2: %d heads do not form %d equal groups", m.Heads, m.Groups)
	}
	return nil
}

// checkTimeSteps refuses bounds of Δ. JSON cannot express infinity: transformers 5 writes an object.
func (h *hfConfig) checkTimeSteps() error {
	if len(h.TimeSteps) == 0 {
		return nil
	}
	if len(h.TimeSteps) == 2 && h.TimeSteps[0] == 0.0 {
		object, ok := h.TimeSteps[1].(map[string]any)
		if h.TimeSteps[1] == nil || ok && object["__float__"] == "Infinity" {
			return nil
		}
	}
	return fmt.Errorf("field \"time_step_limit\" is %v, and grove does not compute models with that value: "+
		"want 0 and infinity", h.TimeSteps)
}

// mambaHeadDim is the dimensions of a head, of heads that are so wide together.
func (h *hfConfig) mambaHeadDim(width int) int {
	if n, ok := h.MambaHeadDim.(float64); ok {
		return int(n)
	}
	return width / max(h.MambaHeads, 1)
}

const mambaKeys = "ssm.conv_kernel ssm.state_size ssm.group_count ssm.time_step_rank ssm.inner_size"

func readMambaKeys(k *keys, c *Config) {
	m := &c.Mamba
	c.Kernel = k.int("ssm.conv_kernel")
	m.StateDim, m.Groups = k.int("ssm.state_size"), k.int("ssm.group_count")
	m.Heads = k.int("ssm.time_step_rank")
	n := k.int("ssm.inner_size")
	if m.Heads > 0 {
		m.HeadDim = n / m.Heads
	}
	if m.inner() != n {
		k.refuse("ssm.inner_size", fmt.Sprintf("is %d, not a multiple of key %q, %d", n,
			k.name("ssm.time_step_rank"), m.Heads))
	}
}

func writeMambaKeys(c *Config, set func(string, any)) {
	m := &c.Mamba
	set("ssm.conv_kernel", uint32(c.Kernel))
	set("ssm.state_size", uint32(m.StateDim))
	set("ssm.group_count", uint32(m.Groups))
	set("ssm.time_step_rank", uint32(m.Heads))
	set("ssm.inner_size", uint32(m.inner()))
}

// mambaParts returns the parts of a layer of Mamba-2, whose names in folders begin with prefix.
func mambaParts(prefix string, when func(c *Config, layer int) bool) []part {
	normed := func(c *Config, layer int) bool { return !c.Mamba.Plain && (when == nil || when(c, layer)) }
	return slices.Concat(only(when,
		part{name: "ssm_in", folder: prefix + "in_proj", out: mambaIn, in: hidden},
		part{name: "ssm_conv1d", folder: prefix + "conv1d", out: mambaChannels, in: kernel, conv: true},
		part{name: "ssm_dt", ending: ".bias", folder: prefix + "dt_bias", out: mambaHeads, bare: true, param: true},
		part{name: "ssm_a", whole: true, folder: prefix + "A_log", out: mambaHeads, in: one, bare: true,
			flat: true, decay: true},
		part{name: "ssm_d", whole: true, folder: prefix + "D", out: mambaHeads, in: one, bare: true, flat: true}),
		only(normed, part{name: "ssm_norm", folder: prefix + "norm", out: mambaGroups, in: mambaGroup, flat: true}),
		only(when, part{name: "ssm_out", folder: prefix + "out_proj", out: hidden, in: mambaInner}))
}

// mamba builds a layer of Mamba-2.
func (b *builder) mamba(name func(part string) string) (nn.Recurrent, nn.Linear) {
	c, m := b.c, b.c.Mamba
	if err := m.validate(); err != nil { // Config.Validate takes one of zeros for none
		b.keep(err)
		return &nn.Mamba{}, nn.Linear{}
	}
	conv := b.convolution(name("ssm_conv1d"), m.channels())
	conv.Bias = b.bias(name("ssm_conv1d"), m.channels())
	layer := &nn.Mamba{
		In: b.linear(name("ssm_in"), c.size(mambaIn, 0), c.Hidden), Conv: conv,
		A: slices.Concat(b.vectors(name("ssm_a"), m.Heads, 1)...), Bias: b.vector(name("ssm_dt.bias"), m.Heads),
		Skip:  slices.Concat(b.vectors(name("ssm_d"), m.Heads, 1)...),
		Norm:  nn.Norm{Eps: c.NormEps},
		Heads: m.Heads, Groups: m.Groups, HeadDim: m.HeadDim, StateDim: m.StateDim,
	}
	if !m.Plain {
		layer.Norm.Weight = slices.Concat(b.vectors(name("ssm_norm.weight"), m.Groups, m.inner()/m.Groups)...)
	}
	return layer, b.linear(name("ssm_out"), c.Hidden, m.inner())
}
