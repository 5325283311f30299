package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Models is the model gateway. *gateway.Gateway.
type Models interface {
	Chat(w http.ResponseWriter, r *http.Request, rollout string)
	Messages(w http.ResponseWriter, r *http.Request, rollout string)
	Models(w http.ResponseWriter, r *http.Request, rollout string)
}

func (s *Server) gatewayRoutes(r chi.Router) {
	r.Post("/v1/rollouts/{id}/openai/v1/chat/completions", s.model(Models.Chat))
	r.Get("/v1/rollouts/{id}/openai/v1/models", s.model(Models.Models))
	r.Post("/v1/rollouts/{id}/anthropic/v1/messages", s.model(Models.Messages))
}

func gatewayOperations() []operation {
	const ro = "/v1/rollouts/{id}"
	return []operation{
		{"POST", ro + "/openai/v1/chat/completions", "Ask the rollout's policy, as OpenAI's chat completions", "agent", nil, map[string]any{}, map[string]any{}, 200},
		{"GET", ro + "/openai/v1/models", "The rollout's policy", "agent", nil, nil, map[string]any{}, 200},
		{"POST", ro + "/anthropic/v1/messages", "Ask the rollout's policy, as Anthropic's messages", "agent", nil, map[string]any{}, map[string]any{}, 200},
	}
}

// model passes a request to the gateway. Refusals of the token are the one refusal of the plane; what
// comes after it has the protocol's own form, which the clients read.
func (s *Server) model(serve func(Models, http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return s.agent(func(w http.ResponseWriter, r *http.Request, id, _ string) error {
		if s.models == nil {
			return notFound()
		}
		serve(s.models, w, r, id)
		return nil
	})
}
