package rollouts

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// newID gives a random id that starts with prefix: 80 bits, so that none can be guessed.
func newID(prefix string) string {
	raw := make([]byte, 10)
	_, _ = rand.Read(raw) // never fails: crypto/rand ends the program instead
	return prefix + hex.EncodeToString(raw)
}

// agentToken makes the agent token of a rollout. Only its hash is kept. Where the create carried an
// Idempotency-Key, the token is derived from that key and a salt that is kept, so that a retry of
// the create after a restart is answered with the same token, although the store does not hold it.
func agentToken(salt []byte, key, id string) string {
	secret := make([]byte, sha256.Size)
	if key == "" {
		_, _ = rand.Read(secret)
	} else {
		mac := hmac.New(sha256.New, salt)
		mac.Write([]byte(id + "\x00" + key))
		secret = mac.Sum(secret[:0])
	}
	return "pat_" + base64.RawURLEncoding.EncodeToString(secret)
}

func newSalt() []byte {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt)
	return salt
}

func sum(text string) []byte {
	h := sha256.Sum256([]byte(text))
	return h[:]
}

// sameToken compares a token with a stored hash in constant time. A dead hash (none) opens nothing.
func sameToken(token string, hash []byte) bool {
	if len(hash) != sha256.Size {
		hash = make([]byte, sha256.Size)
		subtle.ConstantTimeCompare(sum(token), hash)
		return false
	}
	return subtle.ConstantTimeCompare(sum(token), hash) == 1 && strings.HasPrefix(token, "pat_")
}
