package grading

import (
	"slices"
	"testing"
)

func TestLedTo(t *testing.T) {
	const name = "usr/lib/python3/dist-packages/x.pth"
	for text, want := range map[string][]string{
		"":                               nil,
		"# a remark\n\n":                 nil,
		"/opt/lib\n":                     {"/opt/lib"},
		"/opt/lib/../q  \r\n./y\n":       {"/opt/q", "/usr/lib/python3/dist-packages/y"},
		"../../../../../../opt/z.zip\n":  {"/opt/z.zip"},
		"/app/src\n# x\n/app/more\n/app": {"/app/src", "/app/more", "/app"},
	} {
		if got := ledTo(name, found{text: []byte(text)}); !slices.Equal(got, want) {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
	}
}

func TestOddPth(t *testing.T) {
	for text, want := range map[string]bool{
		"":                          false,
		"/app/src\n/app/a b\té\r\n": false,
		"# x\rimport evil\n":        true,
		"# x\vimport evil\n":        true,
		"# x\u2028import evil\n":    true,
		"\ufeffimport evil\n":       true,
		"/opt/lib\u00a0\n":          true,
		"/opt/lib\x1f\n":            true,
		"/opt\x00/lib\n":            true,
	} {
		if got := oddPth([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestIsMetadata(t *testing.T) {
	for name, want := range map[string]bool{
		"usr/lib/python3/dist-packages/x.pth":                                   true,
		"usr/local/lib/python3.11/site-packages/x-1.dist-info":                  true,
		"usr/local/lib/python3.11/site-packages/x-1.dist-info/entry_points.txt": true,
		"usr/lib/python3/dist-packages/x.egg-info":                              true,
		"usr/lib/python3/dist-packages/X-1.DIST-INFO":                           true,
		"usr/lib/python3/dist-packages/x/core.py":                               false,
		"opt/x.pth": false,
	} {
		if got := isMetadata(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
