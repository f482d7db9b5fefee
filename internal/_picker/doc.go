// Package picker tests that the endpoint picker of the Gateway API Inference Extension reads
// grove's metrics. It is a module of its own: it needs Kubernetes' libraries, which take minutes to
// build.
package picker
