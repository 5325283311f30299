package api

import (
	"fmt"
	"net/http"
	"time"
)

// heartbeat is how often a quiet stream says something, which keeps proxies from closing it.
const heartbeat = 15 * time.Second

// streamEvents sends what comes from feed as server-sent events, until feed is closed or the client is gone.
// frame gives the text of one event; an error of it ends the stream.
func streamEvents[T any](w http.ResponseWriter, r *http.Request, feed <-chan T, frame func(T) (string, error)) {
	flusher := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_ = flusher.Flush()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		text := ": beat\n\n"
		select {
		case item, open := <-feed:
			if !open {
				return
			}
			var err error
			if text, err = frame(item); err != nil {
				return
			}
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
		if _, err := fmt.Fprint(w, text); err != nil {
			return
		}
		_ = flusher.Flush()
	}
}
