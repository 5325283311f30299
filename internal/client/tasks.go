package client

import (
	"context"
	"net/http"
	"net/url"

	"proctor/tasks"
)

// Task gives a task that the server was started with. A task that a rollout brought itself is not
// among them.
func (c *Client) Task(ctx context.Context, id string) (*tasks.Task, error) {
	var t tasks.Task
	err := c.Do(ctx, http.MethodGet, "/v1/tasks/"+url.PathEscape(id), "", nil, &t)
	return &t, err
}
