// Package grading turns a rollout's work into a tasks.Grade, in a sandbox that the agent never
// touched.
//
// Why it is built as it is. Everything that the agent could write is read as hostile: its files, its
// .git, its attributes, its idea of a test folder, and the report that its code, running inside the
// test process, may rewrite. So:
//
//   - The patch is made on the host (repo, import, diff). The working folder comes out of the
//     agent's sandbox as a tar stream and goes into a bare repository of ours as plain blobs; it is
//     never unpacked to disk, and the agent's .git is never read. A bare repository has no work
//     tree, so no attribute, filter or hook of the agent's can speak.
//   - The patch is applied on the host too (apply), to the tree of a fresh sandbox. Then test paths
//     are taken from the base whole (protect), and files that steer the test runner from inside the
//     tree are put back (pin). Only then are the changed files carried into the fresh sandbox.
//   - Hidden tests go in, with sentinel tests of random names beside them (sentinel). The command
//     runs without network.
//   - A pass needs witnesses that agree (witness): the exit status, the structured report, the
//     runner's own summary, the expected ids, and the sentinels.
//
// What stays open: code under test that forges, selectively and consistently, every witness from
// inside the test process. Reading the patch is for that; see Options.Review.
//
// InPlace is the opposite of all this, on purpose: see there.
package grading
