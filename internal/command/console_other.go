//go:build !windows

package command

import "os"

func obeyEscapes(*os.File) {} // other terminals need not be asked
