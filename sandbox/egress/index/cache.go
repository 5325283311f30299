package index

import (
	"sync"
	"time"
)

// cache keeps listings for a while. Safe for concurrent use.
type cache struct {
	limit int
	life  time.Duration

	mu   sync.Mutex
	size int
	kept map[string]kept
}

// kept is a listing, nil for a project that is not there, with the bytes that it came in.
type kept struct {
	listing *listing
	size    int
	at      time.Time
}

func newCache(limit int, life time.Duration) *cache {
	return &cache{limit: limit, life: life, kept: map[string]kept{}}
}

// get gives a project's listing.
func (c *cache) get(project string) (*listing, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[project]
	if ok && time.Since(k.at) > c.life {
		c.dropLocked(project)
		ok = false
	}
	return k.listing, ok
}

// entrySize is what a listing takes at least, in bytes.
const entrySize = 1 << 10

// put keeps a listing; the oldest go where there is no room.
func (c *cache) put(project string, l *listing, size int) {
	size = max(size, entrySize)
	if size > c.limit/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(project)
	for c.size+size > c.limit {
		oldest, at := "", time.Time{}
		for name, k := range c.kept {
			if oldest == "" || k.at.Before(at) {
				oldest, at = name, k.at
			}
		}
		c.dropLocked(oldest)
	}
	c.kept[project] = kept{listing: l, size: size, at: time.Now()}
	c.size += size
}

// dropLocked forgets a project. Preconditions: mu is held.
func (c *cache) dropLocked(project string) {
	c.size -= c.kept[project].size
	delete(c.kept, project)
}
