// Package credit computes reference advantages and returns for recorded rollouts, so that a trainer can
// hold its own numbers against them. It trains nothing.
//
// # Words
//
// A token is an action token where the policy sampled it (action_mask 1), else an observation. A rollout
// is cut into segments by compaction; segments are ordered, and the order is the order of time. A turn is
// the run of action tokens of one model call. N_after(s) counts the action tokens of the segments behind s.
//
// # Two masks
//
// Advantages are computed over the action mask and trained over the loss mask. With one mask for both,
// leaving a blocked turn out of the loss would turn its tokens into observations and so change the
// advantage of every token before it.
//
// # Where the formulas come from
//
//   - GRPO: Shao et al., arXiv 2402.03300, eq. 4; without the standard deviation: Liu et al., arXiv 2503.20783.
//   - RLOO: Ahmadian et al., arXiv 2402.14740.
//   - GAE: Schulman et al., arXiv 1506.02438, eq. 16; observations are skipped, not stepped over.
//   - Decoupled GAE and length-adaptive lambda: VC-PPO, arXiv 2503.01491, and VAPO, arXiv 2504.05118.
//   - Cross-segment GAE: A[s,i] = (gamma*lambda)^N_after(s) * A_local[s,i].
//   - IcePop and double-sided importance sampling: the GLM-5 report.
//   - Generative critics: GenAC, arXiv 2604.10701.
//
// All functions are pure and safe for concurrent use. Numbers are float64; rewards and values have no
// unit, masks hold 0 and 1, indices count tokens from 0.
package credit
