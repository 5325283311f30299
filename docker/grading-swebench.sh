#!/bin/sh
# Holds our log parsers and reports to the swebench package itself, in a virtual environment of its own.
# Its dependencies stay out: what is compared needs none but unidiff.
set -eu
cd "$(dirname "$0")/.."
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT INT TERM
python3 -m venv "$venv"
"$venv/bin/pip" install -q --no-deps swebench==5.0.2 unidiff==1.0.1
PROCTOR_SWEBENCH_PYTHON="$venv/bin/python" go test -count=1 -v -run 'AgainstSwebench' ./tasks/grading/... | grep -v '^=== '
