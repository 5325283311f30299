#!/bin/bash
# Every test, in phases, each with the time that it took. Exit status: 0 all passed, 1 some failed.
#
#   race     every package that shares memory between goroutines (it imports sync or serves HTTP), with the race detector
#            and -short. Left out by -short are tests that say so: those that need Docker, where the work is
#            done by daemons and sandboxes that the detector does not see and its cost (tenfold on the
#            corpora) would only starve their time limits, and those that read the corpora line by line on
#            one goroutine. So is the command line, whose tests are programs run one after another; what they
#            run is tested by its own packages.
#   plain    the other packages, and those of the first phase from which -short left something out.
#   box      the box agent's package, which holds calls to time limits: alone.
#   engines  the contract on each engine, which waits more than it computes: two at a time.
#   docker   the rest of what needs Docker: two at a time.
#
# Nothing of the last three comes from the cache, which does not see the daemon that results depend on. go vet
# is left to lint.sh. The phases without the detector build as `make build` does, so that nothing is compiled
# twice.
set -uo pipefail
cd "$(dirname "$0")/.."
export PROCTOR_REQUIRE_DOCKER=1
status=0

alone="proctor/sandbox/box"
engines="proctor/sandbox/docker proctor/sandbox/oci"
patient="proctor/cmd/proctor proctor/tasks/grading proctor/tasks proctor/monitor/decoy"
format='{{.ImportPath}} {{.Dir}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}'
packages=$(go list -f "$format" ./...) || exit 1

# shared prints the packages of the first phase; others the rest, but for those of the later phases.
shared() { awk '$1 != "proctor/cmd/proctor" && / (sync(\/atomic)?|net\/http)( |$)/ { print $1 }' <<<"$packages"; }
others() {
	local name folder
	awk '{ print $1, $2 }' <<<"$packages" | while read -r name folder; do
		[[ " $alone $engines $patient " == *" $name "* ]] && continue
		if ! shared | grep -qxF "$name" || grep -qsF 'testing.Short()' "$folder"/*_test.go; then echo "$name"; fi
	done
}

# phase NAME ARGS...: runs go test, says how long it took, and notes a failure.
phase() {
	local name=$1 began=$SECONDS
	shift
	echo "== test: $name"
	go test -vet=off "$@" 2>&1 || status=1
	echo "== test: $name took $((SECONDS - began)) s"
}

# shellcheck disable=SC2046 # lists of packages, here and below
phase race -race -short -timeout 20m $(shared)
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
# shellcheck disable=SC2046
phase plain -timeout 20m $(others)
phase box -count=1 -timeout 10m $alone
# shellcheck disable=SC2086
phase engines -p 2 -count=1 -timeout 25m $engines
# shellcheck disable=SC2086
phase docker -p 2 -count=1 -timeout 25m $patient
if [ "$status" = 0 ]; then echo "== test: all passed"; else echo "== test: FAILED"; fi
exit "$status"
