//go:build !purego

#include "textflag.h"

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	YIELD
	ISB  $15
	RET
