package swerex

import (
	"context"
	"math"
	"regexp"
	"strings"
	"time"

	"proctor/internal/compat"
	"proctor/monitor"
)

// noTimeout is the longest that the shell waits where the client sets no limit, in seconds: the client
// means for ever, the tool has a ceiling.
const noTimeout = 3600

func (s *Server) createSession(r request) (any, error) {
	var in createSession
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	name := orDefault(in.Session)
	s.mu.Lock()
	open := s.sessions[r.who.Rollout]
	if open == nil {
		open = map[string]*session{}
		s.sessions[r.who.Rollout] = open
	}
	_, exists := open[name]
	if !exists {
		open[name] = &session{}
	}
	s.mu.Unlock()
	if exists {
		return nil, raise(classExists, "session %s already exists", name)
	}
	output := ""
	for _, file := range in.StartupSource {
		seen, err := s.tool(r.Context(), r, "bash", map[string]any{"command": "source " + quote(file)})
		if err != nil {
			return nil, err
		}
		output += seen.Output
	}
	return map[string]string{"output": output, "session_type": "bash"}, nil
}

func (s *Server) closeSession(r request) (any, error) {
	var in closeSession
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	name := orDefault(in.Session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[r.who.Rollout][name] == nil {
		return nil, raise(classNoSession, "session %q does not exist", name)
	}
	delete(s.sessions[r.who.Rollout], name)
	return map[string]string{"session_type": "bash"}, nil
}

// session gives an open session. After a restart of the server the first use opens it again: the shell
// itself was kept.
func (s *Server) session(r request, name string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.sessions[r.who.Rollout]
	if open == nil && name == "default" {
		open = map[string]*session{name: {}}
		s.sessions[r.who.Rollout] = open
	}
	if open[name] == nil {
		return nil, raise(classNoSession, "session %q does not exist", name)
	}
	return open[name], nil
}

func (s *Server) runInSession(r request) (any, error) {
	var in action
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	sess, err := s.session(r, orDefault(in.Session))
	if err != nil {
		return nil, err
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	switch {
	case in.ActionType == "bash_interrupt":
		return s.interrupt(r, sess)
	case sess.handle != "" || in.IsInteractiveCommand:
		return s.interactive(r, sess, in)
	}
	seen, err := s.bash(r, map[string]any{"command": in.Command, "timeout_s": seconds(in.Timeout)})
	if err != nil {
		return nil, err
	}
	return in.conclude(seen)
}

// conclude gives the observation of a command that ended, or raises what the action's check asks for.
func (in action) conclude(seen monitor.Observation) (any, error) {
	out := observation{Output: seen.Output, ExitCode: seen.ExitCode, SessionType: "bash"}
	if seen.TimedOut {
		return nil, raise(classTimeout, "timeout after %v seconds while running command %q", seconds(in.Timeout), in.Command)
	}
	switch in.Check {
	case "ignore":
		out.ExitCode = nil
	case "", "raise":
		if seen.ExitCode == nil || *seen.ExitCode != 0 {
			e := raise(classExit, "Command %q failed with exit code %s. Here is the output:\n%s", in.Command, number(seen.ExitCode), seen.Output)
			if in.ErrorMsg != "" {
				e.message = in.ErrorMsg + ": " + e.message
			}
			return nil, e
		}
	}
	return out, nil
}

// interactive starts a program that waits for input, or types into the one that runs, and reads until one
// of the expected texts shows or the program ends.
func (s *Server) interactive(r request, sess *session, in action) (any, error) {
	var seen monitor.Observation
	var err error
	if sess.handle == "" {
		seen, err = s.bash(r, map[string]any{"command": in.Command, "background": true})
	} else {
		seen, err = s.tool(r.Context(), r, "bash_input", map[string]any{"handle": sess.handle, "text": in.Command + "\n"})
	}
	if err != nil {
		return nil, err
	}
	if seen.Handle != nil {
		sess.handle = *seen.Handle
	}
	output := ""
	deadline := time.Now().Add(time.Duration(seconds(in.Timeout) * float64(time.Second)))
	for {
		seen, err = s.tool(r.Context(), r, "bash_output", map[string]any{"handle": sess.handle, "wait_s": 1})
		if err != nil {
			return nil, err
		}
		output += seen.Output
		if seen.Handle == nil { // it ended
			sess.handle = ""
			return observation{Output: output, ExitCode: seen.ExitCode, SessionType: "bash"}, nil
		}
		if found := expected(in.Expect, output); found != "" {
			return observation{Output: strings.TrimSuffix(output, found), ExpectString: found, SessionType: "bash"}, nil
		}
		if time.Now().After(deadline) {
			return nil, raise(classTimeout, "timeout after %v seconds while running command %q", seconds(in.Timeout), in.Command)
		}
	}
}

func (s *Server) interrupt(r request, sess *session) (any, error) {
	if sess.handle == "" {
		return observation{SessionType: "bash"}, nil
	}
	seen, err := s.tool(r.Context(), r, "bash_kill", map[string]any{"handle": sess.handle})
	if err != nil {
		return nil, err
	}
	sess.handle = ""
	return observation{Output: seen.Output, ExitCode: seen.ExitCode, SessionType: "bash"}, nil
}

// expected gives the text at the end of output that one of the patterns matches, "" for none. A pattern
// that is no expression is taken as it is.
func expected(patterns []string, output string) string {
	for _, p := range patterns {
		re, err := regexp.Compile("(?:" + p + `)\s*$`)
		if err != nil {
			re = regexp.MustCompile(regexp.QuoteMeta(p) + `\s*$`)
		}
		if m := re.FindString(output); m != "" {
			return m
		}
	}
	return ""
}

func (s *Server) bash(r request, args map[string]any) (monitor.Observation, error) {
	return compat.Call(r.Context(), s.host, r.who, r.key, "bash", args)
}

// tool is a call that is part of a longer exchange, and therefore without the request's key.
func (s *Server) tool(ctx context.Context, r request, name string, args map[string]any) (monitor.Observation, error) {
	return compat.Call(ctx, s.host, r.who, "", name, args)
}

func seconds(t *float64) float64 {
	if t == nil || *t <= 0 || math.IsNaN(*t) {
		return noTimeout
	}
	return math.Min(*t, noTimeout)
}

func orDefault(name string) string {
	if name == "" {
		return "default"
	}
	return name
}
