package lazydfa

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"proctor/internal/lazydfa/lazydfatest"
)

// Every method gives what package regexp's does, for short texts and long ones.
func TestRegexpIsRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	upper := strings.ToUpper
	for range 600 {
		expr := lazydfatest.RandomExpr(r, 1+r.IntN(3))
		fast, plain := MustCompile(expr), regexp.MustCompile(expr)
		for range 10 {
			text := lazydfatest.RandomText(r, []int{3, 60}[r.IntN(2)])
			for name, pair := range map[string][2]any{
				"MatchString":                {fast.MatchString(text), plain.MatchString(text)},
				"FindString":                 {fast.FindString(text), plain.FindString(text)},
				"FindStringIndex":            {fast.FindStringIndex(text), plain.FindStringIndex(text)},
				"FindStringSubmatch":         {fast.FindStringSubmatch(text), plain.FindStringSubmatch(text)},
				"FindAllString":              {fast.FindAllString(text, -1), plain.FindAllString(text, -1)},
				"FindAllStringIndex":         {fast.FindAllStringIndex(text, 2), plain.FindAllStringIndex(text, 2)},
				"FindAllStringSubmatch":      {fast.FindAllStringSubmatch(text, -1), plain.FindAllStringSubmatch(text, -1)},
				"FindAllStringSubmatchIndex": {fast.FindAllStringSubmatchIndex(text, -1), plain.FindAllStringSubmatchIndex(text, -1)},
				"ReplaceAllString":           {fast.ReplaceAllString(text, "<$0>"), plain.ReplaceAllString(text, "<$0>")},
				"Split":                      {fast.Split(text, -1), plain.Split(text, -1)},
				"Split at most once":         {fast.Split(text, 2), plain.Split(text, 2)},
				"Split to nothing":           {fast.Split(text, 0), plain.Split(text, 0)},
				"ReplaceAllStringFunc":       {fast.ReplaceAllStringFunc(text, upper), plain.ReplaceAllStringFunc(text, upper)},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Fatalf("%s of %q on %q: %v, regexp gives %v", name, expr, text, pair[0], pair[1])
				}
			}
		}
	}
}
