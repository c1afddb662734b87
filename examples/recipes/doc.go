// Package recipes has the programs of docs/getting-started.md, docs/recipes.md, docs/testing.md and
// docs/production.md, as tests.
package recipes
