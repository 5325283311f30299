package rules

import (
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestSameTexts(t *testing.T) {
	same := sameTexts{}
	long := strings.Repeat("x", memoText)
	other, begin := strings.Clone(long), (long + "y")[:memoText]
	first := []string{"short", long}
	if got := same.take(first); !slices.Equal(got, first) {
		t.Fatalf("%q", got)
	}
	given := []string{other, "short", begin, long}
	got := same.take(given)
	if !slices.Equal(got, given) {
		t.Fatalf("%q", got)
	}
	for _, i := range []int{0, 2, 3} {
		if unsafe.StringData(got[i]) != unsafe.StringData(long) {
			t.Errorf("%d is a copy of its own", i)
		}
	}
	if unsafe.StringData(given[0]) != unsafe.StringData(other) {
		t.Error("what was given was changed")
	}
}

// A text and its beginning stand in the same place, and are not the same.
func TestBeginningsAreToldApart(t *testing.T) {
	a, err := reAtom("end$")
	if err != nil {
		t.Fatal(err)
	}
	how := reading{known: map[asked]bool{}}
	whole := strings.Repeat("x", memoText) + " end"
	for _, x := range []struct {
		text string
		want bool
	}{{whole, true}, {whole[:memoText], false}, {whole, true}} {
		if got := a.holds(x.text, how); got != x.want {
			t.Errorf("%d bytes: %t", len(x.text), got)
		}
	}
}
