// Package command has what the command lines of grove's programs share.
//
// In come the arguments of a process; out come a parsed command that runs, what a user reads where
// something is wrong, and an exit status. The commands themselves are in cmd/grove and cmd/grove-lab.
//
// Read app.go first: [Program.Main] parses, runs and ends. help.go makes the page of a command and
// manual.go the list of all in docs/cli.md and the manual page docs/grove.1. modelflags.go and
// modelarg.go say how a model is named, flags.go how a request is; open.go opens models, jobs.go has
// what trainings share.
package command
