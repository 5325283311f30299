// Package mcptools serves a rollout's tools over the Model Context Protocol, streamable HTTP, stateless:
// every request stands alone, so that a client may come back after a server's restart.
package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"proctor/internal/compat"
	"proctor/internal/rollouts"
	"proctor/monitor"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxBody is the largest request, as on the other routes.
const maxBody = 16 << 20

// Handler serves the tools of one rollout to one caller.
func Handler(h compat.Host, who compat.Caller, version string) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return server(h, who, version, r.Header.Get("Idempotency-Key"))
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true}) // a page cannot know the rollout's token, which every request needs
}

func server(h compat.Host, who compat.Caller, version, key string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "proctor", Version: version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	for _, t := range rollouts.ToolList() {
		s.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: outputSchema},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return call(ctx, h, who, key, t.Name, req.Params.Arguments)
			})
	}
	return s
}

// outputSchema is the observation's form.
var outputSchema = json.RawMessage(`{"type":"object","properties":{"call_id":{"type":"string"},"output":{"type":"string"},` +
	`"exit_code":{"type":["integer","null"]},"timed_out":{"type":"boolean"},"truncated":{"type":"boolean"},"handle":{"type":["string","null"]}},` +
	`"required":["call_id","output","exit_code","timed_out","truncated","handle"]}`)

// call runs one tool. What the agent did wrong is a result that says so, since a protocol error never
// reaches the model.
func call(ctx context.Context, h compat.Host, who compat.Caller, key, name string, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	seen, err := compat.Call(ctx, h, who, key, name, args)
	var bad *monitor.BadCall
	switch {
	case errors.As(err, &bad):
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: bad.Error()}}}, nil
	case err != nil:
		return nil, errors.New(compat.Words(err))
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: seen.Output}}, StructuredContent: seen}, nil
}
