module github.com/grovellm/grove/internal/grammar/suite

go 1.26.0

require (
	github.com/grovellm/grove v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
)

require (
	github.com/rivo/uniseg v0.4.7 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/grovellm/grove => ../../..
