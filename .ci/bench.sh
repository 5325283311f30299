#!/bin/bash
# bench.sh [PAGE]: every benchmark, one after another, and a table of their figures, printed or put into PAGE.
# The documents stay in .cache/bench. What this machine lacks is left out and said.
set -uo pipefail
cd "$(dirname "$0")/.."
out=.cache/bench
rm -rf "$out" && mkdir -p "$out" || exit 1
status=0

# measure NAME ARGS...: runs `proctor bench ARGS --json`; one that cannot run here does not keep the others from it.
measure() {
	local name=$1
	shift
	echo "== bench: $*" >&2
	if ! bin/proctor bench "$@" --json >"$out/$name.json"; then
		rm -f "$out/$name.json"
		status=1
	fi
}

measure 1-exec exec ${SWEREX:+--swerex "$SWEREX"}
measure 2-start start
measure 3-pool-docker pool
measure 5-scale-docker scale --n 500 --output-gib 0
if command -v runc >/dev/null && [ "$(id -u)" = 0 ]; then
	measure 4-pool-oci pool --engine oci
	measure 6-scale-oci scale --engine oci --n 500
else
	echo "== bench: the oci engine needs root and runc; left out" >&2
fi
measure 7-gate gate
bin/proctor bench docs "$out"/*.json ${1:+--page "$1"} || status=1
exit "$status"
