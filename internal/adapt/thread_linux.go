package adapt

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// modestly runs f on a thread of its own, to which the system gives time that others leave, and
// returns when it is done.
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

// spent is the processor time of the thread that modestly runs a function on, from any moment on.
// What it waits for others is no cost of theirs.
func spent() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return time.Since(start)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var start = time.Now()
