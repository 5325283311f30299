package agent

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// exit is how a process ended.
type exit struct {
	code     int // 128+n after signal n
	signaled bool
}

// reaper is the only one in this process that waits for children: as PID 1 and subreaper it also
// gets orphans, so nothing else may call wait. Safe for concurrent use.
type reaper struct {
	mu      sync.Mutex // held over fork and registration, so that no child is reaped unregistered
	waiting map[int]chan exit
	started chan struct{} // wakes the loop out of having no children
}

func newReaper() *reaper {
	r := &reaper{waiting: map[int]chan exit{}, started: make(chan struct{}, 1)}
	go r.loop()
	return r
}

// start forks and gives the pid and a channel that gets the exit once.
func (r *reaper) start(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan exit, error) {
	done := make(chan exit, 1)
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	r.waiting[pid] = done
	select {
	case r.started <- struct{}{}:
	default:
	}
	return pid, done, nil
}

// orphansEvery is how often a process without children looks for one that was given to it: as PID 1 it
// also gets those of programs that were put into the sandbox from outside.
const orphansEvery = time.Second

// loop blocks in wait4 rather than following SIGCHLD, which would cost a call two more wakeups. With
// no child at all it waits for a start.
func (r *reaper) loop() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.ECHILD {
			select {
			case <-r.started:
			case <-time.After(orphansEvery):
			}
			continue
		}
		if err != nil || pid <= 0 {
			continue
		}
		r.mu.Lock()
		done := r.waiting[pid]
		delete(r.waiting, pid)
		r.mu.Unlock()
		if done != nil {
			done <- exitOf(ws)
			// Whoever waits for this runs first: on a sandbox's one CPU it would else have to sit out until the
			// runtime notices that the next wait4 blocks.
			runtime.Gosched()
		}
	}
}

func exitOf(ws syscall.WaitStatus) exit {
	if ws.Signaled() {
		return exit{code: 128 + int(ws.Signal()), signaled: true}
	}
	return exit{code: ws.ExitStatus()}
}
