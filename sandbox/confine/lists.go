package confine

// Where the agent and its run folder lie inside. `docker run --init` mounts its init at the same path; the socket
// is where the agent listens (agent.DefaultSocket, which the host need not link in).
const (
	BoxInside    = "/sbin/docker-init"
	FolderInside = "/run/init"
	SocketName   = "ctl"
)

// Capabilities are what root inside keeps of Docker's fourteen, each with its reason, without the CAP_ in
// front. None reaches past the container: no NET_RAW (forged packets to neighbours), MKNOD (host disks),
// SYS_CHROOT, SETFCAP, AUDIT_WRITE. A copy each time.
func Capabilities() []string {
	return []string{
		"CHOWN",            // apt, pip and tar give files to their owners
		"DAC_OVERRIDE",     // root writes in other users' folders, as people expect of root
		"FOWNER",           // dpkg and tar chmod files that are not root's
		"FSETID",           // they keep set-id bits while doing so
		"KILL",             // the agent ends commands that run as another user
		"SETGID",           // dropping to the image's USER, su, apt's _apt
		"SETUID",           // the same
		"SETPCAP",          // the agent lowers the bounding set of what it starts
		"NET_BIND_SERVICE", // test servers on ports below 1024
	}
}

// MaskedPaths are hidden from a sandbox: Docker's own list of today, given in full since an old daemon
// knows fewer. A copy each time.
func MaskedPaths() []string {
	return []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap",
		"/sys/firmware",
	}
}

// ReadonlyPaths are Docker's own. A copy each time.
func ReadonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

const (
	// OOMScore makes the kernel, short of memory on the whole host, end a sandbox before the server or the daemon.
	OOMScore = 500
	// ShmBytes is the size of a private /dev/shm, inside the memory limit.
	ShmBytes = 64 << 20
)

// WritableDirs are the folders that a sandbox with a read-only root (sandbox.Spec.ReadOnlyRoot) can write to, each a
// tmpfs of its own within the memory limit. A copy each time.
func WritableDirs() []string { return []string{"/run", "/tmp", "/var/tmp"} }
