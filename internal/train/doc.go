// Package train makes drafters for any model, and the project's own models.
//
// A [Network] is a model over trained parameters, built of the layers that serving runs (package
// nn); under a tape of package autograd they give gradients. [Run] trains one by a [Recipe], on rows that package
// train/data deals; [Job] ties the stages of the project's models together:
//
//	j := train.StandardJob(dir, runtime.GOROOT(), folder)
//	err = train.TrainTarget(ctx, j, train.TargetRecipe())                           // and the vocabulary before it
//	err = train.TrainDraft(ctx, j, train.DraftRecipe(), train.TargetRecipe().Shape) // distilled from the target
//
// A head is made for any model that package model opens, the job's Target:
//
//	j := train.Job{Dir: dir, Sources: texts, Target: m}
//	r := eagle.NewRecipe(3).For(m)
//	err = j.TrainHead(ctx, "eagle", &r)
//
// A [Loop] takes any [Learner] through its steps: a language model, or a head. A kind of head has a
// package of its own below this one, with its recipe, its gradient and its measures; [Heads] is
// what they share.
//
// # Same weights
//
// The result is a function of the recipe and the data: it does not depend on the threads, on
// interruptions or on when checkpoints are taken. Rows are a function of the seed and the step;
// gradients are summed in one order, whichever thread computes them; a checkpoint holds everything
// that the next step reads. So a run that is killed at any moment and started again ends with
// exactly the weights of an uninterrupted one.
//
// # Files
//
// A run's folder holds the last two checkpoints (safetensors, written completely or not at all),
// metrics.jsonl with a line per step, loss.png, and when it is done the model as GGUF (F32 and
// Q8_0) and as a Hugging Face folder.
//
// # To read
//
// Input: a target, texts and a recipe. Output: a head's or a model's files. Read loop.go first, the
// steps of any training, then heads.go, what trainings of heads share, and train/medusa, a short one.
// Gradients are those of internal/autograd.
package train
