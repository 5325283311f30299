// Package tree reads and writes a folder of files that others wrote, or are writing at this moment, without ever
// leaving it: layers of images, whose tar streams may be made with malice, and the roots of running sandboxes.
//
// Every path is looked up by the kernel with the folder as its root (openat2, RESOLVE_IN_ROOT): links lead inside,
// ".." stops at the top, /proc's magic links are refused. What is made or read then goes by descriptor. There is no
// moment between a check and a use.
//
//   - Unpack takes a tar stream: of files to push, or of an image's layer with its whiteouts.
//   - Pack gives one.
//   - Copy makes an independent copy of an overlay's upper folder, marks of the overlay included.
//   - Remove removes a tree however deep it is.
//
// Linux 5.6 or newer. Owners are set by root only.
package tree
