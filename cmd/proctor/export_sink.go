package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"proctor/internal/trajectory/export"
)

// exportSink is where documents go: stdout, one file of lines, a parquet file, a folder.
type exportSink interface {
	// done says whether a rollout is there already.
	done(rollout string) bool
	// rollout writes one rollout's documents, all or none.
	rollout(id string, fill func(each func(export.Document) error) error) error
	finish() error
	abandon() error
}

// sink opens what the flags name.
func (x *exportFlags) sink(stdout io.Writer) (exportSink, error) {
	switch {
	case x.out == "":
		return stdoutSink{stdout}, nil
	case strings.HasSuffix(x.out, ".parquet"):
		return newParquetSink(x.out)
	case export.Lines(x.form):
		f, err := export.OpenFile(x.out, x.compress, x.resume)
		if err != nil {
			return nil, err
		}
		return fileSink{f}, nil
	}
	if x.compress != export.Plain {
		return nil, fmt.Errorf("--format %s writes a folder of documents, which is not compressed", x.form)
	}
	return folderSink{x.out, x.resume}, os.MkdirAll(x.out, 0o755)
}

type stdoutSink struct{ w io.Writer }

func (stdoutSink) done(string) bool { return false }
func (s stdoutSink) rollout(_ string, fill func(func(export.Document) error) error) error {
	return fill(func(d export.Document) error {
		_, err := s.w.Write(append(d.Body, '\n'))
		return err
	})
}
func (stdoutSink) finish() error  { return nil }
func (stdoutSink) abandon() error { return nil }

type fileSink struct{ f *export.File }

func (s fileSink) done(id string) bool { return s.f.Done(id) }
func (s fileSink) rollout(id string, fill func(func(export.Document) error) error) error {
	return s.f.Rollout(id, fill)
}
func (s fileSink) finish() error  { return s.f.Finish() }
func (s fileSink) abandon() error { return s.f.Abandon() }

// parquetSink writes beside the file and renames, since half a parquet file is none.
type parquetSink struct {
	path string
	f    *os.File
	p    *export.Parquet
}

func newParquetSink(path string) (*parquetSink, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return nil, err
	}
	return &parquetSink{path, f, export.NewParquet(f)}, nil
}

func (*parquetSink) done(string) bool { return false }
func (s *parquetSink) rollout(_ string, fill func(func(export.Document) error) error) error {
	return fill(s.p.Add)
}
func (s *parquetSink) finish() error {
	return errors.Join(s.p.Close(), s.f.Chmod(0o644), s.f.Close(), os.Rename(s.f.Name(), s.path))
}
func (s *parquetSink) abandon() error { return errors.Join(s.f.Close(), os.Remove(s.f.Name())) }

// folderSink writes a file a document. A rollout whose first document is there is done.
type folderSink struct {
	dir    string
	resume bool
}

func (s folderSink) done(id string) bool {
	if !s.resume {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir, "."+id+".done"))
	return err == nil
}

func (s folderSink) rollout(id string, fill func(func(export.Document) error) error) error {
	err := fill(func(d export.Document) error {
		return writeAtomic(filepath.Join(s.dir, filepath.Base(d.Name)), append(d.Body, '\n'), 0o644)
	})
	if err != nil {
		return err
	}
	return writeAtomic(filepath.Join(s.dir, "."+id+".done"), nil, 0o644)
}

func (s folderSink) finish() error {
	marks, err := filepath.Glob(filepath.Join(s.dir, ".*.done"))
	for _, m := range marks {
		err = errors.Join(err, os.Remove(m))
	}
	return err
}
func (folderSink) abandon() error { return nil }
