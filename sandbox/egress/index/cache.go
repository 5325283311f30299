package index

import (
	"sync"
	"time"
)

// cache keeps listings for a while. Safe for concurrent use.
type cache[L any] struct {
	limit int
	life  time.Duration

	mu   sync.Mutex
	size int
	kept map[string]kept[L]
}

// kept is a listing, nil for a package that is not there, with the bytes that it takes.
type kept[L any] struct {
	listing *L
	size    int
	at      time.Time
}

func newCache[L any](limit int, life time.Duration) *cache[L] {
	return &cache[L]{limit: limit, life: life, kept: map[string]kept[L]{}}
}

// get gives a package's listing.
func (c *cache[L]) get(name string) (*L, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[name]
	if ok && time.Since(k.at) > c.life {
		c.dropLocked(name)
		ok = false
	}
	return k.listing, ok
}

// entrySize is what a listing takes at least, in bytes.
const entrySize = 1 << 10

// put keeps a listing; the oldest go where there is no room.
func (c *cache[L]) put(name string, l *L, size int) {
	size = max(size, entrySize)
	if size > c.limit/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(name)
	for c.size+size > c.limit {
		oldest, at := "", time.Time{}
		for name, k := range c.kept {
			if oldest == "" || k.at.Before(at) {
				oldest, at = name, k.at
			}
		}
		c.dropLocked(oldest)
	}
	c.kept[name] = kept[L]{listing: l, size: size, at: time.Now()}
	c.size += size
}

// dropLocked forgets a package. Preconditions: mu is held.
func (c *cache[L]) dropLocked(name string) {
	c.size -= c.kept[name].size
	delete(c.kept, name)
}
