// Package npm serves an npm registry as it was at a time: to npm, yarn and pnpm.
//
// What is shown are versions, each with one tarball, by the times in the package's document (its packument).
// Programs inside may ask for the abbreviated document, which tells no times; the upstream is always asked
// for the full one. What else in a document tells of later versions is taken out or made anew: dist-tags,
// the time of the last change, the description and the readme, which are those of the newest version, and
// the words of a deprecation, which often name the version to move to.
//
// Paths are those of the public registry, GET /<name>, /<name>/<version or tag> and /<name>/-/<file>.tgz, so
// that the addresses in lockfiles, which npm takes to the registry that is set, are found. Searching,
// auditing, logging in and publishing are not there.
package npm
