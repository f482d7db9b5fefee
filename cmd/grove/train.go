package main

type trainCmd struct {
	trainHeadCmds
	Router trainRouterCmd `cmd:"" help:"Train a router, which chooses the vocabulary of each draft step."`
	Text   trainTextCmd   `cmd:"" help:"Fit the weights of the modifier +text for a head."`
}

func (trainCmd) Help() string {
	return `Trains draft heads for any model (docs/train-a-head.md). An interrupted command continues when it is run again,
and ends with the same weights.

Examples:
    grove train eagle -m model.gguf --text 'texts/*.txt'
    grove train jet -m model.gguf --prompts prompts.jsonl`
}
