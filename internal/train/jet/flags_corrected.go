// The flags of the commands that train DSpark and DFlash 2.

package jet

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// StartFlags are common to both commands.
type StartFlags struct {
	Name  string  `recipe:"-" help:"Folder below --dir for this head; default: that of the command's name." placeholder:"NAME"`
	Start *string `help:"Begin with the weights of this DFlash head, which says the shape of the block; rows then draft their own places, and the anchor's none." placeholder:"FILE" group:"Training"`
	Rank  *int    `help:"Rank of the correction." placeholder:"N" group:"Shape"`
}

// DSparkFlags vary the recipe of DSpark heads.
type DSparkFlags struct {
	StartFlags
	train.TextFlags
	train.CourseFlags
	BlockFlags
	Hard       *float32 `help:"Share of cross-entropy with the text in the loss; the rest is total variation from the target." placeholder:"S" group:"Training"`
	Confidence *float32 `recipe:"Weight" help:"Weight of the confidence head's loss; 0: there is no such head." placeholder:"W" group:"Training"`
	Markov     *string  `enum:"vanilla,gated" help:"Correction by the token before: by it alone, or gated by the row's state, which vLLM does not run." placeholder:"vanilla|gated" group:"Shape"`
	ShapeFlags `needs:"Start="`
}

// DFlash2Flags vary the recipe of DFlash 2 heads.
type DFlash2Flags struct {
	StartFlags
	train.TextFlags
	train.CourseFlags
	LossFlags
	BlockFlags
	Selection  *float32 `recipe:"Weight" help:"Weight of the selector's loss." placeholder:"W" group:"Training"`
	Kernel     *int     `help:"Rows that a convolution reads." placeholder:"N" group:"Shape"`
	Group      *int     `help:"Neighbouring numbers that share what a row adds to a convolution's weights; a divisor of the width." placeholder:"N" group:"Shape"`
	Top        *int     `help:"Tokens of a row that the selector scores." placeholder:"N" group:"Shape"`
	ShapeFlags `needs:"Start="`
}

// Help explains the command.
func (*DSparkFlags) Help() string {
	r := NewCorrectedRecipe(DSpark)
	return fmt.Sprintf(`A DSpark head is a DFlash head whose rows are corrected by the token before: W2·e is added to a row's logits, e that
token's row of W1, of rank %d. The anchor's row drafts too. A confidence head predicts how likely the next draft is accepted.

The loss is the paper's: %g cross-entropy with the text, %g total variation from the target's distribution, and the
confidence's binary cross-entropy. The rest is as in grove train jet --head bidirectional; --start continues from its head.

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/, loss.png, metrics.jsonl.

Examples:
    grove train dspark -m model.gguf --text 'texts/*.txt'
    grove train dspark --start models/dflash-q8_0.gguf --text 'texts/*.txt' --steps 200`, r.Rank, r.Hard, 1-r.Hard)
}

// Help explains the command.
func (*DFlash2Flags) Help() string {
	r := NewCorrectedRecipe(DFlash2)
	return fmt.Sprintf(`A DFlash 2 head is a DFlash head with convolutions over %d rows around the halves of its layers, and a selector that
re-scores the %d most probable tokens of a row by the token before, in %d dimensions.

The loss is the block's (loss %s), and the selector's: cross-entropy of the text over these tokens. The rest is as in
grove train jet --head bidirectional; --start continues from its head.

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/, loss.png, metrics.jsonl.

Examples:
    grove train dflash2 -m model.gguf --text 'texts/*.txt'
    grove train dflash2 --start models/dflash-q8_0.gguf --text 'texts/*.txt' --steps 200`, r.Kernel, r.Top, r.Rank, r.Loss)
}

// Folder names the head's folder below --dir.
func (f *DSparkFlags) Folder() string { return cmp.Or(f.Name, DSpark) }

// Folder names the head's folder below --dir.
func (f *DFlash2Flags) Folder() string { return cmp.Or(f.Name, DFlash2) }

// Recipe returns the recipe that the flags describe.
func (f *DSparkFlags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	return correctedRecipe(DSpark, target, f, &f.StartFlags, &f.CourseFlags, &f.ShapeFlags)
}

// Recipe returns the recipe that the flags describe.
func (f *DFlash2Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	return correctedRecipe(DFlash2, target, f, &f.StartFlags, &f.CourseFlags, &f.ShapeFlags)
}

func correctedRecipe(head string, target *model.Model, flags any, start *StartFlags, course *train.CourseFlags,
	shape *ShapeFlags) (train.HeadRecipe, error) {
	r := NewCorrectedRecipe(head)
	if start.Start != nil {
		r.Start = *start.Start
	}
	r, err := r.For(target)
	if err != nil {
		return nil, err
	}
	if course.Paper {
		r = r.AsPaper()
	}
	train.SetFlags(&r, flags)
	course.SetCourse(&r.Course)
	shape.setLayers(&r.Recipe)
	return &r, nil
}
