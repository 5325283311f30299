package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

var errNotFlat = errors.New("not cut")

// topLevel cuts a JSON object into its values without looking into them: a document is some hundred KiB
// of text of which a reader decodes a part, and checking all of it twice first took a fifth of a scan.
//
// Where the object cannot be cut, encoding/json is asked, whose errors name the place. What is cut is
// not proven to be JSON; each value is when it is decoded. FuzzTopLevel holds that for JSON the result
// is encoding/json's.
func topLevel(data []byte) (object, error) {
	if o, err := cutObject(data); err == nil {
		return o, nil
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	return o, nil
}

func cutObject(data []byte) (object, error) {
	i := space(data, 0)
	if i >= len(data) || data[i] != '{' {
		return nil, errNotFlat
	}
	o := object{}
	if i = space(data, i+1); i < len(data) && data[i] == '}' {
		return o, rest(data, i+1)
	}
	for i < len(data) {
		end := stringEnd(data, i)
		if end < 0 {
			return nil, errNotFlat
		}
		key := string(data[i+1 : end-1])
		if bytes.IndexByte(data[i:end], '\\') >= 0 || !utf8.ValidString(key) {
			if err := json.Unmarshal(data[i:end], &key); err != nil {
				return nil, err
			}
		}
		if i = space(data, end); i >= len(data) || data[i] != ':' {
			return nil, errNotFlat
		}
		i = space(data, i+1)
		end = valueEnd(data, i)
		if end <= i {
			return nil, errNotFlat
		}
		o[key] = data[i:end:end]
		if i = space(data, end); i >= len(data) {
			return nil, errNotFlat
		}
		if data[i] == '}' {
			return o, rest(data, i+1)
		}
		if data[i] != ',' {
			return nil, errNotFlat
		}
		i = space(data, i+1)
	}
	return nil, errNotFlat
}

// elements cuts a JSON list in the same way; null is an empty one.
func elements(data []byte) ([]json.RawMessage, error) {
	if items, err := cutList(data); err == nil {
		return items, nil
	}
	var items []json.RawMessage
	err := json.Unmarshal(data, &items)
	return items, err
}

func cutList(data []byte) ([]json.RawMessage, error) {
	i := space(data, 0)
	if i >= len(data) || data[i] != '[' {
		return nil, errNotFlat
	}
	items := []json.RawMessage{}
	if i = space(data, i+1); i < len(data) && data[i] == ']' {
		return items, rest(data, i+1)
	}
	for i < len(data) {
		end := valueEnd(data, i)
		if end <= i {
			return nil, errNotFlat
		}
		items = append(items, data[i:end:end])
		if i = space(data, end); i >= len(data) {
			return nil, errNotFlat
		}
		if data[i] == ']' {
			return items, rest(data, i+1)
		}
		if data[i] != ',' {
			return nil, errNotFlat
		}
		i = space(data, i+1)
	}
	return nil, errNotFlat
}

// rest checks that nothing follows.
func rest(data []byte, i int) error {
	if space(data, i) != len(data) {
		return errNotFlat
	}
	return nil
}

// space gives the first index from i on that is no blank of JSON's.
func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// stringEnd gives the index after the string that starts at i, or -1.
func stringEnd(data []byte, i int) int {
	if i >= len(data) || data[i] != '"' {
		return -1
	}
	for i++; i < len(data); i++ {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		slashes := 0
		for data[i-1-slashes] == '\\' { // ends at the opening quote at the latest
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return -1
}

// valueEnd gives the index after the value that starts at i, or -1.
func valueEnd(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"':
		return stringEnd(data, i)
	case '{', '[':
	default:
		end := i
		for end < len(data) && bytes.IndexByte([]byte(",]} \n\t\r"), data[end]) < 0 {
			end++
		}
		return end
	}
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			end := stringEnd(data, i)
			if end < 0 {
				return -1
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
