#!/bin/sh
# Makes sure that a Docker daemon answers.
#
# One answers already: says so and ends at once. None does, and this is Debian or a child of it, and we are
# root: installs docker.io from the distribution's own packages where it is missing, and starts dockerd in the
# background; it needs no systemd. Elsewhere: says what to do.
#
# Idempotent, and safe to run twice at once. Exit status: 0 a daemon answers, 3 none can be had.
set -eu

say() { echo "ensure-docker: $*" >&2; }
die() { say "$*"; exit 3; }

# answers: does a daemon answer within 5 seconds, by whatever address the environment names?
answers() {
	command -v docker >/dev/null 2>&1 && timeout 5 docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

if answers; then
	say "a daemon answers: $(docker version --format '{{.Server.Version}}')"
	exit 0
fi
case "${DOCKER_HOST:-}" in
"" | unix:///var/run/docker.sock | unix:///run/docker.sock) ;;
*) die "DOCKER_HOST is $DOCKER_HOST and no daemon answers there: start it, or unset DOCKER_HOST" ;;
esac
[ "$(uname -s)" = Linux ] || die "no daemon answers: install and start Docker Desktop or another Docker engine, then try again"
[ "$(id -u)" = 0 ] || die "no daemon answers: start it (sudo systemctl start docker), let your user reach it (sudo usermod -aG docker \$USER), or run this as root"

logs=/var/log
[ -w "$logs" ] || logs=${TMPDIR:-/tmp}
log=$logs/dockerd-proctor.log

# One at a time from here on; who waited finds the daemon of the other.
exec 9>"${TMPDIR:-/tmp}/ensure-docker.lock"
if command -v flock >/dev/null 2>&1; then flock -w 600 9 || die "another run of this script holds the lock for ten minutes"; fi
if answers; then
	say "a daemon answers by now"
	exit 0
fi

# Packages, where a program is missing. A client without a daemon is common.
missing=""
command -v dockerd >/dev/null 2>&1 && command -v docker >/dev/null 2>&1 || missing="docker.io"
command -v runc >/dev/null 2>&1 || missing="$missing runc"
command -v iptables >/dev/null 2>&1 || missing="$missing iptables"
if [ -n "$missing" ]; then
	command -v apt-get >/dev/null 2>&1 || die "dockerd is not installed and this is no Debian: install Docker by your distribution's means, then try again"
	say "installing$([ "${missing# }" = "$missing" ] && echo " ")$missing"
	export DEBIAN_FRONTEND=noninteractive
	# A service that cannot start (no systemd) must not fail the installation; we start the daemon ourselves.
	install() { apt-get install -y -qq --no-install-recommends $missing ca-certificates >"$log.apt" 2>&1; }
	install || { apt-get update -qq >"$log.apt" 2>&1 && install; } || die "apt-get could not install $missing; see $log.apt"
fi

# mount_cgroups: without an init system nobody may have mounted the control groups that dockerd needs. Takes
# version 2 where the kernel keeps the controllers there, else version 1, one hierarchy a controller.
mount_cgroups() {
	grep -qE '^[^ ]+ [^ ]+ cgroup2? ' /proc/mounts && return 0
	say "mounting control groups"
	if mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; then
		grep -qw memory /sys/fs/cgroup/cgroup.controllers && return 0
		umount /sys/fs/cgroup
	fi
	mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup || die "the control groups cannot be mounted; a container needs to be privileged for that"
	for controller in $(awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups); do
		mkdir -p "/sys/fs/cgroup/$controller"
		mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller" || rmdir "/sys/fs/cgroup/$controller"
	done
}

# A service manager that runs is asked first; otherwise we start the daemon ourselves.
if [ -d /run/systemd/system ] && systemctl start docker >/dev/null 2>&1; then
	say "started by systemd"
elif ! pgrep -x dockerd >/dev/null 2>&1; then
	# A pid file of a daemon that is gone keeps a new one from starting.
	rm -f /var/run/docker.pid
	say "starting dockerd; its log is $log"
	mount_cgroups
	nohup dockerd >>"$log" 2>&1 9>&- </dev/null &
	daemon=$!
fi

ends=$(($(date +%s) + 90))
until answers; do
	why=""
	[ "$(date +%s)" -lt "$ends" ] || why="does not answer after 90 seconds"
	[ -z "${daemon:-}" ] || kill -0 "$daemon" 2>/dev/null || why="ended at once"
	if [ -n "$why" ]; then
		tail -n 5 "$log" >&2 2>/dev/null || true
		die "dockerd $why; the end of its log is above, the whole is $log"
	fi
	sleep 0.5
done
say "a daemon answers: $(docker version --format '{{.Server.Version}}')"
