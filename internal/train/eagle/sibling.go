package eagle

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/grovellm/grove/internal/train"
)

// SiblingRecipe is a family with a larger vocabulary, made by the recipes of the shipped one: to
// see what a drafter's output head costs where it is a larger part, and what shortlists of it save.
type SiblingRecipe struct {
	Target train.Recipe
	Head   Recipe
	Router RouterRecipe
}

// NewSiblingRecipe is a family of twice the vocabulary. It is made to be compared with itself, so
// it takes shorter courses, and less text of the target's, than the shipped one: about half an hour
// on four cores.
func NewSiblingRecipe() SiblingRecipe {
	r := SiblingRecipe{Target: train.TargetRecipe(), Head: NewRecipe(3), Router: NewRouterRecipe()}
	r.Target.Shape.Vocab *= 2
	r.SetText(5, 1)
	r.Target.Steps = 500
	r.Head.Steps = 500
	r.Router.Steps = 300
	return r
}

// SetText makes the target write so many files of texts, of one length and of twice that, for head
// and router.
func (r *SiblingRecipe) SetText(short, long int) {
	for _, t := range []*train.HeadText{&r.Head.HeadText, &r.Router.HeadText} {
		t.Short.Files, t.Long.Files = short, long
	}
}

// Sibling makes the family in the job's folder: vocabulary, target, the EAGLE head in DIR/eagle and
// its router in DIR/router.
func Sibling(ctx context.Context, j train.Job, r SiblingRecipe) error {
	target := r.Target.Shape.Config()
	if err := errors.Join(r.Head.Check(&target), r.Router.Prepare(&j)); err != nil {
		return err
	}
	if err := train.TrainTarget(ctx, j, r.Target); err != nil {
		return err
	}
	m, err := j.OpenTarget()
	if err != nil {
		return err
	}
	defer m.Close()
	if err := j.TrainHead(ctx, "eagle", &r.Head); err != nil {
		return err
	}
	r.Router.Head = filepath.Join(j.Dir, "eagle", "model-q8_0.gguf")
	return j.TrainHead(ctx, "router", &r.Router)
}
