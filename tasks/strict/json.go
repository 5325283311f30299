package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FromJSON reads one JSON document into the nodes that Decode takes, so that both forms are held to
// the same rules. Numbers keep their spelling, keys that stand twice stay, and nesting is bounded.
// The nodes have no places.
func FromJSON(data []byte) (*yaml.Node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	node, err := jsonValue(dec, 0)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON at byte %d: %w", dec.InputOffset(), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one JSON document: text follows byte %d", dec.InputOffset())
	}
	return node, nil
}

func jsonValue(dec *json.Decoder, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	token, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return jsonNested(dec, t, depth)
	case string:
		return scalarNode("!!str", t), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return scalarNode(tag, t.String()), nil
	case bool:
		return scalarNode("!!bool", fmt.Sprint(t)), nil
	}
	return scalarNode("!!null", "null"), nil
}

func jsonNested(dec *json.Decoder, open json.Delim, depth int) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	for dec.More() {
		item, err := jsonValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, item)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	return node, nil
}

func scalarNode(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}
