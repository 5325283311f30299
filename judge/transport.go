package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// responseLimit bounds what is read of a response. An answer is under 4 KiB; an endpoint that
// streams without end must not fill memory.
const responseLimit = 1 << 20

// transport bounds response bodies and notes Retry-After, which go-openai does not hand on.
type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if h, ok := req.Context().Value(hintKey{}).(*retryHint); ok {
		h.after = retryAfter(res.Header.Get("Retry-After"), time.Now())
	}
	res.Body = &limitedBody{Reader: io.LimitReader(res.Body, responseLimit), Closer: res.Body}
	return res, nil
}

type limitedBody struct {
	io.Reader
	io.Closer
}

type hintKey struct{}

// retryHint takes what one response said about coming back.
type retryHint struct{ after time.Duration }

func withHint(ctx context.Context, h *retryHint) context.Context {
	return context.WithValue(ctx, hintKey{}, h)
}

// retryAfter reads the header: seconds, whole or not, or a date (RFC 9110 10.2.3); 0 for none.
func retryAfter(v string, now time.Time) time.Duration {
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// classify names the failure behind err and says whether to try again.
func classify(ctx context.Context, err error) (failure string, again bool) {
	var api *openai.APIError
	var req *openai.RequestError
	status := 0
	switch {
	case errors.As(err, &api):
		status = api.HTTPStatusCode
	case errors.As(err, &req):
		status = req.HTTPStatusCode
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return FailTimeout, ctx.Err() == nil
	case status == http.StatusTooManyRequests:
		return FailRateLimited, true
	case status >= 500, status == http.StatusRequestTimeout:
		return FailOutage, true
	case status >= 300:
		return FailOutage, false // our request is wrong, or the key: the same again would not help
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF) && status == 0:
		return FailGarbage, false
	}
	return FailOutage, true
}

// describe gives err in words for a record, at most 300 bytes, without what a body may hold.
func describe(err error) string {
	var req *openai.RequestError
	if errors.As(err, &req) {
		return cut(fmt.Sprintf("HTTP %d from the judge", req.HTTPStatusCode), 300)
	}
	return cut(err.Error(), 300)
}
