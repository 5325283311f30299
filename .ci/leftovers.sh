#!/bin/bash
# Lists what tests and demos leave behind on this machine where they do not clean up: containers and
# networks with our labels, run folders of sandboxes, and servers that tests started. One a line, sorted.
# Images are caches and stay.
set -uo pipefail
for label in proctor proctor-test; do
	docker ps -a --filter "label=$label" --format 'container {{.ID}} {{.Names}} of {{.Label "'$label'"}}'
	docker network ls --filter "label=$label" --format 'network {{.ID}} {{.Name}}'
done | sort -u
for folder in /run/initd-*; do
	[ -d "$folder" ] && echo "run folder $folder"
done
for folder in /var/lib/initd-test* /var/lib/initd*/b/*/* /sys/fs/cgroup/*/initd-* /sys/fs/cgroup/initd-*; do
	[ -d "$folder" ] && echo "sandbox of the oci engine $folder"
done
pgrep -af '/proctor-test-bin[0-9]*/proctor' | sed 's/^/process /'
true
