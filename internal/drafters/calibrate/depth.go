package calibrate

// DepthClasses is how many classes of depth are distinguished in judging nodes: depths 1, 2, 3 and 4,
// 5 to 8, and beyond.
const DepthClasses = 5

// DepthClass returns the class of a depth, from 0.
func DepthClass(depth int) int {
	switch {
	case depth <= 2:
		return max(depth, 1) - 1
	case depth <= 4:
		return 2
	case depth <= 8:
		return 3
	}
	return 4
}
