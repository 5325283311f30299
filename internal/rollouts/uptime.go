package rollouts

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Clocks can be set, the time since the machine's boot cannot. Within one server Go's times carry a monotonic reading; a
// lifetime that another server takes up is measured by the boot's, so that a clock that was set meanwhile ends no
// rollout early, by what would count as the model's doing, and lets none live on. Another boot has the wall clock alone.

// uptime is a moment of one boot. The zero value is none.
type uptime struct {
	Boot string        `json:"boot"`
	At   time.Duration `json:"at"`
}

// sinceBoot asks the kernel. Zero where it does not tell.
func sinceBoot() uptime {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var ts unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return uptime{}
	}
	return uptime{strings.TrimSpace(string(id)), time.Duration(ts.Nano())}
}

// endsAfter sets the end of a lifetime that begins now.
func (m *Manager) endsAfter(d *document, now time.Time, lifetime time.Duration) {
	d.Deadline, d.Ends = now.Add(lifetime), uptime{}
	if up := m.opt.uptime(); up.Boot != "" {
		d.Ends = uptime{up.Boot, up.At + lifetime}
	}
}

// deadline gives the end of a stored lifetime by the present clock.
func (m *Manager) deadline(d *document) time.Time {
	if up := m.opt.uptime(); up.Boot != "" && up.Boot == d.Ends.Boot {
		return m.opt.Clock().Add(d.Ends.At - up.At)
	}
	return d.Deadline
}
