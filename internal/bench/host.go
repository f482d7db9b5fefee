package bench

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// Machine describes this machine in a line.
func Machine() string {
	name := runtime.GOARCH
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s/%s, kernels up to %s", name, runtime.NumCPU(), runtime.GOOS,
		runtime.GOARCH, cpu.Best())
}

// Bandwidth measures how many bytes per second a number of threads read, as a median of several times.
func Bandwidth(threads int) (float64, error) {
	m, err := newMachine(threads)
	if err != nil {
		return 0, err
	}
	defer m.close()
	var v []float64
	for range 5 {
		v = append(v, m.bandwidth())
	}
	return median(v), nil
}
