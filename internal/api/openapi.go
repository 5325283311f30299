package api

import (
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/tasks"
)

// operation is one route in the OpenAPI document.
type operation struct {
	method, path string
	summary      string
	plane        string // trainer, agent, open
	query        []string
	body, answer any // Go values whose types become schemas; nil for none
	status       int
}

// operations is the table that the document is made from; openapi_test.go holds it against the
// routes, both ways.
func operations() []operation {
	const ro = "/v1/rollouts/{id}"
	return append(slices.Concat(criticOperations(), groupOperations(), forkOperations(), capacityOperations(), gatewayOperations(), segmentOperations(), packOperations()), []operation{
		{"GET", "/healthz", "The process answers", "open", nil, nil, map[string]string{}, 200},
		{"GET", "/readyz", "Rollouts can be made", "open", nil, nil, map[string]string{}, 200},
		{"GET", "/openapi.json", "This document", "trainer", nil, nil, map[string]any{}, 200},
		{"GET", "/metrics", "Prometheus metrics", "trainer", nil, nil, nil, 200},
		{"POST", "/v1/rollouts", "Create a rollout", "trainer", []string{"wait_s"}, rollouts.CreateRequest{}, rollouts.Created{}, 201},
		{"GET", "/v1/rollouts", "List rollouts", "trainer", []string{"task_id", "group_id", "status", "limit", "cursor"}, nil, listOf[rollouts.View]("rollouts"), 200},
		{"GET", ro, "One rollout", "trainer", nil, nil, rollouts.View{}, 200},
		{"DELETE", ro, "End a rollout and free its sandbox", "trainer", nil, nil, nil, 204},
		{"POST", ro + "/grade", "Grade a rollout", "trainer", []string{"wait"}, nil, tasks.Grade{}, 200},
		{"POST", ro + "/exec", "Run one argv for the harness", "trainer", nil, execBody{}, map[string]any{}, 200},
		{"POST", ro + "/heartbeat", "Renew the lease", "trainer", nil, nil, map[string]string{}, 200},
		{"GET", ro + "/patch", "The work as a unified diff", "trainer", nil, nil, nil, 200},
		{"GET", ro + "/trajectory", "The record, or an export of it", "trainer", []string{"format", "blocked"}, nil, rollouts.Trajectory{}, 200},
		{"GET", ro + "/events", "Live events (SSE)", "trainer", nil, nil, nil, 200},
		{"GET", ro + "/verdicts", "Calls that a rule hit", "trainer", nil, nil, listOf[rollouts.VerdictView]("verdicts"), 200},
		{"POST", ro + "/verdicts/{ordinal}/review", "Review a verdict", "trainer", nil, reviewBody{}, rollouts.Review{}, 200},
		{"GET", "/v1/tasks", "List tasks", "trainer", nil, nil, listOf[tasks.Task]("tasks"), 200},
		{"GET", "/v1/tasks/{id}", "One task", "trainer", nil, nil, tasks.Task{}, 200},
		{"POST", "/v1/packs/check", "What the rules make of a call", "trainer", nil, checkBody{}, rollouts.Explanation{}, 200},
		{"GET", ro + "/tools", "The agent's tools", "agent", []string{"format"}, nil, listOf[rollouts.Tool]("tools"), 200},
		{"POST", ro + "/calls", "Run a tool call", "agent", nil, callBody{}, monitor.Observation{}, 200},
		{"POST", ro + "/submit", "End the agent's part", "agent", nil, nil, map[string]string{}, 200},
	}...)
}

// listing marks an answer that is a page of items under a plural name.
type listing struct {
	name string
	item reflect.Type
}

func listOf[T any](name string) listing { return listing{name, reflect.TypeFor[T]()} }

// openAPI serves the document.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, Document(s.version))
}

