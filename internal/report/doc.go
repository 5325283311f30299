// Package report renders what scans and evaluation runs found: SARIF for code hosts, and HTML pages
// that need nothing but themselves.
//
// Most of the text on these pages was written by agents that may be hostile. It goes through
// html/template, never around it; pages hold no script, and a policy in their head forbids any, as it
// forbids loading from elsewhere. Charts are SVG made here from numbers.
package report
