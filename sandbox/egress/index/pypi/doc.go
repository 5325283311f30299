// Package pypi serves an index of Python packages as it was at a time.
//
// It speaks the simple repository API (PEP 503 as HTML, PEP 691 as JSON) to programs inside, and asks the
// upstream for JSON, since only that tells when a file was uploaded (PEP 700). What is shown are files, not
// versions: those of one version may be uploaded years apart.
package pypi
