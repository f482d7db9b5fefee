// Package picker tests that the endpoint picker of the Gateway API Inference Extension reads
// grove's metrics. It is a separate module, since it needs Kubernetes' libraries, which take
// minutes to build.
package picker