// Document gives the OpenAPI 3.1 document of both planes.
func Document(version string) map[string]any {
	schemas := schemaSet{}
	paths := map[string]map[string]any{}
	for _, op := range operations() {
		if paths[op.path] == nil {
			paths[op.path] = map[string]any{}
		}
		paths[op.path][strings.ToLower(op.method)] = op.describe(schemas)
	}
	schemas.of(reflect.TypeFor[Problem]())
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Proctor", "version": version, "license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths":   paths,
		"components": map[string]any{
			"schemas": schemas,
			"securitySchemes": map[string]any{
				"trainer": map[string]any{"type": "http", "scheme": "bearer", "description": "A trainer key"},
				"agent":   map[string]any{"type": "http", "scheme": "bearer", "description": "The token of one rollout; a trainer key acts as the harness"},
			},
		},
	}
}

// describe gives the operation object.
func (op operation) describe(schemas schemaSet) map[string]any {
	var params []any
	for _, part := range strings.Split(op.path, "/") {
		if strings.HasPrefix(part, "{") {
			params = append(params, parameter(strings.Trim(part, "{}"), "path"))
		}
	}
	for _, q := range op.query {
		params = append(params, parameter(q, "query"))
	}
	if op.method == "POST" && op.status == 201 || strings.HasSuffix(op.path, "/calls") || strings.HasSuffix(op.path, "/exec") {
		params = append(params, parameter("Idempotency-Key", "header"))
	}
	out := map[string]any{"summary": op.summary, "responses": map[string]any{
		strconv.Itoa(op.status): op.response(schemas),
		"default": map[string]any{"description": "A problem (RFC 9457)", "content": map[string]any{
			"application/problem+json": map[string]any{"schema": schemas.of(reflect.TypeFor[Problem]())}}},
	}}
	if op.plane != "open" {
		out["security"] = []any{map[string]any{op.plane: []string{}}}
	}
	if len(params) > 0 {
		out["parameters"] = params
	}
	if op.body != nil {
		out["requestBody"] = map[string]any{"required": true, "content": jsonContent(schemas.of(reflect.TypeOf(op.body)))}
	}
	return out
}

// response gives the response object of the operation's success.
func (op operation) response(schemas schemaSet) map[string]any {
	out := map[string]any{"description": http.StatusText(op.status)}
	switch v := op.answer.(type) {
	case nil:
	case listing:
		out["content"] = jsonContent(map[string]any{"type": "object", "properties": map[string]any{
			v.name: map[string]any{"type": "array", "items": schemas.of(v.item)}, "next": map[string]any{"type": []string{"string", "null"}}}})
	default:
		out["content"] = jsonContent(schemas.of(reflect.TypeOf(v)))
	}
	return out
}

func parameter(name, in string) map[string]any {
	return map[string]any{"name": name, "in": in, "required": in == "path", "schema": map[string]any{"type": "string"}}
}

func jsonContent(schema any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}

// schemaSet collects component schemas by name.
type schemaSet map[string]any

// of gives the schema of a Go type as encoding/json writes it; named structs become components.
func (set schemaSet) of(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return map[string]any{"anyOf": []any{set.of(t.Elem()), map[string]any{"type": "null"}}}
	case t.PkgPath() == "time" && t.Name() == "Time":
		return map[string]any{"type": "string", "format": "date-time"}
	case t.PkgPath() == "encoding/json" && t.Name() == "RawMessage":
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": set.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": set.of(t.Elem())}
	case reflect.Struct:
		return set.structure(t)
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

// structure gives a reference to a struct's component, making it first.
func (set schemaSet) structure(t reflect.Type) map[string]any {
	name := t.Name()
	if parts := strings.Split(t.PkgPath(), "/"); len(parts) > 1 {
		name = capital(parts[len(parts)-1]) + capital(name)
	}
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if _, done := set[name]; done {
		return ref
	}
	set[name] = nil // stops recursion
	props, required := map[string]any{}, []string{}
	set.fields(t, props, &required)
	sort.Strings(required)
	set[name] = map[string]any{"type": "object", "properties": props, "required": required}
	return ref
}

// fields adds the fields of t, embedded ones included.
func (set schemaSet) fields(t reflect.Type, props map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			set.fields(f.Type, props, required)
			continue
		case name == "":
			name = f.Name
		}
		props[name] = set.of(f.Type)
		if !strings.Contains(opts, "omitempty") && f.Type.Kind() != reflect.Pointer {
			*required = append(*required, name)
		}
	}
}

// capital gives an ASCII identifier a capital first letter.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
