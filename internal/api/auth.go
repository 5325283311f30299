package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Roles of keys on the trainer plane, each holding those before it.
const (
	RoleReviewer = "reviewer" // reads records, reviews verdicts
	RoleTrainer  = "trainer"  // runs rollouts
	RoleAdmin    = "admin"    // reloads packs, drains
)

// Key opens the trainer plane.
type Key struct {
	Secret string
	Role   string
}

// keyring holds keys by hash, so that comparing takes the same time whatever was sent.
type keyring []struct {
	sum  [sha256.Size]byte
	role string
}

func newKeyring(keys []Key) keyring {
	var ring keyring
	for _, k := range keys {
		ring = append(ring, struct {
			sum  [sha256.Size]byte
			role string
		}{sha256.Sum256([]byte(k.Secret)), k.Role})
	}
	return ring
}

// role gives the role that a secret opens, "" for none. Every key is compared, in constant time.
func (ring keyring) role(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	found := ""
	for _, k := range ring {
		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 {
			found = k.role
		}
	}
	return found
}

// bearer gives the secret of a request: Authorization: Bearer, or X-API-Key.
func bearer(r *http.Request) string {
	if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(rest)
	}
	return r.Header.Get("X-API-Key")
}

// opens gives the name and role of the key with a secret; "" for none. The server's first key has the
// name "trainer.key", after its file.
func (s *Server) opens(secret string) (name, role string) {
	if role = s.keys.role(secret); role != "" || s.moreKeys == nil || secret == "" {
		return "trainer.key", role
	}
	// A lookup by hash: how long it takes tells nothing of the secret.
	return s.moreKeys(sha256.Sum256([]byte(secret)))
}

var rank = map[string]int{RoleReviewer: 1, RoleTrainer: 2, RoleAdmin: 3}

// trainer lets requests through whose key has at least the role need. All others get the one
// refusal, so that an agent token learns of no route.
func (s *Server) trainer(need string, next handler) http.HandlerFunc {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		name, role := s.opens(bearer(r))
		if role == "" || rank[role] < rank[need] {
			if role != "" {
				s.log.WarnContext(r.Context(), "audit: refused", "key", name, "role", role, "needs", need, "method", r.Method, "path", r.URL.Path)
			}
			return notFound()
		}
		if r.Method != http.MethodGet {
			s.log.InfoContext(r.Context(), "audit", "key", name, "role", role, "method", r.Method, "path", r.URL.Path)
		}
		return next(w, r)
	})
}
