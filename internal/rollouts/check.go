package rollouts

import (
	"time"

	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"
)

// check holds a create request against what it may be, fills its defaults, and finds its task.
func (m *Manager) check(req *CreateRequest) (*tasks.Task, error) {
	if req.Mode == "" {
		req.Mode = monitor.Enforce
	}
	if req.Preset == "" {
		req.Preset = m.opt.Policy.Preset
	}
	if req.Preset == "" {
		req.Preset = monitor.Balanced
	}
	if err := checkWord("mode", req.Mode, monitor.Enforce, monitor.Shadow, monitor.Off); err != nil {
		return nil, err
	}
	if err := checkWord("preset", req.Preset, monitor.Balanced, monitor.Strict, monitor.Observe); err != nil {
		return nil, err
	}
	if err := m.checkAnswers(req); err != nil {
		return nil, err
	}
	if req.LeaseS < 0 || time.Duration(req.LeaseS)*time.Second > maxLease {
		return nil, refuse(CodeInvalidField, "field lease_s: %d is out of range; use 1 to %d seconds, or leave it out for %d",
			req.LeaseS, int(maxLease.Seconds()), int(m.opt.Lease.Seconds()))
	}
	if req.GroupID != nil && (*req.GroupID == "" || len(*req.GroupID) > 128) {
		return nil, refuse(CodeInvalidField, "field group_id: must be 1 to 128 bytes, or null")
	}
	if err := req.checkPatience(); err != nil {
		return nil, err
	}
	if err := checkPolicy(&req.Policy); err != nil {
		return nil, err
	}
	if err := checkLimits(req.Limits); err != nil {
		return nil, err
	}
	return m.taskOf(req)
}

// checkAnswers holds a request against how blocked and doubtful calls can be answered.
func (m *Manager) checkAnswers(req *CreateRequest) error {
	if req.Answers == "" {
		req.Answers = m.opt.Policy.Answers
	}
	if req.Answers == "" {
		req.Answers = monitor.AnswerDecoy
	}
	if err := checkWord("answers", req.Answers, monitor.AnswerDecoy, monitor.AnswerExplicit); err != nil {
		return err
	}
	for field, word := range map[string]string{"on_unsure": req.OnUnsure, "on_failure": req.OnFailure, "on_outage": req.OnOutage} {
		if word == "" {
			continue
		}
		if err := checkWord(field, word, monitor.OnExecute, monitor.OnDecoy, monitor.OnHold); err != nil {
			return err
		}
	}
	return nil
}

func checkWord(field, got string, want ...string) error {
	for _, w := range want {
		if got == w {
			return nil
		}
	}
	return refuse(CodeInvalidField, "field %s: unknown word %.40q; use one of %v", field, got, want)
}

func checkLimits(l *tasks.Limits) error {
	if l == nil {
		return nil
	}
	for _, f := range []struct {
		name   string
		got    float64
		lo, hi float64
	}{
		{"cpus", l.CPUs, 0.01, 1024}, {"memory_mb", float64(l.MemoryMB), 8, 4 << 20}, {"pids", float64(l.Pids), 8, 4 << 20},
		{"open_files", float64(l.OpenFiles), 64, 1 << 20}, {"disk_mb", float64(l.DiskMB), 1, 16 << 20},
		{"lifetime_s", float64(l.LifetimeS), 1, 7 * 24 * 3600},
	} {
		if f.got != 0 && (f.got < f.lo || f.got > f.hi) {
			return refuse(CodeInvalidField, "field limits.%s: %v is out of range; use %v to %v, or leave it out", f.name, f.got, f.lo, f.hi)
		}
	}
	return nil
}

// taskOf finds the request's task: by id, or the one that it brings.
func (m *Manager) taskOf(req *CreateRequest) (*tasks.Task, error) {
	inline := len(req.Task) > 0 && string(req.Task) != "null"
	switch {
	case inline && req.TaskID != "":
		return nil, refuse(CodeInvalidField, "fields task_id and task: give one of them, not both")
	case !inline && req.TaskID == "":
		return nil, refuse(CodeInvalidField, "field task_id: is missing; name a task of GET /v1/tasks, or give one in field task")
	case !inline:
		t, ok := m.tasks[req.TaskID]
		if !ok {
			return nil, refuse(CodeTaskNotFound, "there is no task %.100q; GET /v1/tasks lists those that the server was started with", req.TaskID)
		}
		return t, nil
	case m.opt.Inline == nil:
		return nil, refuse(CodeTaskInvalid, "field task: this server takes no inline tasks; use task_id")
	}
	t, err := m.opt.Inline(req.Task)
	if err != nil {
		return nil, &Error{Code: CodeTaskInvalid, Detail: "field task", Err: err}
	}
	if known, taken := m.tasks[t.ID]; taken && known != t {
		return nil, refuse(CodeTaskInvalid, "field task: the id %.100q is that of a task of the server; give the inline task another", t.ID)
	}
	return t, nil
}

// mergeLimits gives a task's limits with those of the request over them, and the defaults below.
func mergeLimits(task tasks.Limits, over *tasks.Limits) sandbox.Limits {
	l := task.Limits
	seconds := task.LifetimeS
	if over != nil {
		override(&l.CPUs, over.CPUs)
		override(&l.MemoryMB, over.MemoryMB)
		override(&l.Pids, over.Pids)
		override(&l.OpenFiles, over.OpenFiles)
		override(&l.DiskMB, over.DiskMB)
		override(&seconds, over.LifetimeS)
	}
	if seconds > 0 {
		l.Lifetime = time.Duration(seconds) * time.Second
	}
	return l.WithDefaults()
}

func override[T int | int64 | float64](to *T, v T) {
	if v != 0 {
		*to = v
	}
}
