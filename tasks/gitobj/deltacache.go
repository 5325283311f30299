package gitobj

// deltaCacheLimit bounds a pack's cache of bases, in bytes. Walking a long history reads each tree's
// base again for every tree above it in its chain; without a cache that is quadratic.
const deltaCacheLimit = 96 << 20

type cachedObject struct {
	kind Type
	data []byte
}

// deltaCache keeps objects by their place in a pack. When it is full it drops everything: the reads
// of a walk are local, so what matters comes back at once. Not safe for concurrent use.
type deltaCache struct {
	objects map[int64]cachedObject
	size    int
}

func newDeltaCache() *deltaCache { return &deltaCache{objects: map[int64]cachedObject{}} }

func (c *deltaCache) get(offset int64) (cachedObject, bool) {
	o, ok := c.objects[offset]
	return o, ok
}

func (c *deltaCache) put(offset int64, kind Type, data []byte) {
	if len(data) > deltaCacheLimit/16 {
		return
	}
	if c.size+len(data) > deltaCacheLimit {
		c.objects, c.size = map[int64]cachedObject{}, 0
	}
	if _, ok := c.objects[offset]; !ok {
		c.objects[offset] = cachedObject{kind, data}
		c.size += len(data) + 64
	}
}
