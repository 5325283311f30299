#!/bin/sh
# Makes the base image, proctor/base:dev (or the name given).
#
# Two ways, chosen by itself: `docker build` where an image registry answers, else mmdebstrap from Debian
# packages and `docker import`. Skips both where the image is there and its recipe is unchanged, which a label
# with the recipe's hash tells. PROCTOR_BASE_WAY=registry or =debian forces a way.
#
# Exit status: 0 the image is there, 3 it cannot be made.
set -eu
cd "$(dirname "$0")"

image=${1:-proctor/base:dev}
say() { echo "build-base: $*" >&2; }
die() { say "$*"; exit 3; }

recipe=$(cat base.Dockerfile base.packages build-base.sh | sha256sum | cut -c1-16)
have=$(docker image inspect --format '{{index .Config.Labels "proctor.recipe"}}' "$image" 2>/dev/null || true)
if [ "$have" = "$recipe" ]; then
	say "$image is up to date"
	exit 0
fi
docker version >/dev/null 2>&1 || die "no Docker daemon answers; run docker/ensure-docker.sh (make docker)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
exec 9>"${TMPDIR:-/tmp}/build-base.lock"
if command -v flock >/dev/null 2>&1; then flock -w 900 9 || die "another build holds the lock for 15 minutes"; fi

# from: the image that the Dockerfile starts with.
from=$(sed -n 's/^FROM //p' base.Dockerfile)

# registry: the ordinary way; the pull shows whether a registry answers.
registry() {
	docker image inspect "$from" >/dev/null 2>&1 || timeout 60 docker pull -q "$from" >"$work/pull.log" 2>&1 || return 1
	say "building with docker build from $from"
	docker build -q -f base.Dockerfile --label "proctor.recipe=$recipe" -t "$image" . >"$work/build.log" 2>&1 || {
		tail -n 20 "$work/build.log" >&2
		die "docker build failed; its end is above"
	}
}

# debian: the same contents from the distribution's packages, with the sources that this machine has.
debian() {
	[ "$(id -u)" = 0 ] || die "no image registry answers, and building from Debian packages needs root"
	if ! command -v mmdebstrap >/dev/null 2>&1; then
		command -v apt-get >/dev/null 2>&1 || die "no image registry answers, and there is no apt-get to build from"
		say "installing mmdebstrap"
		export DEBIAN_FRONTEND=noninteractive
		install() { apt-get install -y -qq --no-install-recommends mmdebstrap >"$work/apt.log" 2>&1; }
		install || { apt-get update -qq >>"$work/apt.log" 2>&1 && install; } || { tail -n 5 "$work/apt.log" >&2; die "mmdebstrap cannot be installed"; }
	fi
	say "no image registry answers; building from Debian packages with mmdebstrap"
	packages=$(grep -v '^#' base.packages | paste -sd,)
	suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME" || echo bookworm)
	# The machine's own Debian sources: a mirror or a proxy set up there holds here as well.
	apt-get indextargets --format '$(SOURCESENTRY)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
		awk -F'|' '$5 == "Debian" { print "deb " $2 " " $3 " " $4 }' | sort -u >"$work/sources.list"
	[ -s "$work/sources.list" ] || die "apt knows no Debian source on this machine; run apt-get update"
	mmdebstrap --mode=root --variant=minbase --include="$packages" --quiet \
		--aptopt='Acquire::Languages "none"' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
		"$suite" "$work/root.tar" - <"$work/sources.list" 2>"$work/mmdebstrap.log" || {
		tail -n 20 "$work/mmdebstrap.log" >&2
		die "mmdebstrap failed; its end is above"
	}
	docker import -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' -c 'ENV LANG=C.UTF-8' \
		-c 'CMD ["bash"]' -c "LABEL proctor.recipe=$recipe" "$work/root.tar" "$image" >/dev/null
}

started=$(date +%s)
case "${PROCTOR_BASE_WAY:-}" in
registry) registry || { cat "$work/pull.log" >&2; die "no image registry answers"; } ;;
debian) debian ;;
"") registry || debian ;;
*) die "PROCTOR_BASE_WAY must be registry or debian" ;;
esac
say "made $image in $(($(date +%s) - started)) s"
