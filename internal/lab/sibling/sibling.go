// Package sibling trains a family of models with a larger vocabulary than the shipped one, to study output heads.
package sibling

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/eagle"
)

// Recipe is a family with a larger vocabulary, made by the recipes of the shipped one: to
// see what a drafter's output head costs where it is a larger part, and what shortlists of it save.
type Recipe struct {
	Target train.Recipe
	Head   eagle.Recipe
	Router eagle.RouterRecipe
}

// NewRecipe is a family of twice the vocabulary. It is made to be compared with itself, so
// it takes shorter courses, and less text of the target's, than the shipped one: about half an hour
// on four cores.
func NewRecipe() Recipe {
	r := Recipe{Target: train.TargetRecipe(), Head: eagle.NewRecipe(3), Router: eagle.NewRouterRecipe()}
	r.Target.Shape.Vocab *= 2
	r.SetText(5, 1)
	r.Target.Steps = 500
	r.Head.Steps = 500
	r.Router.Steps = 300
	return r
}

// SetText makes the target write so many files of texts, of one length and of twice that, for head
// and router.
func (r *Recipe) SetText(short, long int) {
	for _, t := range []*train.HeadText{&r.Head.HeadText, &r.Router.HeadText} {
		t.Short.Files, t.Long.Files = short, long
	}
}

// Train makes the family in the job's folder: vocabulary, target, the EAGLE head in DIR/eagle and
// its router in DIR/router.
func Train(ctx context.Context, j train.Job, r Recipe) error {
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
