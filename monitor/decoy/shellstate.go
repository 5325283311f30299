package decoy

import (
	"regexp"
	"strings"
)

var (
	// tracing makes the shell show commands as they run, or keep them: a spliced command would be
	// seen there, in this call and in every later one.
	tracing = regexp.MustCompile(`\bset\s+(-[a-zA-Z]*[xvTH]|-o\s+(xtrace|verbose|history|functrace|histexpand))|\bshopt\s+-\S+\s+(extdebug|cmdhist)|\btrap\b[^\n;]*\b(DEBUG|ERR|RETURN)\b|\bBASH_(XTRACEFD|COMMAND|ENV)\b|\bPS4=|(?m:^|[;&|({]\s*)(fc|history|script|caller)\b|\b(ba|da)?sh\s+(-\S+\s+)*[-+]\w*[xv]\w*\b|\bSHELLOPTS\b`)
	// replaced makes the words that a splice is made of mean something else.
	replaced = regexp.MustCompile(`\b(printf|command|builtin|exit|sed)\s*\(\)|\bfunction\s+(printf|exit|command|sed)\b|\balias\s+(printf|exit|sed|:)=|\benable\s+-n\b|(?m:^|[;&|({])\s*:\s*\(\)`)
	// looksBack shows what is typed, in the same call only.
	looksBack = regexp.MustCompile(`\bdeclare\s+-[a-zA-Z]*f|\btypeset\s+-[a-zA-Z]*f|(?m:^|[;&|({])\s*type\s|\bBASH_EXECUTION_STRING\b|/proc/(self|\$\$|\$\{?BASHPID\}?|\$PPID)/(cmdline|fd)`)
)

// watchShell learns from a call's text whether splices could be seen from now on.
func (m *Maker) watchShell(req Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range []string{req.Call.Command, req.Call.Text} {
		rest := traceOff.ReplaceAllString(traceOn.ReplaceAllString(text, ";"), ";")
		m.bent = m.bent || tracing.MatchString(rest) || replaced.MatchString(rest)
		m.traced = (m.traced || traceOn.MatchString(text)) && !untraced(text)
	}
}

var (
	// traceOn and traceOff are the plain ways to begin and end a trace, as commands of their own.
	traceOn  = regexp.MustCompile(`(?m)(?:^|[;&|({])\s*set\s+(?:-x|-o\s+xtrace)\s*(?:;|$)`)
	traceOff = regexp.MustCompile(`(?m)(?:^|;)\s*set\s+(?:\+x|\+o\s+xtrace)\s*(?:;|$)`)
	// traceEnd is a trace's end with nothing behind it that could begin one.
	traceEnd = regexp.MustCompile(`(?:^|[;\n])\s*set\s+(?:\+x|\+o\s+xtrace)\s*;?\s*(?:echo [\w $?]*)?$`)
)

// untraced reports whether after text the shell traces no more for certain: the trace's end stands
// at the end, at the top level.
//
// When in doubt, no: one that is ended in a branch, or behind what may end the shell, goes on.
func untraced(text string) bool {
	return traceEnd.MatchString(text) && !strings.ContainsAny(text, "{}()`") && !blocks.MatchString(text)
}

// blocks matches the words that begin a compound command, or end the shell or a part of it early.
var blocks = regexp.MustCompile(`\b(if|while|until|for|case|select|exit|return|exec|break|trap)\b|&&|\|\||set\s+-[a-zA-Z]*[ev]|<<`)

// showsItself reports whether a text could show its own splices.
func showsItself(text string) bool {
	return tracing.MatchString(text) || replaced.MatchString(text) || looksBack.MatchString(text)
}
