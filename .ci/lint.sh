#!/bin/sh
# Linters and the vulnerability check: gofmt, go vet, go mod tidy, staticcheck, govulncheck.
#
# Tools are installed at the versions below into .cache/tools. govulncheck asks a database over the
# network; where none answers, that is said loudly and is no failure, since nothing was found out.
# Exit status: 0 clean, 1 findings.
set -eu
cd "$(dirname "$0")/.."

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
tools=$PWD/.cache/tools
status=0
say() { echo "lint: $*"; }

# tool NAME MODULE@VERSION: installs it once per version.
tool() {
	stamp=$tools/$1@${2##*@}
	[ -x "$tools/$1" ] && [ -e "$stamp" ] && return
	say "installing $1 ${2##*@}"
	mkdir -p "$tools"
	GOBIN=$tools GOFLAGS= go install "$2" && touch "$stamp"
}

unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
	say "not gofmt-ed:"
	echo "$unformatted"
	status=1
fi

say "go vet"
go vet ./... || status=1

say "go mod tidy"
tidy=$(mktemp)
found=$(mktemp)
trap 'rm -f "$found" "$tidy"' EXIT
if ! go mod tidy -diff >"$tidy" 2>&1; then
	say "go.mod or go.sum is not what go mod tidy makes of it, or that cannot be told:"
	cat "$tidy"
	status=1
fi

tool staticcheck "$staticcheck"
say "staticcheck"
"$tools/staticcheck" ./... || status=1

for script in $(git ls-files '*.sh') .ci/run; do
	bash -n "$script" || status=1
done

tool govulncheck "$govulncheck"
say "govulncheck"
if "$tools/govulncheck" ./... >"$found" 2>&1; then
	tail -n 1 "$found"
elif grep -q 'fetching vulnerabilities' "$found"; then
	say "NOTE: the vulnerability database does not answer from here; known vulnerabilities were NOT checked"
else
	cat "$found"
	status=1
fi
[ "$status" = 0 ] && say "clean"
exit "$status"
