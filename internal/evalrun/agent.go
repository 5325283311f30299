package evalrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

// maxIdle is how many replies in a row may make no call.
const maxIdle = 3

// agent is the reference loop: ask, call, show, until the model submits or a budget is out.
type agent struct {
	plan     *Plan
	endpoint *Endpoint
	server   *server
	made     *rollouts.Created
	talk     *talk
	began    time.Time // of this sitting
	before   float64   // seconds of earlier sittings
	say      func(turn int)
}

// run works until the agent's part is over, and says why it ended.
func (a *agent) run(ctx context.Context) (string, error) {
	a.began, a.before = time.Now(), a.talk.seconds
	for {
		if a.talk.turn > 0 {
			if stop, err := a.act(ctx); stop != "" || err != nil {
				return stop, err
			}
		}
		if stop := a.over(); stop != "" {
			return stop, nil
		}
		if err := a.fit(ctx); err != nil {
			return "", err
		}
		if err := a.think(ctx); err != nil {
			return "", err
		}
		a.say(a.talk.turn)
	}
}

func (a *agent) elapsed() float64 { return a.before + time.Since(a.began).Seconds() }

// over names the budget that is out.
func (a *agent) over() string {
	b, t := a.plan.Budget, a.talk
	switch {
	case t.idle >= maxIdle:
		return StopNoCall
	case b.Turns > 0 && t.turn >= b.Turns:
		return StopTurns
	case b.Tokens > 0 && t.in+t.out >= b.Tokens:
		return StopTokens
	case b.Cost > 0 && a.plan.Prices.Of(t.in, t.out) >= b.Cost:
		return StopCost
	case b.Seconds > 0 && a.elapsed() >= b.Seconds:
		return StopTime
	}
	return ""
}

// act makes the calls of the last reply that were not made, or not answered, yet.
func (a *agent) act(ctx context.Context) (string, error) {
	calls, answered := a.talk.pending()
	if len(calls) == 0 && answered == 0 {
		nudge := nudgeTools
		if a.talk.protocol == Text {
			nudge = nudgeText
		}
		return "", a.show(&openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: nudge})
	}
	for i, c := range calls {
		text, stop, err := a.call(ctx, c, fmt.Sprintf("t%d.%d", a.talk.turn, answered+i))
		if err != nil || stop != "" {
			return stop, err
		}
		if err := a.show(c.answer(a.talk.protocol, text)); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (a *agent) show(m *openai.ChatCompletionMessage) error {
	return a.talk.note(entry{Kind: kindShown, Message: m, Seconds: a.elapsed()})
}

// call makes one call and gives what the model is shown. The key makes a repeated one harmless.
func (a *agent) call(ctx context.Context, c modelCall, key string) (text, stop string, err error) {
	switch {
	case c.wrong != "":
		return c.wrong, "", nil
	case c.name == monitor.ToolSubmit:
		if err := a.server.submit(ctx, a.made); err != nil && !ended(err) {
			return "", "", err
		}
		return "", StopSubmitted, nil
	}
	seen, err := a.server.call(ctx, a.made, c, key)
	var p *client.Problem
	switch {
	case err == nil:
		return observation(seen), "", nil
	case ended(err):
		return "", StopEnded, nil
	case errors.As(err, &p) && (p.Status == http.StatusUnprocessableEntity || p.Status == http.StatusRequestEntityTooLarge):
		return "The call was not made: " + p.Detail, "", nil // the model's own mistake
	}
	return "", "", err
}

// think asks for the next reply.
func (a *agent) think(ctx context.Context) error {
	res, err := a.endpoint.Ask(ctx, a.request())
	if refusesTools(err) && a.plan.Protocol == Auto && a.talk.turn == 0 && a.talk.protocol != Text {
		if err := a.talk.note(entry{Kind: kindProtocol, Protocol: Text, Seconds: a.elapsed()}); err != nil {
			return err
		}
		res, err = a.endpoint.Ask(ctx, a.request())
	}
	if tooLong(err) && len(a.talk.messages) > 4 {
		if err := a.talk.note(entry{Kind: kindCut, Seconds: a.elapsed()}); err != nil {
			return err
		}
		res, err = a.endpoint.Ask(ctx, a.request())
	}
	if err != nil {
		return err
	}
	in, out := a.usage(res)
	m := res.Choices[0].Message
	m.Role = openai.ChatMessageRoleAssistant
	return a.talk.note(entry{Kind: kindReply, Message: &m, TokensIn: in, TokensOut: out, Seconds: a.elapsed()})
}

func (a *agent) request() openai.ChatCompletionRequest {
	req := openai.ChatCompletionRequest{Model: a.plan.Model, Messages: a.talk.prompt(), Temperature: float32(a.plan.Temperature)}
	if a.talk.protocol != Text {
		req.Tools = toolsOf(a.made)
	}
	return req
}

// usage gives the tokens of an answer, estimated where the endpoint does not count.
func (a *agent) usage(res openai.ChatCompletionResponse) (in, out int) {
	if u := res.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		return u.PromptTokens, u.CompletionTokens
	}
	for _, m := range a.talk.prompt() {
		in += len(m.Content) / bytesPerToken
	}
	m := res.Choices[0].Message
	out = len(m.Content)
	for _, c := range m.ToolCalls {
		out += len(c.Function.Arguments)
	}
	return in, out/bytesPerToken + 1
}

// fit keeps the conversation within the context: at three quarters of it, so that the summary itself
// and the next answers fit, the model is asked to sum up, and goes on from that.
func (a *agent) fit(ctx context.Context) error {
	limit := a.plan.Budget.Context
	if limit <= 0 || a.talk.last < limit*3/4 || len(a.talk.messages) < 3 {
		return nil
	}
	req := a.request()
	req.Tools = nil
	req.Messages = append(flatten(req.Messages), openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: summaryAsk})
	res, err := a.endpoint.Ask(ctx, req)
	if tooLong(err) {
		return a.talk.note(entry{Kind: kindCut, Seconds: a.elapsed()})
	}
	if err != nil {
		return err
	}
	in, out := a.usage(res)
	m := &openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: summaryHead + cut(res.Choices[0].Message.Content, limit*bytesPerToken/4)}
	return a.talk.note(entry{Kind: kindSummary, Message: m, TokensIn: in, TokensOut: out, Seconds: a.elapsed()})
}

// flatten writes tool calls and their answers as text: endpoints refuse them in a request that offers
// no tools.
func flatten(messages []openai.ChatCompletionMessage) []openai.ChatCompletionMessage {
	out := make([]openai.ChatCompletionMessage, 0, len(messages))
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			m.Content += "\n[called " + c.Function.Name + " " + c.Function.Arguments + "]"
		}
		if m.Role == openai.ChatMessageRoleTool {
			m.Role = openai.ChatMessageRoleUser
		}
		m.ToolCalls, m.ToolCallID = nil, ""
		out = append(out, m)
	}
	return out
}
