// Package jinja renders chat templates as Python's jinja2 does in the environment that Hugging Face's
// transformers makes: an immutable sandbox with trim_blocks, lstrip_blocks and loop controls, its own
// tojson, raise_exception, strftime_now and the generation tag. As in llama.cpp, lists have append and pop,
// and tojson takes generators.
//
// Input: a template's text and variables from JSON. Output: text, or an error with the template's
// line. A template comes with a model and may be hostile: work, memory and nesting are limited.
// Features of jinja2 that this package lacks are refused by name, never rendered differently.
//
// To read: lex.go and parse.go make a tree (ast.go); exec.go and eval.go walk it; value.go has
// Python's values, ops.go their operators, attr.go their attributes.
package jinja
