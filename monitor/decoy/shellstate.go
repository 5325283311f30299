package decoy

import "regexp"

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
	for _, text := range []string{req.Call.Command, req.Call.Text} {
		if tracing.MatchString(text) || replaced.MatchString(text) {
			m.mu.Lock()
			m.traced = true
			m.mu.Unlock()
		}
	}
}

// showsItself reports whether a text could show its own splices.
func showsItself(text string) bool {
	return tracing.MatchString(text) || replaced.MatchString(text) || looksBack.MatchString(text)
}
