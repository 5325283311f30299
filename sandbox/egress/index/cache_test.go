package index

import (
	"fmt"
	"testing"
	"time"
)

func TestCache(t *testing.T) {
	type listing struct{ name string }
	c := newCache[listing](4*entrySize, time.Hour)
	for i := range 10 {
		c.put(fmt.Sprint(i), &listing{fmt.Sprint(i)}, entrySize)
	}
	if len(c.kept) > 4 || c.size > c.limit {
		t.Errorf("%d listings, %d bytes", len(c.kept), c.size)
	}
	if l, ok := c.get("9"); !ok || l.name != "9" {
		t.Error("the latest is not there")
	}
	c.put("huge", &listing{}, 3*entrySize)
	if _, ok := c.get("huge"); ok {
		t.Error("one that takes most of the room was kept")
	}
	c.life = 0
	if _, ok := c.get("9"); ok {
		t.Error("an old one is still given")
	}
}
