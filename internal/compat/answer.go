package compat

import (
	"encoding/json"
	"net/http"
)

// Answer writes v as JSON under a status. That the client hung up is nobody's error.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
