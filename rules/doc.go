// Package rules holds rule packs: their schema, loader, lint, compiler, matcher, explanation and
// self-test, and the Event that they match on.
//
// Vocabulary: a Pack is a YAML file of rules; a rule says which facts of an Event look like
// cheating; a Hit is one rule matching one entity (one command, one file, one script, one package)
// of one Event. Any hit goes to the judge; a rule is there for recall.
//
// From a file to a hit: Load (strict YAML, every finding a Problem with file, line, column and code;
// see Codes) gives Packs; Compile makes a Set of them for one task's variables; a Session of it keeps
// one rollout's tags and matches Events to Hits. Lint, SelfTest, Explain, Format, Page and Schema
// serve those who write packs.
//
// Matching binds all conditions of a block to one entity. It is done twice in tests: plainly, which
// is the definition, and by dispatch on programs and a literal prefilter, which is the default.
//
// This package imports nothing of ours. Its self-test takes the normaliser as a function.
package rules
