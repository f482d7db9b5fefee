// Package command has the code that the command lines of grove's programs share.
//
// Input: the arguments of a process. Output: a parsed command that runs, error messages for the user,
// and an exit status. The commands themselves are in cmd/grove and cmd/grove-lab.
//
// Read app.go first: [Program.Main] parses, runs and ends. help.go makes the page of a command and
// manual.go the list of all in docs/cli.md and the manual page docs/grove.1. modelflags.go and
// modelarg.go say how a model is named, flags.go how a request is; open.go opens models, jobs.go has
// the code that trainings share.
package command
