// Package index serves a package index as it was at a time: files that were uploaded later do not exist,
// nor do those of the task's own package that hold its fix. So honest installing works, and the fixed
// version cannot be had.
//
// A Mirror stands before one upstream index, which the operator names. It speaks the simple repository
// API (PEP 503 as HTML, PEP 691 as JSON) to programs inside, and asks the upstream for JSON, since only
// that tells when a file was uploaded (PEP 700). A file without a time is taken for too young: an upstream
// that tells no times offers nothing, and the log says so.
//
// Programs never name an address to fetch from. They name a project and a file, and that file has to stand
// in the same filtered listing; its address is taken from the upstream's listing. What is in a file is for
// pip to hold against the hash in the listing.
package index
