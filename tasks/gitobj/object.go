package gitobj

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Type is the type of an object, with the numbers that packs use.
type Type int

// The object types.
const (
	Commit Type = 1
	Tree   Type = 2
	Blob   Type = 3
	Tag    Type = 4
)

var typeNames = map[Type]string{Commit: "commit", Tree: "tree", Blob: "blob", Tag: "tag"}

func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return "type " + strconv.Itoa(int(t))
}

func typeOf(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name {
			return t, true
		}
	}
	return 0, false
}

// Hash gives the id of an object with this content.
func Hash(t Type, data []byte) ID {
	h := sha1.New()
	_, _ = io.WriteString(h, t.String()+" "+strconv.Itoa(len(data))+"\x00")
	h.Write(data)
	return ID(h.Sum(nil))
}

// CommitInfo is what a commit says.
type CommitInfo struct {
	Tree    ID
	Parents []ID
	When    int64 // committer's time, Unix seconds
	Message string
}

// ParseCommit reads a commit's content. Headers that are not understood are passed over, as git
// does; a missing tree is an error.
func ParseCommit(data []byte) (CommitInfo, error) {
	var c CommitInfo
	headers, message, _ := strings.Cut(string(data), "\n\n")
	c.Message = message
	hasTree := false
	for _, line := range strings.Split(headers, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.Tree, hasTree = ParseID(value)
		case "parent":
			id, ok := ParseID(value)
			if !ok {
				return c, fmt.Errorf("commit has a broken parent line")
			}
			c.Parents = append(c.Parents, id)
		case "committer":
			c.When = signatureTime(value)
		}
	}
	if !hasTree {
		return c, fmt.Errorf("commit names no tree")
	}
	return c, nil
}

// signatureTime reads the seconds of "Name <mail> 1700000000 +0100"; 0 where there are none.
func signatureTime(value string) int64 {
	rest := value[strings.LastIndexByte(value, '>')+1:]
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	seconds, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return 0
	}
	return seconds
}

// TreeEntry is one name in a tree.
type TreeEntry struct {
	Mode uint32 // 0o100644, 0o100755, 0o120000 link, 0o40000 folder, 0o160000 submodule
	Name string
	ID   ID
}

// Modes of tree and index entries that need telling apart.
const (
	ModeTree   = 0o40000
	ModeModule = 0o160000
)

// ParseTree reads a tree's content.
func ParseTree(data []byte) ([]TreeEntry, error) {
	var entries []TreeEntry
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 1 || space > 7 {
			return nil, fmt.Errorf("tree entry has no mode")
		}
		mode, err := strconv.ParseUint(string(data[:space]), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("tree entry has a broken mode")
		}
		data = data[space+1:]
		end := bytes.IndexByte(data, 0)
		if end < 1 || len(data) < end+21 {
			return nil, fmt.Errorf("tree entry is cut off")
		}
		e := TreeEntry{Mode: uint32(mode), Name: string(data[:end]), ID: ID(data[end+1 : end+21])}
		entries = append(entries, e)
		data = data[end+21:]
	}
	return entries, nil
}

// TagInfo is what an annotated tag says.
type TagInfo struct {
	Target ID
	Type   Type
	When   int64 // tagger's time, Unix seconds; 0 where there is none
}

// ParseTag reads a tag's content.
func ParseTag(data []byte) (TagInfo, error) {
	var t TagInfo
	headers, _, _ := strings.Cut(string(data), "\n\n")
	hasTarget, hasType := false, false
	for _, line := range strings.Split(headers, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "object":
			t.Target, hasTarget = ParseID(value)
		case "type":
			t.Type, hasType = typeOf(value)
		case "tagger":
			t.When = signatureTime(value)
		}
	}
	if !hasTarget || !hasType {
		return t, fmt.Errorf("tag names no object")
	}
	return t, nil
}
