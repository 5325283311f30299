package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"proctor/internal/trajectory"
)

// passage is an answer on its way from the server to the client, read on the side.
type passage struct {
	g      *Gateway
	w      http.ResponseWriter
	client context.Context // ends when the client hangs up
	a      *ask
	c      *trajectory.ModelCall
	cap    *capture
	prompt func() []int32 // llama.cpp's prompt ids; nil for other servers

	complete bool // the server's answer came whole and was recorded
	lost     bool // the client has hung up
}

// whole passes an answer on that is no stream. It is recorded first: a client that has it has a
// recorded one.
func (p *passage) whole(ctx context.Context, res *http.Response) {
	body, err := io.ReadAll(io.LimitReader(res.Body, answerLimit+1))
	if err != nil || len(body) > answerLimit {
		p.c.Error = "the model server broke off"
		p.record(ctx, false)
		p.g.refuse(p.w, p.a.front, refuse(http.StatusBadGateway, "model_server_broke_off", "the model server broke off its answer"))
		return
	}
	same := p.a.front.name() == dialectName(p.a.target)
	if dialectName(p.a.target) == "anthropic" {
		readAnthropic(p.cap, body)
	} else {
		p.cap.read(body)
	}
	p.record(ctx, len(p.cap.message()) > 0)
	passHeaders(p.w, res)
	if !same {
		body = p.a.front.whole(p.a, p.c)
	}
	p.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	p.w.WriteHeader(res.StatusCode)
	_, _ = p.w.Write(body) // of a client that hung up the record says so
}

// stream passes an event stream on, each piece as it comes, but for its last event, which waits for
// the record.
func (p *passage) stream(ctx context.Context, res *http.Response) {
	passHeaders(p.w, res)
	p.w.Header().Set("Cache-Control", "no-store")
	p.w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(p.w)
	out := func(b []byte) {
		if p.lost || len(b) == 0 {
			return
		}
		if _, err := p.w.Write(b); err != nil || flush.Flush() != nil {
			p.lost = true
		}
	}
	feed := p.cap.feed
	if dialectName(p.a.target) == "anthropic" {
		feed = (&anthropicReader{cap: p.cap}).feed
	}
	translate := p.a.front.translator(p.a, out)
	if p.a.front.name() == dialectName(p.a.target) {
		translate = nil
	}
	if translate != nil {
		p.cap.onDelta = translate.delta
	}
	out([]byte{}) // nothing: the headers go out with the first piece
	_ = flush.Flush()
	rest, err := p.pump(res.Body, feed, out, translate == nil)
	p.lost = p.lost || p.client.Err() != nil
	p.record(ctx, p.cap.done)
	if translate != nil && p.cap.done {
		translate.end(p.c)
	}
	out(rest)
	if err != nil && !p.lost {
		// A stream that breaks off is seen by the client as one that does: it has no last event.
		p.g.opt.Log.Warn("the model server broke off a stream", "rollout", p.a.rollout, "err", err)
	}
}

// pump passes pieces on until the last event, which it gives back.
func (p *passage) pump(body io.Reader, feed func([]byte) int, out func([]byte), raw bool) (rest []byte, err error) {
	buf := make([]byte, 32<<10)
	for looked := 0; ; {
		n, err := body.Read(buf)
		if n > 0 {
			end := n
			if looked += n; looked <= answerLimit {
				end = feed(buf[:n])
			} else {
				p.cap.spoil("the stream is too long to be recorded")
			}
			if raw {
				out(buf[:end])
			}
			if p.cap.done {
				if raw {
					rest = append(rest, buf[end:n]...)
					more, _ := io.ReadAll(io.LimitReader(body, 64<<10)) // blank lines after the end
					rest = append(rest, more...)
				}
				return rest, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		case p.lost:
			return nil, nil
		}
	}
}

// record writes the call. One that came whole is kept under its Idempotency-Key.
func (p *passage) record(ctx context.Context, whole bool) {
	m := p.g.opt.Metrics
	if p.cap.llama {
		p.g.learn(p.a.target.BaseURL, func(l *learned) { l.llama = true })
		p.promptFromTemplate(ctx)
	}
	p.cap.fill(p.c)
	p.c.Disconnected = p.client.Err() != nil || p.lost
	key := ""
	switch {
	case !whole:
		if p.c.Error == "" {
			p.c.Error = "the answer broke off"
		}
		m.count("broke_off")
	default:
		key = p.a.key
		m.count("ok")
	}
	if p.c.Disconnected {
		m.count("disconnected")
	}
	if p.c.TextOnly != "" {
		m.count("text_only")
	}
	if p.c.VersionStart == "" {
		m.count("unknown_version")
	}
	// The record is written whatever became of the client and its stream.
	p.complete = p.g.append(context.WithoutCancel(ctx), p.a, p.c, key) && whole
}

// promptFromTemplate takes llama.cpp's prompt ids, if they are as many as the server counted.
func (p *passage) promptFromTemplate(ctx context.Context) {
	if len(p.cap.prompt) > 0 {
		return
	}
	get := p.prompt
	if get == nil {
		get = func() []int32 { return p.g.llamaPrompt(ctx, p.a) }
	}
	ids := get()
	if u := p.cap.usage; u != nil && u.Prompt != len(ids) {
		p.cap.spoil(fmt.Sprintf("the server counted %d tokens in the prompt, and its tokenizer gives %d", u.Prompt, len(ids)))
		return
	}
	p.cap.prompt = ids
}
