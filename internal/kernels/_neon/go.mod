module github.com/grovellm/grove/internal/kernels/_neon

go 1.26.0
