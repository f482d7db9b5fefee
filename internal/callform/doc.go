// Package callform is how models write calls of tools. In go a chat template and, later, what the
// model writes; out come the form of its calls, which grammars hold it to, and the calls
// themselves. Read form.go first, then find.go, which finds the form by rendering calls through the
// template, and reader.go, which reads calls back as their text comes.
package callform

// Of is the form that a *chat.CallForm holds. Package chat sets it.
var Of func(form any) *Form
