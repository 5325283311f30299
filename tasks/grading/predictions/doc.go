// Package predictions grades patches that others made: SWE-bench's predictions in, the reports of
// SWE-bench's harness out, with no agent run between them.
//
// A row is a prediction as read; a Result is what became of it. Rows that are no prediction, or are for no
// task, fail alone. Results are appended to a journal as they come, under a key of patch and task, so that
// nothing is graded twice; a run that was stopped goes on where it stood.
package predictions
