package client

import (
	"context"
	"net/http"
	"net/url"

	"proctor/internal/rollouts"
)

// Snapshot keeps a running rollout's files.
func (c *Client) Snapshot(ctx context.Context, id string) (rollouts.Snapshot, error) {
	var s rollouts.Snapshot
	err := c.Do(ctx, http.MethodPost, rollout(id)+"/snapshot", "", struct{}{}, &s)
	return s, err
}

// Snapshots lists what is kept of a rollout's files.
func (c *Client) Snapshots(ctx context.Context, id string) ([]rollouts.Snapshot, error) {
	var page struct {
		Snapshots []rollouts.Snapshot `json:"snapshots"`
	}
	err := c.Do(ctx, http.MethodGet, rollout(id)+"/snapshots", "", nil, &page)
	return page.Snapshots, err
}

// DropSnapshot removes a snapshot.
func (c *Client) DropSnapshot(ctx context.Context, id, snapshot string) error {
	return c.Do(ctx, http.MethodDelete, rollout(id)+"/snapshots/"+url.PathEscape(snapshot), "", nil, nil)
}

// Fork makes rollouts that go on from where another stands, or stood.
func (c *Client) Fork(ctx context.Context, id string, req rollouts.ForkRequest, headers ...string) (rollouts.GroupCreated, error) {
	var made rollouts.GroupCreated
	err := c.Do(ctx, http.MethodPost, rollout(id)+"/fork", "", req, &made, headers...)
	return made, err
}
