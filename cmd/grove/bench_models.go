package main

import (
	_ "github.com/grovellm/grove/internal/drafters/drafttest/hostile" // drafters to measure the controller against
)
