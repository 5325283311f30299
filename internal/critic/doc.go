// Package critic serves generative critics: value models that reason first and then say how likely it is
// that a rollout will succeed, told how big the policy is and how often it succeeds lately
// (GenAC, arXiv 2604.10701).
//
// Words. A state is a point of a rollout before a turn: everything the policy has seen by then, and
// nothing after. Conditioning is what the critic is told beside the state. An answer is an integer 0 to
// 10; the value is a tenth of it. A pair is a state, its conditioning and the return that followed:
// what a critic trains on.
//
// The prefix of a state holds what the agent was shown, decoys included, since its later actions hang on
// that; it never holds a verdict, which the policy does not see either.
package critic
