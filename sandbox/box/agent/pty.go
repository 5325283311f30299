package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
)

// terminalLimit bounds the terminals at the same time: a screen of the largest size costs some ten MiB.
const terminalLimit = 8

// tty is the terminal of a background command: the master side of a pseudo terminal, and a screen that
// what comes out of it is drawn on.
//
// The screen is drawn here and not on the host: what a program draws is an adversary's bytes, and the
// worst that they can do to an emulator in this process is to end a sandbox that the adversary may end anyway.
type tty struct {
	in     *os.File // the master again, for input and size
	screen *screen
}

// openTTY makes a terminal for who. slave is to be given to a child and closed; master is not blocking.
func openTTY(who identity, rows, cols int) (master int, slave *os.File, err error) {
	master, err = openMaster()
	if err != nil {
		return -1, nil, fmt.Errorf("no terminal: %w", err)
	}
	fd, err := peer(master)
	if err == nil {
		err = errors.Join(setSize(master, rows, cols), unix.Fchown(fd, int(who.uid), -1))
		slave = os.NewFile(uintptr(fd), "tty")
	}
	if err != nil {
		_ = unix.Close(master)
		if slave != nil {
			slave.Close()
		}
		return -1, nil, fmt.Errorf("no terminal: %w", err)
	}
	return master, slave, nil
}

// openMaster opens the multiplexer, and nothing that was put in its place.
func openMaster() (int, error) {
	var err error
	for _, path := range []string{"/dev/pts/ptmx", "/dev/ptmx"} {
		var fd int
		if fd, err = unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err != nil {
			continue
		}
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && (st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(5, 2)) {
			err = fmt.Errorf("%s is not the terminal multiplexer", path)
		}
		if err == nil {
			if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
				return fd, nil
			}
		}
		_ = unix.Close(fd)
	}
	return -1, err
}

// peer opens the other side of a master, by itself where the kernel can (Linux 4.13), else by its path.
func peer(master int) (int, error) {
	flags := unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, uintptr(flags))
	if errno == 0 {
		return int(fd), nil
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return -1, errors.Join(errno, err)
	}
	return unix.Open("/dev/pts/"+strconv.Itoa(n), flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

func setSize(fd, rows, cols int) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
}

// terminfo are where descriptions of terminals lie.
var terminfo = []string{"/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo"}

// terminalEnv sets TERM, which is neutral elsewhere, to the best of ours that the image describes.
func terminalEnv(env []string) []string {
	if term := lookup(env, "TERM"); term != "" && term != "dumb" {
		return env
	}
	for _, name := range []string{"xterm-256color", "xterm", "vt100"} {
		for _, dir := range terminfo {
			if _, err := os.Stat(filepath.Join(dir, name[:1], name)); err == nil {
				return mergeEnv([]string{"TERM=" + name}, env)
			}
		}
	}
	return mergeEnv([]string{"TERM=xterm"}, env) // programs know that one by heart
}

// onTTY starts text on a terminal of its own.
func (h *handles) onTTY(hd *handle, c command, rows, cols int) error {
	master, slave, err := openTTY(c.who, rows, cols)
	if err != nil {
		return err
	}
	defer slave.Close()
	again, err := unix.FcntlInt(uintptr(master), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(master)
		return err
	}
	hd.stdin = os.NewFile(uintptr(again), "tty")
	raw, err := hd.stdin.SyscallConn()
	if err != nil {
		return errors.Join(err, unix.Close(master), hd.stdin.Close())
	}
	scr := newScreen(rows, cols, func(b []byte) { // a program that reads nothing loses answers, and holds nobody up
		_ = raw.Control(func(fd uintptr) { _, _ = unix.Write(int(fd), b) })
	})
	hd.tty, hd.out = &tty{hd.stdin, scr}, scr
	hd.pump = h.pipes.read(master, scr)
	c.files, c.tty, c.env = []uintptr{slave.Fd(), slave.Fd(), slave.Fd()}, true, terminalEnv(c.env)
	if hd.child, err = h.procs.run(c); err != nil {
		hd.stdin.Close()
	}
	return err
}

// sizeOf gives the size that a call asks for, or what stands where it asks for none.
func sizeOf(call sandbox.Call, rows, cols int) (int, int, error) {
	if call.Rows < 0 || call.Rows > sandbox.MaxRows || call.Cols < 0 || call.Cols > sandbox.MaxCols {
		return 0, 0, fmt.Errorf("a terminal has at most %d rows and %d cols", sandbox.MaxRows, sandbox.MaxCols)
	}
	if call.Rows > 0 {
		rows = call.Rows
	}
	if call.Cols > 0 {
		cols = call.Cols
	}
	return rows, cols, nil
}

// resize gives the terminal another size; the kernel tells the program.
func (t *tty) resize(call sandbox.Call) error {
	rows, cols := t.screen.size()
	rows, cols, err := sizeOf(call, rows, cols)
	if err != nil {
		return err
	}
	raw, err := t.in.SyscallConn()
	if err != nil {
		return err
	}
	t.screen.resize(rows, cols)
	if ctlErr := raw.Control(func(fd uintptr) { err = setSize(int(fd), rows, cols) }); ctlErr != nil {
		return ctlErr
	}
	return err
}

// typed gives what a call types: its text, then its keys.
func (hd *handle) typed(call sandbox.Call) (text string, end bool, err error) {
	if hd.tty == nil {
		if len(call.Keys) == 1 && strings.EqualFold(call.Keys[0], "ctrl-d") {
			return call.Text, true, nil
		}
		if len(call.Keys) > 0 || call.Rows != 0 || call.Cols != 0 {
			return "", false, errors.New("the command has no terminal: start it with pty for keys and size; ctrl-d alone ends its input")
		}
		return call.Text, false, nil
	}
	var b strings.Builder
	b.WriteString(call.Text)
	application := hd.tty.screen.application()
	for _, key := range call.Keys {
		text, err := sandbox.KeyBytes(key, application)
		if err != nil {
			return "", false, err
		}
		b.WriteString(text)
	}
	return b.String(), false, nil
}

// settleFor is how long a screen has to stand still to count as drawn, and settleWithin the longest wait for that.
const (
	settleFor    = 60 * time.Millisecond
	settleWithin = 500 * time.Millisecond
)

// settled waits for a screen that something was just drawn on to be whole.
func (t *tty) settled(ended <-chan struct{}, within time.Duration) {
	deadline := time.Now().Add(min(within, settleWithin))
	for {
		quiet := time.Since(t.screen.lastWrite())
		if quiet >= settleFor || time.Now().After(deadline) {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(settleFor - quiet):
		}
	}
}

// last takes what a program wrote before its end: the kernel hands it over in its own time, and says when that was
// all, unless a child still holds the terminal.
func (t *tty) last(p *pump) {
	select {
	case <-p.done:
	case <-time.After(settleWithin):
	}
}
