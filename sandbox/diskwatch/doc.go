// Package diskwatch bounds what sandboxes write where their storage has no quota: it measures, and says
// when a sandbox has more than its limit. It knows folders of the host and process ids, no engine.
//
// Measuring means to walk a folder, which costs with the number of files in it; so it is done when it may
// matter. The used space of each file system is looked at twice a second, which costs one system call, and
// what it grew by is added up. A sandbox that had x bytes at its last measuring can have at most x plus
// that growth by now (less what others freed within the same half second); only when that exceeds its
// limit is it measured at once. Beside this every sandbox is measured from time to time. One walk is done
// at a time, and the walker rests after each for a multiple of what it took, so that all walking together
// takes a bounded part of one processor.
//
// A file that was deleted while a program has it open takes space that no folder shows. It is found among
// the open files, and the mapped ones, of the sandbox's processes.
//
// What cannot be measured within bounds, a tree deeper than a thousand folders or with more than four
// million files, counts as more than any limit: no honest work makes one, and who hides files in one is
// over the limit by intent.
package diskwatch
