//go:build !windows

package command

import "os"

func obeyEscapes(*os.File) {} // other terminals do without being asked
