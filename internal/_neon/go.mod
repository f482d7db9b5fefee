module github.com/grovellm/grove/internal/_neon

go 1.26.0
