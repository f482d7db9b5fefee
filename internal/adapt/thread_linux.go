package adapt

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// modestly runs f on its own thread at a lower priority, so that it takes time that others leave. It
// returns when f is done.
func modestly(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness)
		f()
	}()
	<-done
}

const niceness = 5

// spent returns the processor time of the thread that modestly runs a function on, from an arbitrary
// start. Time that it waits for others costs them nothing.
func spent() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return time.Since(start)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var start = time.Now()
