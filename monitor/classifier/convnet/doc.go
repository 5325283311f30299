// Package convnet is a small convolutional network over words (Kim, "Convolutional Neural Networks for Sentence
// Classification", EMNLP 2014): it reads the words of a call in their order, where a bag of words knows none, beside the
// facts about the call and the words of what the task asks for. Plain Go, a few microseconds for a line.
//
// Data takes one way:
//
//	words -> vectors -> filters of two and of three words -> the most of each over the text --+
//	asks  -> vectors -> filters of three words -> the most of each --+----------------------+-+-> hidden -> log-odds
//	                                                                 +-> gated by the call -+ |
//	facts -> vectors -> their sum ------------------------------------------------------------+
//
// Training (train.go, backward.go, adam.go) keeps all as floats; a Net holds vectors in steps of one byte, and
// remembers what its filters make of each word.
package convnet
