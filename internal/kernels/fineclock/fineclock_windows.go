package fineclock

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel    = windows.NewLazySystemDLL("kernel32.dll")
	counter   = kernel.NewProc("QueryPerformanceCounter")
	frequency = kernel.NewProc("QueryPerformanceFrequency")
)

func init() {
	start, first := time.Now(), query(counter)
	perSecond := query(frequency) // neither fails since Windows XP
	Now = func() time.Time {
		n := query(counter) - first
		return start.Add(time.Duration(n/perSecond)*time.Second + time.Duration(n%perSecond*1e9/perSecond))
	}
}

func query(p *windows.LazyProc) (n int64) {
	_, _, _ = syscall.SyscallN(p.Addr(), uintptr(unsafe.Pointer(&n)))
	return n
}
