#!/bin/bash
# Every test, in phases, each with the time that it took. Exit status: 0 all passed, 1 some failed.
#
#   race    every package with the race detector and -short. Left out by -short are tests that say so: those
#           that need Docker, where the work is done by daemons and sandboxes that the detector does not see
#           and its cost (tenfold on the corpora) would only starve their time limits, and those that read
#           the corpora line by line on one goroutine. So is the command line, whose tests are programs run
#           one after another; what they run is tested by its own packages.
#   plain   every package without load-sensitive tests, nothing left out.
#   docker  the packages whose tests hold sandboxes to time limits, nothing left out and nothing from the cache,
#           which does not see the daemon that results depend on. Those of the box and the engines one after
#           another: two at once would starve each other on a machine of two cores. The rest waits for
#           sandboxes more than it computes: two at a time.
#
# go vet is left to lint.sh. The phases without the detector build as `make build` does, so that nothing is compiled twice.
set -uo pipefail
cd "$(dirname "$0")/.."
export PROCTOR_REQUIRE_DOCKER=1
status=0

# timed are the packages of the last phase.
timed="proctor/sandbox/box proctor/sandbox/docker proctor/sandbox/oci"
patient="proctor/cmd/proctor proctor/tasks/grading proctor/tasks proctor/monitor/decoy"
rest=$(go list ./... | grep -vxF "$(tr ' ' '\n' <<<"$timed $patient")") || exit 1

# phase NAME ARGS...: runs go test, says how long it took, and notes a failure.
phase() {
	local name=$1 began=$SECONDS
	shift
	echo "== test: $name"
	go test -vet=off "$@" 2>&1 || status=1
	echo "== test: $name took $((SECONDS - began)) s"
}

# shellcheck disable=SC2046 # a list of packages
phase race -race -short -timeout 20m $(go list ./... | grep -vxF proctor/cmd/proctor)
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
# shellcheck disable=SC2086 # lists of packages
phase plain -timeout 20m $rest
# shellcheck disable=SC2086
phase docker -p 1 -count=1 -timeout 25m $timed
# shellcheck disable=SC2086
phase "docker, two at a time" -p 2 -count=1 -timeout 25m $patient
if [ "$status" = 0 ]; then echo "== test: all passed"; else echo "== test: FAILED"; fi
exit "$status"
