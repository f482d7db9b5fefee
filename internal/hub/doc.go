// Package hub fetches models from the Hugging Face hub into its cache on disk, and finds them
// there.
//
// The cache has the layout of the hub's Python library, so each finds the other's files:
//
//	models--ORG--REPO/blobs/HASH            contents, by SHA-256, or by git's SHA-1 for small files
//	models--ORG--REPO/blobs/HASH.incomplete the beginning of a content that is being fetched
//	models--ORG--REPO/snapshots/COMMIT/...  the repository's files: links to blobs
//	models--ORG--REPO/refs/main             the commit of branch main
//	.locks/models--ORG--REPO/HASH.lock      locked by the process that fetches the blob
//
// An incomplete blob is always a prefix of the content, so any process may continue it. A blob gets
// its name only after the hash of the file on disk was compared.
//
// Input: a model's name, ORG/REPO with an optional file. Output: a path to open. Read pull.go first,
// which fetches what the cache lacks; choose.go says which files of a repository are the model, offers.go
// which heads go with it. Package hub/catalog finds models on disk with the heads beside them.
package hub
