// Package autograd computes the gradient of a loss through the layers of package nn: the tape, the
// gradient of each operation, the losses, and AdamW.
//
// Input: the operations that an [nn.Exec] runs; a [Tape] is its [nn.Recorder] and notes each one
// before it runs. [Tape.CrossEntropy] and [Tape.SmoothL1] end the pass, [Tape.Backward] goes back
// through the notes. Output: the gradients of a network's [Params], whose matrices the layers are
// built from: a network in training is exactly the network that serves.
//
// Read tape.go first, then add.go, the shortest gradient. An operation's method of the recorder
// stands beside its gradient; param.go has the trained tensors, product.go their three products,
// loss.go the head with its loss, adamw.go the optimiser.
package autograd
