// Package evalrun runs evaluations: n attempts at every task by a model or an outside agent, against a
// server, each graded, until all are done, whatever happens on the way.
//
// Vocabulary: a Plan says what is to be run and pins it; an Attempt is one rollout of one task, named
// by task and number; its Transcript is what the model said and was shown; a Result is how it ended.
// The run folder holds
//
//	run.json                         the plan
//	journal.jsonl                    a Result a line, appended when an attempt has ended
//	attempts/TASK/K.jsonl            the transcript, appended before anything acts on it
//	attempts/TASK/K.trajectory.json  the server's record
//	attempts/TASK/K.patch            what was graded
//	predictions.jsonl, swebench/     for the tools of SWE-bench
//	report.json, report.html, pages/ what a reader wants
//
// A run that is killed at any moment goes on where it stood: every request that makes or runs
// something carries an Idempotency-Key made from the plan's id, the task, the attempt and the turn, so
// that the server answers a repeated one with what came of the first; a model's reply is on disk
// before a call of it is made, so that nothing is asked, paid or run twice but the one reply that was
// under way.
package evalrun
