// Package keys holds the further API keys of a data folder, beside its trainer key: each with a name
// and a role, kept as a hash in keys/keys.json. A running server follows the file.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Roles are what keys may be for, each holding those before it.
var Roles = []string{"reviewer", "trainer", "admin"}

// limit bounds the keys of a folder; each request with an unknown key is held against all.
const limit = 1000

// Key is a key without its secret.
type Key struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	SHA256    string    `json:"sha256"` // of the secret, in hex
	CreatedAt time.Time `json:"created_at"`
}

var (
	// ErrTaken is for a name that there is already.
	ErrTaken = errors.New("there is a key of this name")
	// ErrUnknown is for a name that there is not.
	ErrUnknown = errors.New("there is no key of this name")
)

func file(data string) string { return filepath.Join(data, "keys", "keys.json") }

var goodName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// List gives a data folder's keys in the order of their making; none where there is no file. An
// unreadable or malformed file is an error that names it: opening the door to nobody in silence, or
// to anybody, would both be wrong.
func List(data string) ([]Key, error) {
	body, err := os.ReadFile(file(data))
	if errors.Is(err, fs.ErrNotExist) {
		return []Key{}, nil
	}
	if err != nil {
		return nil, err
	}
	var doc struct {
		Keys []Key `json:"keys"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w; correct it, or remove it and make the keys anew", file(data), err)
	}
	for i, k := range doc.Keys {
		if sum, err := hex.DecodeString(k.SHA256); err != nil || len(sum) != sha256.Size || !slices.Contains(Roles, k.Role) {
			return nil, fmt.Errorf("%s: keys[%d] (%s): role must be one of %v and sha256 64 hex digits", file(data), i, k.Name, Roles)
		}
	}
	return doc.Keys, nil
}

// Add makes a key and gives its secret, which is kept nowhere.
func Add(data, name, role string) (string, error) {
	if !goodName.MatchString(name) {
		return "", fmt.Errorf("name %q: use 1 to 64 of a-z, 0-9, dot, dash and underscore, a letter or digit first", name)
	}
	if !slices.Contains(Roles, role) {
		return "", fmt.Errorf("role %q: use one of %v", role, Roles)
	}
	var secret string
	err := change(data, func(all []Key) ([]Key, error) {
		if slices.ContainsFunc(all, func(k Key) bool { return k.Name == name }) {
			return nil, fmt.Errorf("%s: %w; remove it first", name, ErrTaken)
		}
		if len(all) >= limit {
			return nil, fmt.Errorf("there are %d keys; remove some", len(all))
		}
		var raw [24]byte
		if _, err := rand.Read(raw[:]); err != nil {
			return nil, err
		}
		secret = role[:1] + "k_" + hex.EncodeToString(raw[:])
		sum := sha256.Sum256([]byte(secret))
		return append(all, Key{name, role, hex.EncodeToString(sum[:]), time.Now().UTC().Truncate(time.Second)}), nil
	})
	return secret, err
}

// Remove takes a key away; a running server refuses it from then on.
func Remove(data, name string) error {
	return change(data, func(all []Key) ([]Key, error) {
		rest := slices.DeleteFunc(slices.Clone(all), func(k Key) bool { return k.Name == name })
		if len(rest) == len(all) {
			return nil, fmt.Errorf("%s: %w", name, ErrUnknown)
		}
		return rest, nil
	})
}

// change rewrites the file, atomically, readable by its owner alone.
func change(data string, how func([]Key) ([]Key, error)) error {
	all, err := List(data)
	if err != nil {
		return err
	}
	if all, err = how(all); err != nil {
		return err
	}
	body, err := json.MarshalIndent(map[string]any{"keys": all}, "", "  ")
	if err != nil {
		return err
	}
	path := file(data)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // it was renamed, where all went well
	_, werr := tmp.Write(append(body, '\n'))
	if err := errors.Join(werr, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// Ring opens doors by a data folder's keys, and follows their file. Safe for concurrent use.
type Ring struct {
	data string
	warn func(error)

	mu      sync.Mutex
	looked  time.Time
	changed time.Time // the file's own
	keys    map[[sha256.Size]byte]Key
}

// lookEvery is how long a removed key may go on to work.
const lookEvery = time.Second

// Open gives the Ring of a data folder. warn is told of a file that cannot be read later on; what was
// read before it holds.
func Open(data string, warn func(error)) (*Ring, error) {
	r := &Ring{data: data, warn: warn}
	return r, r.read()
}

// Find gives the name and role of a key by the hash of its secret; "" for none.
func (r *Ring) Find(sum [sha256.Size]byte) (name, role string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.looked) > lookEvery {
		r.looked = now
		if info, err := os.Stat(file(r.data)); err != nil && len(r.keys) > 0 || err == nil && !info.ModTime().Equal(r.changed) {
			if err := r.read(); err != nil {
				r.warn(err)
			}
		}
	}
	k := r.keys[sum]
	return k.Name, k.Role
}

// read reads the file. The lock is held, or nobody else has r yet.
func (r *Ring) read() error {
	var changed time.Time
	if info, err := os.Stat(file(r.data)); err == nil {
		changed = info.ModTime()
	}
	all, err := List(r.data)
	if err != nil {
		return err
	}
	r.changed, r.keys = changed, map[[sha256.Size]byte]Key{}
	for _, k := range all {
		var sum [sha256.Size]byte
		if _, err := hex.Decode(sum[:], []byte(k.SHA256)); err != nil {
			return err
		}
		r.keys[sum] = k
	}
	return nil
}
