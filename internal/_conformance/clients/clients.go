package main

// clients are the programs, in the order in which they run.
var clients = []*client{codex, claudeCode, opencode, aider, gptme}
