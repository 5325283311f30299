package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Limits on request bodies.
const (
	bodyLimit  = 16 << 20 // bytes of a body
	drainLimit = 64 << 20 // bytes of a too large body read and thrown away, so that its sender reads the answer
)

// readBody gives the whole body, at most bodyLimit.
func readBody(r *http.Request) ([]byte, error) {
	var buf bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= bodyLimit {
		buf.Grow(int(r.ContentLength))
	}
	n, err := io.Copy(&buf, io.LimitReader(r.Body, bodyLimit+1))
	if err != nil {
		return nil, problem("bad_request", "The body could not be read whole: "+err.Error())
	}
	if n > bodyLimit {
		_, _ = io.CopyN(io.Discard, r.Body, drainLimit)
		return nil, problem("body_too_large", fmt.Sprintf("A body may have %d bytes; send files with several calls.", bodyLimit))
	}
	return buf.Bytes(), nil
}

// decode reads the body as one JSON object into v. Unknown fields, trailing data and anything but
// an object are refused with the field's name.
func decode(r *http.Request, v any) ([]byte, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	return body, unmarshal(body, v)
}

// unmarshal is decode on bytes.
func unmarshal(body []byte, v any) error {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return problem("bad_request", "The body is empty; it must be a JSON object.")
	}
	if trimmed[0] != '{' {
		return problem("bad_request", "The body must be a JSON object.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return explain(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return problem("bad_request", "The body holds more than one JSON document.")
	}
	return nil
}

// explain turns a decoder's error into a Problem that names the field.
func explain(err error) error {
	var typed *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typed):
		p := problem("invalid_field", fmt.Sprintf("Field %q must be %s, not %s.", typed.Field, kindOf(typed.Type.String()), typed.Value))
		p.Field = typed.Field
		return p
	case errors.As(err, &syntax):
		return problem("bad_request", fmt.Sprintf("The body is not JSON: %v at byte %d.", syntax, syntax.Offset))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		name := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		p := problem("invalid_field", fmt.Sprintf("Field %.64q is not known here; check its spelling against /openapi.json.", name))
		p.Field = name
		return p
	}
	return problem("bad_request", "The body is not JSON: "+err.Error())
}

// kindOf gives a Go type the word that a client knows.
func kindOf(goType string) string {
	switch {
	case strings.Contains(goType, "string"):
		return "text"
	case strings.Contains(goType, "bool"):
		return "true or false"
	case strings.Contains(goType, "int"), strings.Contains(goType, "float"):
		return "a number"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	}
	return "an object"
}
