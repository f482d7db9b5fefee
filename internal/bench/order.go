package bench

// order returns the order in which n methods run in a round. The method that ran before may slow a method
// down or speed it up (caches, clock rates), so the rounds form Williams designs: over n of them (2n if n
// is odd) each method is in each place equally often, and follows each other method equally often.
func order(n, round int) []int {
	seq := make([]int, n)
	for i := range seq { // 0, n−1, 1, n−2, …
		seq[i] = i / 2
		if i%2 == 1 {
			seq[i] = n - 1 - i/2
		}
	}
	mirror := n%2 == 1 && round/n%2 == 1
	for i := range seq {
		seq[i] = (seq[i] + round) % n
		if mirror {
			seq[i] = (2*n - 1 - seq[i]) % n
		}
	}
	return seq
}
