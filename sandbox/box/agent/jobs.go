package agent

import (
	"time"

	"proctor/sandbox"
)

// jobsOut takes in what the shell's jobs have printed, where no call is running that it belongs to.
func (s *session) jobsOut() {
	select {
	case t := <-s.turn:
		if s.sh != nil {
			s.sh.out.drain()
		}
		s.turn <- t
	default:
	}
}

// killJobs kills what the shell left in the background: all that is neither the shell nor a background
// command with a handle of its own.
func (s *session) killJobs() sandbox.Result {
	select {
	case t := <-s.turn:
		defer func() { s.turn <- t }()
	case <-time.After(time.Second):
		return refuse("a command is running in the shell; its jobs can be killed once it has ended")
	}
	g := &group{tag: -2, others: true}
	if s.sh != nil {
		g.root = s.sh.pid
	}
	clean := s.procs.killTree(g, true)
	if s.sh != nil {
		s.sh.out.drain()
	}
	res := sandbox.Result{Handle: shellHandle}
	res.Output, res.Truncated = s.jobs.take()
	if !clean {
		res.Output = lastLine(res.Output, "some of its processes could not be killed")
	}
	return res
}
