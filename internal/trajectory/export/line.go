package export

import (
	"encoding/json"
	"math"
	"strconv"
)

// line builds one JSON object field by field. Arrays of numbers, which are nearly all of an export,
// are appended without reflection.
type line struct {
	b   []byte
	err error
}

func (l *line) key(name string) {
	if len(l.b) == 0 {
		l.b = append(l.b, '{')
	} else if last := l.b[len(l.b)-1]; last != '{' {
		l.b = append(l.b, ',')
	}
	l.b = strconv.AppendQuote(l.b, name)
	l.b = append(l.b, ':')
}

// value adds any value.
func (l *line) value(name string, v any) *line {
	l.key(name)
	raw, err := json.Marshal(v)
	if err != nil && l.err == nil {
		l.err = err
	}
	l.b = append(l.b, raw...)
	return l
}

// raw adds JSON that is known to be good; nil is null.
func (l *line) raw(name string, v json.RawMessage) *line {
	l.key(name)
	if len(v) == 0 {
		v = json.RawMessage("null")
	}
	l.b = append(l.b, v...)
	return l
}

// raws adds a list of JSON that is known to be good and compact.
func (l *line) raws(name string, list []json.RawMessage) *line {
	l.key(name)
	l.b = append(l.b, '[')
	for i, v := range list {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = append(l.b, v...)
	}
	l.b = append(l.b, ']')
	return l
}

// ids adds token ids.
func (l *line) ids(name string, list []int32) *line {
	l.key(name)
	l.b = append(l.b, '[')
	for i, v := range list {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = strconv.AppendInt(l.b, int64(v), 10)
	}
	l.b = append(l.b, ']')
	return l
}

// bits adds a mask.
func (l *line) bits(name string, list []int8) *line {
	l.key(name)
	l.b = append(l.b, '[')
	for i, v := range list {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = append(l.b, '0'+byte(v&1))
	}
	l.b = append(l.b, ']')
	return l
}

// floats adds numbers, each in the shortest form that reads back as itself.
func (l *line) floats(name string, list []float64) *line {
	l.key(name)
	l.b = append(l.b, '[')
	for i, v := range list {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		if v == 0 && !math.Signbit(v) { // most: tokens that were not sampled
			l.b = append(l.b, '0')
			continue
		}
		l.b = strconv.AppendFloat(l.b, v, 'g', -1, 64)
	}
	l.b = append(l.b, ']')
	return l
}

// object adds what f fills as an object.
func (l *line) object(name string, f func(*line)) *line {
	l.key(name)
	inner := line{b: append(l.b, '{'), err: l.err}
	f(&inner)
	l.b, l.err = append(inner.b, '}'), inner.err
	return l
}

// end gives the object.
func (l *line) end() ([]byte, error) {
	if len(l.b) == 0 {
		l.b = append(l.b, '{')
	}
	return append(l.b, '}'), l.err
}
