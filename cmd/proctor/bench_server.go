package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// benchServer is a server of the benchmark's own, in a folder of its own, with one rollout or more.
type benchServer struct {
	child  *exec.Cmd
	exited chan error
	folder string
	url    string
	key    string // of a trainer
	http   http.Client
	*benchAgent
	made []*benchAgent // all that were made, the first included
}

// benchAgent makes calls in one rollout. Not safe for concurrent use.
type benchAgent struct {
	server  *benchServer
	rollout string
	token   string // of the rollout's agent
	sent    int
}

// startBenchServer starts `proctor serve` on a free port and makes a rollout of image.
func startBenchServer(ctx context.Context, image, boxd string) (_ *benchServer, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "proctor-bench")
	if err != nil {
		return nil, err
	}
	s := &benchServer{folder: folder, exited: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
		}
	}()
	ready := filepath.Join(folder, "ready.json")
	s.child = exec.Command(self, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(folder, "data"), "--ready-file", ready)
	s.child.Env = append(os.Environ(), "PROCTOR_ON_EXIT=remove", "PROCTOR_LOG_LEVEL=warn", "PROCTOR_BOXD="+boxd)
	var words bytes.Buffer
	s.child.Stderr = &words
	if err := s.child.Start(); err != nil {
		s.child = nil
		return nil, err
	}
	go func() { s.exited <- s.child.Wait() }()
	if err := s.await(ctx, ready); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, strings.TrimSpace(words.String()))
	}
	key, err := os.ReadFile(filepath.Join(folder, "data", "keys", "trainer.key"))
	if err != nil {
		return nil, err
	}
	s.key = strings.TrimSpace(string(key))
	s.benchAgent, err = s.create(ctx, image)
	return s, err
}

// await reads the ready file once it is there.
func (s *benchServer) await(ctx context.Context, ready string) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if text, err := os.ReadFile(ready); err == nil {
			var said struct {
				URL string `json:"url"`
			}
			if err := json.Unmarshal(text, &said); err != nil {
				return fmt.Errorf("the server's ready file: %w", err)
			}
			s.url = said.URL
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("the server ended at once: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.New("the server is not ready after 30 s")
}

// create makes a rollout.
func (s *benchServer) create(ctx context.Context, image string) (*benchAgent, error) {
	order := map[string]any{"hardening": false, "task": map[string]any{
		"id": "bench", "instruction": "bench", "image": image, "workdir": "/"}}
	var made struct {
		ID    string `json:"id"`
		Token string `json:"agent_token"`
	}
	if err := s.post(ctx, "/v1/rollouts", s.key, "", order, http.StatusCreated, &made); err != nil {
		return nil, err
	}
	a := &benchAgent{server: s, rollout: made.ID, token: made.Token}
	s.made = append(s.made, a)
	return a, nil
}

// agents makes n more rollouts.
func (s *benchServer) agents(ctx context.Context, image string, n int) ([]*benchAgent, error) {
	s.http.Transport = &http.Transport{MaxIdleConnsPerHost: n} // each agent keeps its connection, as it would at home
	var all []*benchAgent
	for range n {
		a, err := s.create(ctx, image)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// bash makes a tool call as an agent does; the command must end with 0.
func (a *benchAgent) bash(ctx context.Context, command string) error {
	call := map[string]any{"call_id": "call_0", "name": "bash", "arguments": map[string]string{"command": command}}
	var got struct {
		Exit *int `json:"exit_code"`
	}
	a.sent++
	err := a.server.post(ctx, "/v1/rollouts/"+a.rollout+"/calls", a.token, fmt.Sprintf("bench-%d", a.sent), call, http.StatusOK, &got)
	return ended(got.Exit, err)
}

// post sends body and reads the answer into answer; any other status than want is an error.
func (s *benchServer) post(ctx context.Context, path, token, idempotency string, body any, want int, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	if idempotency != "" {
		request.Header.Set("Idempotency-Key", idempotency)
	}
	reply, err := s.http.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		return err
	}
	if reply.StatusCode != want {
		return fmt.Errorf("POST %s: %s: %.300s", path, reply.Status, data)
	}
	return json.Unmarshal(data, answer)
}

// stop removes the rollout, ends the server and removes its folder.
func (s *benchServer) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var errs []error
	for _, a := range s.made {
		errs = append(errs, s.drop(ctx, a.rollout))
	}
	if s.child != nil {
		_ = s.child.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		select {
		case <-s.exited:
		case <-ctx.Done():
			errs = append(errs, s.child.Process.Kill())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.folder))...)
}

// drop deletes a rollout.
func (s *benchServer) drop(ctx context.Context, rollout string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.url+"/v1/rollouts/"+rollout, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	reply, err := s.http.Do(request)
	if err != nil {
		return err
	}
	return reply.Body.Close()
}
