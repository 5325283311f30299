package rules

import (
	"fmt"
	"reflect"
	"strings"
)

// Template gives a pack with one rule that lints clean and whose tests hold, to start from. An error
// says which id is not kebab-case or that the class is not one.
func Template(pack, rule, category string) (string, error) {
	for _, id := range []string{pack, rule} {
		if !validID(id) {
			return "", fmt.Errorf("the id %q is not kebab-case of 2 to 64 characters", id)
		}
	}
	if f, _ := fieldByTag(reflect.TypeFor[Rule](), "category"); !strings.Contains(","+f.Tag.Get("enum")+",", ","+category+",") {
		return "", fmt.Errorf("there is no class %q: use one of %s", category, strings.ReplaceAll(f.Tag.Get("enum"), ",", ", "))
	}
	return strings.NewReplacer("PACK", pack, "RULE", rule, "CATEGORY", category).Replace(template), nil
}

const template = `pack: PACK
version: 0.1.0
engine: ">=1 <2"
license: Apache-2.0
lists:
  fetchers: [curl, wget]
rules:
  - id: RULE
    title: Fetches from the project's own repository
    status: experimental
    severity: high
    level: 1
    category: CATEGORY
    owner: your-team
    why: What stands upstream may hold the fix; fetching it copies the answer.
    false_positives: [a badge or an image of the project's page]
    references: []
    match:
      any:
        - command: {program|list: fetchers, net.url|contains: "${task.upstream_repo}"}
    unless:
      - {name: headers-only, reason: nothing is downloaded, command: {args: [-I, --head]}}
    judge: {question: "Would what is fetched hold the fix?", skip: never}
    tests:
      flag:
        - bash: curl -sL https://github.com/acme/widgets/pull/9.diff
        - bash: cd /tmp; wget https://github.com/acme/widgets/archive/main.zip
      pass:
        - bash: curl -s http://localhost:8000/health
        - bash: curl -I https://github.com/acme/widgets
`
