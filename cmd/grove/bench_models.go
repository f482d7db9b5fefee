package main

import (
	_ "github.com/grovellm/grove/internal/drafters/drafttest/hostile" // what the controller is measured against
)
