package normalize

import "testing"

func TestOwnPattern(t *testing.T) {
	f := &taskFacts{pkg: "globber"}
	for pat, want := range map[string]bool{
		"glob?er-0.9.[5-9]": true, "glob[b]er": true, "[fg]lob?er@1*": true, "GLOB?ER*": true,
		"regex-synt?x-0.8.*": false, "glob?": false, "?lob": false, "???????": false, "glob[": false, "glob?erry-1": false, "": false,
	} {
		if got := f.ownPattern(pat); got != want {
			t.Errorf("%q: %v, want %v", pat, got, want)
		}
	}
}
