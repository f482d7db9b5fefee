package main

import "slices"

// clients are the programs, in the order in which they run.
var clients = slices.Concat(
	[]*client{codex, claudeCode, opencode, aider, gptme, generic(codex), generic(claudeCode), generic(opencode)},
	frameworks,
	[]*client{litellm, homeAssistant, lmEval, guidellm, promptfoo, vendorTypes},
)
