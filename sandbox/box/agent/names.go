package agent

import (
	"os"
	"path/filepath"

	"proctor/sandbox/box/wire"
)

// writeNames writes what names hosts and resolvers, where the engine leaves that to us. An image without the folder,
// or with one that cannot be written to, does without.
func writeNames(etc string, init wire.Init) {
	for name, text := range map[string]string{"hosts": init.Hosts, "resolv.conf": init.Resolv} {
		if text == "" {
			continue
		}
		path := filepath.Join(etc, name)
		_ = os.Remove(path) // it may be a link, or of another mode; where something is mounted there it is kept, and written to
		if os.WriteFile(path, []byte(text), 0o644) == nil {
			_ = os.Chmod(path, 0o644) // whatever the umask
		}
	}
}
