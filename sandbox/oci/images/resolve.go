package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"proctor/sandbox"
)

// Daemon is what the store needs of a Docker daemon; *client.Client, wrapped by DockerDaemon, is one.
type Daemon interface {
	// Inspect gives the configuration of the image that ref names, and its id; sandbox.ErrNoImage where there is none,
	// another error where the daemon does not answer.
	Inspect(ctx context.Context, ref string) (id string, config *v1.ConfigFile, err error)
	// Save gives an image, by id, as an archive of `docker save`.
	Save(ctx context.Context, id string) (io.ReadCloser, error)
}

// Sources are where refs that are no files are looked for, besides the store.
type Sources struct {
	Daemon Daemon // nil for none
	// NoRegistry keeps registries from being asked.
	NoRegistry bool
}

// registrySilence is how long a registry may take to say what an image is made of.
const registrySilence = 20 * time.Second

// Resolve gives the image that ref stands for, unpacked: from a file, from the store where Commit made it, from the
// daemon, from what the store remembers, from a registry, in that order. Errors: sandbox.ErrNoImage, ErrBadImage,
// ErrUnavailable. The caller holds the store until it has written down that it uses the image.
func (s *Store) Resolve(ctx context.Context, ref string, from Sources) (Record, error) {
	if f, ok := fileRef(ref); ok {
		return s.fromFile(ctx, ref, f)
	}
	if !wellFormed(ref) {
		return Record{}, fmt.Errorf("%w: %q is no image reference", sandbox.ErrNoImage, ref)
	}
	entry, known := s.ref(ref)
	if known && entry.Owner != "" {
		return s.Lookup(entry.Digest)
	}
	if strings.HasPrefix(ref, "sha256:") {
		if r, err := s.Lookup(ref); err == nil {
			return r, nil
		}
	}
	r, err := s.fromDaemon(ctx, ref, from.Daemon)
	if err == nil || !errors.Is(err, sandbox.ErrNoImage) && !errors.Is(err, errNoDaemon) {
		return r, err
	}
	missing := err
	if known {
		if r, err := s.Lookup(entry.Digest); err == nil {
			return r, nil
		}
	}
	if from.NoRegistry || strings.HasPrefix(ref, ours) || strings.HasPrefix(ref, "sha256:") {
		return Record{}, fmt.Errorf("%w: %s%s: %w", sandbox.ErrNoImage, ref, remedy(ref), missing)
	}
	r, err = s.fromRegistry(ctx, ref)
	if err != nil && ctx.Err() != nil {
		return Record{}, ctx.Err()
	}
	return r, err
}

// remedy says how to come by an image that only we build.
func remedy(ref string) string {
	if strings.HasPrefix(ref, ours) {
		return "; build it with `make image`"
	}
	return ""
}

// errNoDaemon says that no daemon answers.
var errNoDaemon = errors.New("no Docker daemon answers")

// fromDaemon adds an image of the daemon's.
func (s *Store) fromDaemon(ctx context.Context, ref string, daemon Daemon) (Record, error) {
	if daemon == nil {
		return Record{}, errNoDaemon
	}
	id, config, err := daemon.Inspect(ctx, ref)
	if ctx.Err() != nil {
		return Record{}, ctx.Err()
	}
	if err != nil {
		return Record{}, err
	}
	if r, err := s.Lookup(id); err == nil {
		return r, s.remember(ref, id)
	}
	// One export at a time; of a store's layers, those that another image brought need none.
	release, err := s.lock(ctx, "t/"+key(id)+".lock", unix.LOCK_EX)
	if err != nil {
		return Record{}, err
	}
	defer release()
	if r, err := s.assemble(ctx, id, config, ref); err == nil {
		return r, s.remember(ref, id)
	}
	archive, err := s.export(ctx, id, daemon)
	if err != nil {
		return Record{}, err
	}
	defer os.Remove(archive)
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return Record{}, fmt.Errorf("%s: what the daemon exports: %w", ref, bad("", err))
	}
	r, err := s.add(ctx, img, ref)
	if err != nil {
		return Record{}, err
	}
	return r, s.remember(ref, r.Digest)
}

// remember keeps what a ref stood for, for when the daemon is not there.
func (s *Store) remember(ref, digest string) error {
	if entry, known := s.ref(ref); known && entry.Digest == digest {
		return nil
	}
	return s.tag(ref, digest, "")
}

// export writes an image of the daemon's to a file: its archive tells only at its end what the layers before it are.
func (s *Store) export(ctx context.Context, id string, daemon Daemon) (_ string, err error) {
	stream, err := daemon.Save(ctx, id)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	f, err := os.Create(s.workFolder() + ".tar")
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := io.Copy(f, stream); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%w: export %s: %w", sandbox.ErrUnavailable, id, err)
	}
	return f.Name(), nil
}

// fromRegistry pulls an image.
func (s *Store) fromRegistry(ctx context.Context, ref string) (Record, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %q is no image reference: %v", sandbox.ErrNoImage, ref, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(registrySilence, func() { cancel(fmt.Errorf("no registry answered for %v", registrySilence)) })
	img, err := remote.Image(parsed, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	silence.Stop()
	if err != nil {
		return Record{}, fmt.Errorf("%w: %s: not here, and pulling it failed: %v", sandbox.ErrNoImage, ref, errors.Join(err, context.Cause(ctx)))
	}
	r, err := s.add(ctx, img, ref)
	if err != nil {
		return Record{}, err
	}
	return r, s.remember(ref, r.Digest)
}

// DockerDaemon gives the images of a Docker daemon.
func DockerDaemon(cli *client.Client) Daemon { return dockerDaemon{cli} }

type dockerDaemon struct{ cli *client.Client }

func (d dockerDaemon) Inspect(ctx context.Context, ref string) (string, *v1.ConfigFile, error) {
	got, err := d.cli.ImageInspect(ctx, ref)
	switch {
	case errdefs.IsNotFound(err), errdefs.IsInvalidArgument(err):
		return "", nil, fmt.Errorf("%w: the Docker daemon has no %s", sandbox.ErrNoImage, ref)
	case err != nil:
		return "", nil, fmt.Errorf("%w: %w", errNoDaemon, err)
	}
	config := &v1.ConfigFile{OS: got.Os, Architecture: got.Architecture}
	if got.Config != nil {
		config.Config = v1.Config{User: got.Config.User, Env: got.Config.Env, Entrypoint: got.Config.Entrypoint, Cmd: got.Config.Cmd}
	}
	for _, text := range got.RootFS.Layers {
		id, err := v1.NewHash(text)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", ref, bad("its layers", err))
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, id)
	}
	return got.ID, config, nil
}

func (d dockerDaemon) Save(ctx context.Context, id string) (io.ReadCloser, error) {
	stream, err := d.cli.ImageSave(ctx, []string{id})
	if err != nil {
		return nil, fmt.Errorf("%w: export %s from the Docker daemon: %w", sandbox.ErrUnavailable, id, err)
	}
	return stream, nil
}
