// Package jinja renders chat templates as Python's jinja2 does in the environment that Hugging Face's
// transformers makes: an immutable sandbox with trim_blocks, lstrip_blocks and loop controls, its own
// tojson, raise_exception, strftime_now and the generation tag.
//
// In goes a template's text and variables from JSON; out comes text, or an error with the template's
// line. A template comes with a model and may be hostile: work, memory and nesting have limits. What
// jinja2 can and this package cannot is refused by name, never rendered otherwise.
//
// To read: lex.go and parse.go make a tree (ast.go); exec.go and eval.go walk it; value.go has
// Python's values, ops.go their operators, attr.go their attributes.
package jinja
