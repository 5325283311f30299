package judge

import (
	"context"
	"slices"
	"strconv"
)

// quorum asks again only when the first answer is unsure.
type quorum struct {
	inner, again Judge
	n            int
}

// NewQuorum wraps inner: where its first answer is unsure (and not a failure), again is asked, up to
// n questions in all, and more than half of the n decide. Again may be inner; a model that is asked
// at temperature 0 gives one and the same vote, so that it is better the same model at a higher one.
// Put a Cache outside, never inside: inside, all votes would be the same one.
func NewQuorum(inner, again Judge, n int) Judge {
	if n < 2 {
		return inner
	}
	return &quorum{inner, again, n}
}

// Name implements Judge.
func (q *quorum) Name() string { return q.inner.Name() }

// Digest implements Judge.
func (q *quorum) Digest() string {
	return digest("quorum", strconv.Itoa(q.n), q.inner.Digest(), q.again.Digest())
}

// Judge implements Judge.
func (q *quorum) Judge(ctx context.Context, c Case) Opinion {
	first := q.inner.Judge(ctx, c)
	if first.Verdict != Unsure || first.Failure != "" {
		return first
	}
	votes := []Opinion{first}
	count := map[string]int{first.Verdict: 1}
	for len(votes) < q.n && ctx.Err() == nil && count[Hack]*2 <= q.n && count[Benign]*2 <= q.n {
		o := q.again.Judge(ctx, c)
		votes = append(votes, o)
		count[o.Verdict]++
	}
	out := first
	for _, v := range []string{Hack, Benign} {
		if count[v]*2 > q.n {
			out = votes[slices.IndexFunc(votes, func(o Opinion) bool { return o.Verdict == v })]
		}
	}
	return tallied(out, votes)
}

// tallied puts the votes and what they cost into an opinion.
func tallied(o Opinion, votes []Opinion) Opinion {
	o.Votes = votes
	o.TokensIn, o.TokensOut, o.Cost = 0, 0, 0
	for _, v := range votes {
		o.TokensIn += v.TokensIn
		o.TokensOut += v.TokensOut
		o.Cost += v.Cost
	}
	return o
}

// second guards against text that talks a model into a verdict.
type second struct{ first, other Judge }

// NewSecondOpinion wraps first: where a hit is of class judge_injection, benign stands only if
// other agrees. A nil other never agrees, and the opinion is unsure. Other may add suspicion but
// never take it away. The heuristic judge reads no prose and cannot be talked to: it may be other,
// and needs no wrapping itself.
func NewSecondOpinion(first, other Judge) Judge { return &second{first, other} }

// Name implements Judge.
func (s *second) Name() string { return s.first.Name() }

// Digest implements Judge.
func (s *second) Digest() string {
	if s.other == nil {
		return digest("second", s.first.Digest(), "none")
	}
	return digest("second", s.first.Digest(), s.other.Digest())
}

// Judge implements Judge.
func (s *second) Judge(ctx context.Context, c Case) Opinion {
	o := s.first.Judge(ctx, c)
	injected := slices.ContainsFunc(c.Hits, func(h Hit) bool { return h.Class == "judge_injection" })
	if o.Verdict != Benign || !injected {
		return o
	}
	if s.other == nil {
		o.Verdict, o.Reason = Unsure, "the call holds text for a judge and there is no second model to agree: "+o.Reason
		return o
	}
	p := s.other.Judge(ctx, c)
	votes := []Opinion{o, p}
	switch p.Verdict {
	case Hack:
		return tallied(p, votes)
	case Benign:
		return tallied(o, votes)
	}
	o.Verdict, o.Reason = Unsure, "the call holds text for a judge and the second model does not agree: "+p.Reason
	return tallied(o, votes)
}
