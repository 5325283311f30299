package decoy

import (
	"fmt"

	"proctor/sandbox"
)

// answerFileTool answers a file tool in the box agent's own words.
func (m *Maker) answerFileTool(req Request, targets []target) Answer {
	p := req.Call.Path
	exit := 1
	a := Answer{Family: famNoFile, Action: actionDecoyed, Delay: m.delay("")}
	text := fmt.Sprintf("%s: no such file or directory\n", p)
	for _, t := range targets {
		if len(t.writes) > 0 && !denied(t.writes[0], m.vars) {
			a.Family = famWrite
			text = fmt.Sprintf("%s: read-only file system\n", p)
		}
	}
	a.Result = sandbox.Result{Output: []byte(text), Exit: &exit}
	return a
}
