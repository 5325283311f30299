// Package rules holds rule packs: their schema, loader, lint, compiler, matcher, explanation and
// self-test, and the Event that they match on.
//
// Vocabulary: a Pack is a YAML file of rules; a rule says which facts of an Event look like
// cheating; a Hit is one rule matching one entity (one command, one file, one script, one package)
// of one Event. Any hit goes to the judge; a rule is there for recall.
//
// This package imports nothing of ours. Its self-test takes the normaliser as a function.
package rules
