// Fitted weights.

package textrank

// BlockHead is of heads whose rows are the same below all nodes of a depth. Fitted to what grove's own target said after prompts of 192 tokens from the sources that its training held out: Go packages, GSM8K's
// and a novel's, two to one and one, 320 tokens each; with its causal head, at temperatures 0 and 1, on the nodes of the target's path
// that a tree could reach. The likelihood was the most, less a little for large weights. Weights of the noise, of which there is none at
// temperature 0, are the same for both.
var BlockHead = Fit{
	T0: Weights{
		wDrafter: 1.5, 1.15, 1.02, 1.09, 0.86, 0.76, 0.55,
		wDrafterAt: 0.21, -0.04, -0.08, -0.12, -0.22,
		wDrafterOff: -0.36,
		wRoot:       0.95, 0.73, 0.73, 1.15, 2.17,
		wNoise: 0.82, 0.82, 0.77, 0.7, 0.66, 0.76, 0.58,
		wNoise + matchClasses: 0.8, 0.27, 0.32, 0.36, 0.43, 0.56, 0.44,
		wNoiseAt: 0.48, -0.05, -0.2, -0.33, -0.37,
		wOtherAt: -1.23, -0.57, -0.41, -0.33, 0.44,
		wOff:    2.51,
		wBeyond: 0.66,
		wLast:   0.59,
		wSeen:   0, 1.56, 2.34, 2.49, 3.36, 3.37, 3.68,
		wSeen + matchClasses: 0, 0.28, 0.72, 0.96, 2, 1.87, 2.31,
		wShare: 0, 0.36, 0.37, 0.17, 0.58, 0.01, 0.34,
		wShare + matchClasses: 0, 1.69, 1.33, 1.67, 1.33, 0.47, 0.33,
		wShorter: 0, 0, 0.94, 1.02, 1.25, 1.25, 1.44,
		wShorter + matchClasses: 0, 0, 3.09, 2.28, 0.75, 0.36, 0.48,
		wLatest: 0, 1.11, 0.62, 1.17, 1.49, 2.47, 3.67,
		wLatest + matchClasses: 0, 1.82, 1.79, 0.87, 0.56, 1.06, 2.34,
		wLastTwice: 0, 0.69, 0.8, 0.16, 0.31, 1.26, 0.81,
		wLastTwice + matchClasses: 0, -0.15, -0.04, 0.44, -0.14, 0.99, 0.34,
		wOther: -0.78, 0.44, 0.64, 0.5, 0.47, 0.72, -0.73,
		wOther + matchClasses: 0, -0.41, -0.28, -0.82, -0.81, -1.78, -2.37,
	},
	T1: Weights{
		wDrafter: 0.91, 0.86, 0.8, 0.71, 0.6, 0.51, 0.44,
		wDrafterAt: 0.43, -0.06, -0.2, -0.29, -0.23,
		wDrafterOff: -0.02,
		wRoot:       0.03, 0.64, 1.34, 1.82, 1.5,
		wNoise: 0.82, 0.82, 0.77, 0.7, 0.66, 0.76, 0.58,
		wNoise + matchClasses: 0.8, 0.27, 0.32, 0.36, 0.43, 0.56, 0.44,
		wNoiseAt: 0.48, -0.05, -0.2, -0.33, -0.37,
		wOtherAt: -1.48, 0.36, 0.75, 0.92, 0.66,
		wOff:    0.26,
		wBeyond: 0.63,
		wLast:   0.07,
		wSeen:   0, 1.93, 2.03, 2.3, 2.68, 3.57, 4.3,
		wSeen + matchClasses: 0, -1.4, -0.53, 0.21, 0.56, 1.66, 1.42,
		wShare: 0, 0.29, 0.28, 0.5, 0.47, 0.23, 1.41,
		wShare + matchClasses: 0, 0.41, 0.79, 0.9, 0.57, 0.96, 1.51,
		wShorter: 0, 0, 0.04, 0, 0.74, 1.21, 1.8,
		wShorter + matchClasses: 0, 0, 0.39, 0.16, 0.58, -0.1, 0.16,
		wLatest: 0, 0.38, 0.52, 1.03, 1.45, 1.99, 1.72,
		wLatest + matchClasses: 0, -0.3, 0.63, 0.73, 0.82, 0.5, 0.53,
		wLastTwice: 0, 0.75, 0.95, 0.88, 0.71, 0.73, 1.41,
		wLastTwice + matchClasses: 0, 1.66, 1.11, 0.75, 1.24, 0.44, 0.91,
		wOther: 0.32, 0.01, -0.23, 0.13, 0.59, 1.27, -0.08,
		wOther + matchClasses: 0, 0.1, 0.33, -0.14, -0.16, -0.01, -1.75,
	},
}
