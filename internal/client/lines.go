package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxAnswerLine bounds one line of an answer, in bytes.
const maxAnswerLine = 1 << 30

// Lines reads an answer of JSON lines and gives each without its line feed. The bytes are the
// caller's to keep. An answer that breaks off is an error.
func (c *Client) Lines(ctx context.Context, path string, each func([]byte) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	res, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return read(res, nil)
	}
	br := bufio.NewReaderSize(res.Body, 256<<10)
	for {
		var line []byte
		part, err := br.ReadSlice('\n')
		for line = append(line, part...); errors.Is(err, bufio.ErrBufferFull); line = append(line, part...) {
			if len(line) > maxAnswerLine {
				return fmt.Errorf("%s answers with a line of more than %d bytes", path, maxAnswerLine)
			}
			part, err = br.ReadSlice('\n')
		}
		switch {
		case err == nil:
			if err := each(line[:len(line)-1]); err != nil {
				return err
			}
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		default:
			return fmt.Errorf("the answer of %s breaks off: %w", path, err)
		}
	}
}
