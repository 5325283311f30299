// Package scan looks for cheating in trajectories that others recorded: each call goes through the
// normaliser, the rules with their sequences, and a judge, as a server's would in mode shadow, and what
// would not be allowed is reported with its evidence.
//
// A trajectory is worked on by one goroutine, its calls in order, since state goes from call to call;
// trajectories are spread over all processors. Documents are read one after another, and only what is
// suspected is kept, so that memory does not grow with the number of trajectories.
//
// What a sandbox could tell (which commit a ref is, whether a path is there) nobody can tell any more.
// Verdicts here rest on the task's variables and the text of the calls; a reader confirms them.
package scan
