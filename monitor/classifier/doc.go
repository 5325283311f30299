// Package classifier tells how much a call reads like the hacks, and how little like the honest calls, among labelled
// ones. It is a linear model over words, pieces of words and facts of the normalised event, trained by logistic
// regression (Fan et al., "LIBLINEAR", JMLR 9, 2008, has the objective) with hashed features (Weinberger et al., "Feature
// hashing for large scale multitask learning", ICML 2009), and, for texts that are neither very short nor long, two small
// networks over the words in their order (package convnet), whose log-odds are added.
//
// Rules know objects, paths and effects; the model knows what no list holds: that calls of that wording mostly were, or
// mostly were not, cheating. It is evidence beside theirs and never speaks against a resolved fact. A task's own names
// are replaced by what they are (its package, a hidden path), so that the model can learn nothing of single tasks.
package classifier
