package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"proctor/internal/api"
	"proctor/internal/demo"
	"proctor/internal/lab"
	"proctor/internal/rollouts"
	"proctor/sandbox/docker"
	"proctor/tasks"
)

// twins stands between a demo's server and its parts: rollouts marked as twins join an internal
// network with a stand-in for the task's upstream, and what started from an unhardened image is
// graded the naive way. Nothing of it is reachable from a server that `proctor serve` runs.
type twins struct {
	engine  *docker.Engine
	network string
	service string
	raw     sync.Map // Image.Data of unhardened images
}

// open makes the network and starts the upstream on it.
func (t *twins) open(ctx context.Context, engine *docker.Engine, task *tasks.Task) (err error) {
	t.engine, t.network = engine, fmt.Sprintf("upstream-%d", os.Getpid())
	files, err := upstreamFiles(task.Dir)
	if err != nil {
		return fmt.Errorf("read the stand-in upstream of task %s: %w", task.ID, err)
	}
	if err := engine.InternalNetwork(ctx, t.network); err != nil {
		return err
	}
	image := task.Image
	if task.Build != nil {
		image = task.Build.Base
	}
	service, err := engine.StartService(ctx, docker.ServiceSpec{
		Name: "upstream", Image: image, Network: t.network, Aliases: task.Vars.UpstreamHosts, Files: files,
		Argv: []string{"python3", "/srv/upstream/serve.py", "--history", "/srv/image/.build/history", "--port", "80"},
	})
	if err != nil {
		return errors.Join(err, engine.RemoveNetwork(ctx, t.network))
	}
	t.service = service.ID
	if err := waitHTTP(ctx, "http://"+service.Address+"/"); err != nil {
		return errors.Join(fmt.Errorf("the stand-in upstream does not answer: %w", err), t.close(ctx))
	}
	return nil
}

// close takes the upstream and its network away.
func (t *twins) close(ctx context.Context) error {
	if t.engine == nil {
		return nil
	}
	return errors.Join(t.engine.RemoveService(ctx, t.service), t.engine.RemoveNetwork(ctx, t.network))
}

// waitHTTP polls an address until something answers, for at most 30 seconds.
func waitHTTP(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			return res.Body.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// upstreamFiles packs the task's stand-in and the history that it serves, for /srv.
func upstreamFiles(dir string) ([]byte, error) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, part := range []string{"upstream", filepath.Join("image", ".build", "history")} {
		root := filepath.Join(dir, part)
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				return err
			}
			return addFile(tw, name, path.Join("srv", filepath.ToSlash(rel)), d)
		})
		if err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), tw.Close()
}

// addFile adds a file or folder to a tar.
func addFile(tw *tar.Writer, name, as string, d fs.DirEntry) error {
	if d.IsDir() {
		return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: as + "/", Mode: 0o755})
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: as, Mode: 0o644, Size: int64(len(body))}); err != nil {
		return err
	}
	_, err = tw.Write(body)
	return err
}

// rollouts puts twins onto the network.
func (t *twins) rollouts(inner api.Rollouts) api.Rollouts { return twinRollouts{inner, t} }

type twinRollouts struct {
	api.Rollouts
	twins *twins
}

// Create makes a rollout, a twin on the network with the upstream.
func (r twinRollouts) Create(ctx context.Context, key string, req rollouts.CreateRequest) (rollouts.Created, error) {
	if twin, _ := req.Metadata[demo.TwinKey].(bool); twin {
		req.Network = &rollouts.NetworkOverride{Name: r.twins.network}
	}
	return r.Rollouts.Create(ctx, key, req)
}

// lab grades unhardened rollouts the naive way.
func (t *twins) lab(inner *lab.Lab) rollouts.Lab { return twinLab{inner, t} }

type twinLab struct {
	*lab.Lab
	twins *twins
}

// Prepare notes which images are unhardened.
func (l twinLab) Prepare(ctx context.Context, task *tasks.Task, hardened bool) (rollouts.Image, error) {
	img, err := l.Lab.Prepare(ctx, task, hardened)
	if err == nil && !hardened {
		l.twins.raw.Store(string(img.Data), true)
	}
	return img, err
}

// Grade grades a twin in its own sandbox, any other in a fresh one.
func (l twinLab) Grade(ctx context.Context, job rollouts.GradeJob) (tasks.Grade, error) {
	if _, twin := l.twins.raw.Load(string(job.Image.Data)); twin {
		return l.InPlace(ctx, job)
	}
	return l.Lab.Grade(ctx, job)
}
