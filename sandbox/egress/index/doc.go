// Package index serves package indexes as they were at a time: what was uploaded later does not exist, nor
// does what of the task's own package holds its fix. So honest installing works, and the fixed version
// cannot be had.
//
// A mirror stands before one upstream index, which the operator names. Each kind has a package: pypi for
// Python packages, npm for those of Node. What they share is here: the Rule, and the Source by which an
// upstream is asked, with its cache, its bounds and its user. A listing without times of upload offers
// nothing, and the log says so: what has no time is taken for too young.
//
// Programs never name an address to fetch from. They name a package and a file, and that file has to stand
// in the same filtered listing; its address is taken from the upstream's listing. What is in a file is for
// the installer to hold against the hash in the listing.
package index
