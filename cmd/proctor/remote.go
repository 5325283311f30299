package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"proctor/internal/client"
)

// remote is how client commands find their server: by PROCTOR_URL and PROCTOR_API_KEY, or by the
// data folder of a server on this machine.
type remote struct {
	data   string
	asJSON bool
}

// flags adds the flags that every client command has.
func (r *remote) flags(cmd *cobra.Command) {
	data := os.Getenv("PROCTOR_DATA")
	if data == "" {
		data = ".proctor"
	}
	cmd.Flags().StringVar(&r.data, "data", data, "data folder of the server, where PROCTOR_URL is not set")
	cmd.Flags().BoolVar(&r.asJSON, "json", false, "print one JSON document")
}

// open finds the server.
func (r *remote) open() (*client.Client, error) {
	c, err := client.Find(filepath.Clean(r.data), os.Getenv)
	if err != nil {
		return nil, infra(err)
	}
	return c, nil
}

// answered gives an error of the client its exit status: the server's refusals of what was asked
// are bad input, all else is infrastructure.
func answered(err error) error {
	var p *client.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p) && p.Status < 500 && p.Status != 429:
		return usage(err)
	}
	return infra(err)
}

// ptr shows a value that may be missing.
func ptr[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}
