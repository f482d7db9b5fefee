package autograd

import "math"

// AdamW is the optimiser of Loshchilov and Hutter (2019): decoupled weight decay, which does not
// apply to vectors, that is, norms and biases.
type AdamW struct {
	Rate         float32
	Beta1, Beta2 float32
	Eps          float32
	Decay        float32
}

// Step changes a parameter by its gradient times clip. m and v are the optimiser's state for it;
// step counts from 1; rate is the schedule's share of Rate.
func (o *AdamW) Step(p *Param, m, v []float32, step int, rate, clip float32) {
	o.Part(p, m, v, 0, len(p.Data), step, rate, clip)
}

// Part is Step for elements [from, to).
func (o *AdamW) Part(p *Param, m, v []float32, from, to, step int, rate, clip float32) {
	b1, b2 := o.Beta1, o.Beta2
	c1 := float32(1 / (1 - math.Pow(float64(b1), float64(step))))
	c2 := float32(1 / (1 - math.Pow(float64(b2), float64(step))))
	lr := o.Rate * rate
	keep := float32(1)
	if !p.Vector {
		keep = 1 - lr*o.Decay
	}
	m = m[from:to]
	v = v[from:to]
	w := p.Data[from:to]
	for i, x := range p.Grad[from:to] {
		x *= clip
		m[i] = b1*m[i] + (1-b1)*x
		v[i] = b2*v[i] + (1-b2)*x*x
		w[i] = w[i]*keep - lr*m[i]*c1/(float32(math.Sqrt(float64(v[i]*c2)))+o.Eps)
	}
}
