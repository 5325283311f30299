package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"proctor/internal/trajectory"
)

// Each server's shape gives the same: ids, logprobs, versions, and the bytes passed on untouched.
func TestShapes(t *testing.T) {
	for _, tc := range []struct {
		file       string
		prompt     []int32
		ids        []int32
		logprobs   []float64
		start, end string
		finish     string
		text       string
		tools      int
	}{
		{"vllm.json", []int32{151644, 872, 198}, []int32{13048, 151645}, []float64{-0.25, -0.5}, "", "", "tool_calls", "Hi", 1},
		{"vllm.sse", []int32{151644, 872, 198}, []int32{32713, 385, 90, 92}, []float64{-0.125, -1.5, -0.75, -0.0625}, "", "", "tool_calls", "Hello", 1},
		{"sglang.json", []int32{151644, 872, 198}, []int32{13048, 151645}, []float64{-0.25, -0.5}, "step-41", "step-41", "stop", "Hi", 0},
		{"sglang.sse", []int32{1, 2, 3}, []int32{13048, 151645}, []float64{-0.25, -0.5}, "step-41", "step-42", "stop", "Hi", 0},
	} {
		t.Run(tc.file, func(t *testing.T) {
			w := newWorld(t)
			w.says(tc.file)
			body := hello
			if strings.HasSuffix(tc.file, ".sse") {
				body = helloSS
			}
			status, header, got := w.ask(chat, body)
			want, err := os.ReadFile("testdata/" + tc.file)
			if err != nil {
				t.Fatal(err)
			}
			if status != 200 || got != string(want) || header.Get("Server") != "" {
				t.Errorf("status %d, header %v, body:\n%s\nwant it as the server wrote it", status, header, got)
			}
			c := w.calls(1)[0]
			m, err := trajectory.ParseMessage(c.Output)
			if err != nil || m.Content != tc.text || len(m.ToolCalls) != tc.tools {
				t.Errorf("output %s: %v", c.Output, err)
			}
			if tc.tools > 0 && m.ToolCalls[0].Arguments != `{"command": "ls"}` {
				t.Errorf("arguments %q", m.ToolCalls[0].Arguments)
			}
			if c.TextOnly != "" || !slices.Equal(c.PromptIDs, tc.prompt) || !slices.Equal(c.OutputIDs, tc.ids) || !slices.Equal(c.Logprobs, tc.logprobs) {
				t.Errorf("recorded %+v", c)
			}
			if c.VersionStart != tc.start || c.VersionEnd != tc.end || c.FinishReason != tc.finish || c.Kind != "action" || c.Model != "served" || c.Status != 200 {
				t.Errorf("recorded %+v", c)
			}
			var sent map[string]any
			if err := json.Unmarshal([]byte(w.asked[0]), &sent); err != nil || sent["model"] != "served" || sent["logprobs"] != true || sent["return_token_ids"] != true {
				t.Errorf("sent %s: %v", w.asked[0], err)
			}
		})
	}
}

// llama.cpp's chat endpoint does not tell the prompt's ids: its template and tokenizer do.
func TestLlamaPromptIDs(t *testing.T) {
	for _, counted := range []int{3, 4} {
		w := newWorld(t)
		answer, err := os.ReadFile("testdata/llama.json")
		if err != nil {
			t.Fatal(err)
		}
		w.does(func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/apply-template":
				_, _ = rw.Write([]byte(`{"prompt": "<|im_start|>user"}`))
			case "/tokenize":
				_, _ = fmt.Fprintf(rw, `{"tokens": %s}`, []string{"[1,2,3]", "[1,2,3,4]"}[counted-3])
			default:
				rw.Header().Set("Content-Type", "application/json")
				_, _ = rw.Write(answer)
			}
		})
		w.ask(chat, hello)
		w.ask(chat, strings.Replace(hello, "Hello", "Again", 1)) // now it is known what the server is
		for _, c := range w.calls(2) {
			if counted == 3 && (c.TextOnly != "" || !slices.Equal(c.PromptIDs, []int32{1, 2, 3}) || !slices.Equal(c.OutputIDs, []int32{42, 43})) {
				t.Errorf("recorded %+v", c)
			}
			if counted == 4 && !strings.Contains(c.TextOnly, "counted 3") {
				t.Errorf("a prompt of another length is recorded as %+v", c)
			}
		}
	}
}

// A server that refuses what OpenAI does not have is asked without it, and its calls are text only.
func TestPlainServer(t *testing.T) {
	w := newWorld(t)
	w.does(func(rw http.ResponseWriter, r *http.Request) {
		var sent map[string]any
		_ = json.NewDecoder(r.Body).Decode(&sent)
		rw.Header().Set("Content-Type", "application/json")
		if _, there := sent["return_token_ids"]; there {
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = rw.Write([]byte(`{"error": {"message": "Unrecognized request argument supplied: return_token_ids"}}`))
			return
		}
		_, _ = rw.Write([]byte(`{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}`))
	})
	for range 2 {
		if status, _, body := w.ask(chat, hello); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	if n := w.count(); n != 3 {
		t.Errorf("the server was asked %d times, want 3: the second time it is known", n)
	}
	if c := w.calls(2)[1]; !strings.Contains(c.TextOnly, "no ids") {
		t.Errorf("recorded %+v", c)
	}
}

// Answers that do not fit are passed on, and recorded as text with the reason: never a wrong mask.
func TestBadAnswers(t *testing.T) {
	whole := func(choice, rest string) string {
		return `{"prompt_token_ids": [1], "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}` + choice + `}]` + rest + `}`
	}
	lp := func(v string) string {
		return `, "logprobs": {"content": [{"token": "H", "logprob": ` + v + `}]}`
	}
	for name, tc := range map[string]struct{ body, why string }{
		"unequal":           {whole(lp("-1")+`, "token_ids": [7, 8]`, ""), "2 token ids and 1 logprobs"},
		"no logprobs":       {whole(`, "token_ids": [7, 8]`, ""), "2 token ids and 0 logprobs"},
		"null logprob":      {whole(lp("null")+`, "token_ids": [7]`, ""), "no number"},
		"NaN":               {whole(lp("NaN")+`, "token_ids": [7]`, ""), "does not decode"},
		"no output ids":     {whole(lp("-1"), ""), "without token ids"},
		"no prompt ids":     {strings.Replace(whole(lp("-1")+`, "token_ids": [7]`, ""), "[1]", "[]", 1), "prompt"},
		"several choices":   {strings.Replace(whole("", ""), `]}`, `, {"index": 1}]}`, 1), "several choices"},
		"ids as text":       {whole(`, "token_ids": ["a"]`, ""), "does not decode"},
		"not JSON":          {`<html>`, "does not decode"},
		"another structure": {`[]`, "does not decode"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.does(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				_, _ = rw.Write([]byte(tc.body))
			})
			if status, _, got := w.ask(chat, hello); status != 200 || got != tc.body {
				t.Errorf("%d %s", status, got)
			}
			c := w.calls(1)[0]
			if !strings.Contains(c.TextOnly, tc.why) || c.PromptIDs != nil || c.OutputIDs != nil || c.Logprobs != nil {
				t.Errorf("recorded %+v, want text only because of %q", c, tc.why)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	w.says("vllm.json")
	for name, tc := range map[string]struct {
		path, body string
		headers    []string
		status     int
		words      string
	}{
		"no JSON":       {chat, `{`, nil, 400, "JSON object"},
		"no messages":   {chat, `{}`, nil, 400, "messages"},
		"a message":     {chat, `{"messages": [1]}`, nil, 400, "messages[0]"},
		"n":             {chat, `{"messages": [{"role": "user"}], "n": 2}`, nil, 400, "field n"},
		"kind":          {chat, hello, []string{"X-Call-Kind", "odd"}, 400, "X-Call-Kind"},
		"a long key":    {chat, hello, []string{"Idempotency-Key", strings.Repeat("k", 600)}, 400, "512"},
		"ended":         {"/ended", hello, nil, 410, "ended"},
		"claude's role": {message, `{"messages": [{"role": "tool", "content": "x"}]}`, nil, 400, "messages[0]"},
		"no object":     {message, `[]`, nil, 400, "JSON object"},
	} {
		status, _, got := w.ask(tc.path, tc.body, tc.headers...)
		if status != tc.status || !strings.Contains(got, tc.words) || !strings.Contains(got, `"error"`) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	if w.count() != 0 {
		t.Error("a bad request reached the server")
	}
}

// What names the server is cut out of its errors; a redirect leads nowhere.
func TestNothingOfTheServerIsTold(t *testing.T) {
	w := newWorld(t)
	w.does(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", "http://169.254.169.254/")
		rw.Header().Set("X-Internal", "secret")
		rw.WriteHeader(map[string]int{"a": 429, "b": 302}[r.URL.Query().Get("x")+"a"])
		_, _ = fmt.Fprintf(rw, `{"error": {"message": "key %s at %s is over its quota"}}`, w.target.APIKey, w.target.BaseURL)
	})
	status, header, got := w.ask(chat, hello)
	if status != 429 || !strings.Contains(got, "over its quota") {
		t.Errorf("%d %s", status, got)
	}
	w.does(func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://169.254.169.254/", http.StatusFound)
	})
	status2, header2, got2 := w.ask(chat, hello)
	if status2 != 502 {
		t.Errorf("a redirect is answered %d %s", status2, got2)
	}
	host := strings.TrimPrefix(w.upstream.URL, "http://")
	w.upstream.Close()
	status3, header3, got3 := w.ask(chat, hello)
	if status3 != 502 || !strings.Contains(got3, "does not answer") {
		t.Errorf("%d %s", status3, got3)
	}
	for _, text := range []string{fmt.Sprint(header, got), fmt.Sprint(header2, got2), fmt.Sprint(header3, got3)} {
		for _, secret := range []string{"sk-secret", host, "127.0.0.1", "169.254", "X-Internal"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is told: %s", secret, text)
			}
		}
	}
	for i, c := range w.calls(3) {
		if c.Error == "" || len(c.Output) > 0 || strings.Contains(c.Error, "sk-secret") {
			t.Errorf("call %d is recorded as %+v", i+1, c)
		}
	}
}

// One key, one sample: at once, later, in another protocol's form no, after a restart of the gateway.
func TestKeyIsSampledOnce(t *testing.T) {
	w := newWorld(t)
	w.says("vllm.json")
	_, _, first := w.ask(chat, hello, "Idempotency-Key", "k1")
	status, _, again := w.ask(chat, hello, "Idempotency-Key", "k1")
	var a, b struct {
		Choices []struct {
			Message  json.RawMessage
			Finish   string  `json:"finish_reason"`
			TokenIDs []int32 `json:"token_ids"`
		}
		Prompt []int32 `json:"prompt_token_ids"`
	}
	if err := json.Unmarshal([]byte(first), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(again), &b); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("a retry is told\n%s\nnot\n%s", again, first)
	}
	if status, _, got := w.ask(chat, strings.Replace(hello, "Hello", "Bye", 1), "Idempotency-Key", "k1"); status != 409 {
		t.Errorf("another request under the key: %d %s", status, got)
	}
	w.gateway = New(w.gateway.opt)
	if status, _, _ := w.ask(chat, hello, "Idempotency-Key", "k1"); status != 200 || w.count() != 1 {
		t.Errorf("after a restart: status %d, the server was asked %d times", status, w.count())
	}
	w.calls(1)
	w.ask(chat, hello) // without a key it is another sample
	w.calls(2)
}

// Requests with one key at once are one, and both are answered.
func TestKeyInFlight(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	answer, err := os.ReadFile("testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	w.does(func(rw http.ResponseWriter, _ *http.Request) {
		<-release
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(answer)
	})
	done := make(chan int, 2)
	for range 2 {
		go func() {
			status, _, _ := w.ask(chat, hello, "Idempotency-Key", "k")
			done <- status
		}()
	}
	for w.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	close(release)
	if a, b := <-done, <-done; a != 200 || b != 200 || w.count() != 1 {
		t.Errorf("answers %d and %d of %d requests", a, b, w.count())
	}
	w.calls(1)
}

// A client that gave up too early and asks again, byte for byte, gets the answer of the first request.
func TestHungUpAndAskedAgain(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	answer, err := os.ReadFile("testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	w.does(func(rw http.ResponseWriter, _ *http.Request) {
		<-release
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(answer)
	})
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := w.send(ctx, chat, hello)
		gone <- err
	}()
	for w.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the first request was answered")
	}
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	time.Sleep(20 * time.Millisecond) // the server learns of the hang-up
	status, _, got := w.ask(chat, hello)
	if status != 200 || !strings.Contains(got, `"Hi"`) || w.count() != 1 {
		t.Errorf("%d %s, and the server was asked %d times", status, got, w.count())
	}
	if c := w.calls(1)[0]; !c.Disconnected || len(c.OutputIDs) != 2 {
		t.Errorf("recorded %+v", c)
	}
}

// A stream comes through as it is made, and one whose client hangs up is recorded as far as it came.
func TestStreamIsNotHeldBack(t *testing.T) {
	w := newWorld(t)
	event := `data: {"prompt_token_ids":[1],"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[7],"logprobs":{"content":[{"token":"a","logprob":-1}]}}]}` + "\n\n"
	stopped := make(chan struct{})
	w.does(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = rw.Write([]byte(event))
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done() // no more until the gateway hangs up
		close(stopped)
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res, err := w.send(ctx, chat, helloSS)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, len(event))
	for n := 0; n < len(buf); {
		k, err := res.Body.Read(buf[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	if string(buf) != event {
		t.Errorf("the first event is %q", buf)
	}
	cancel()
	_ = res.Body.Close()
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("the policy's server samples on for a client that is gone")
	}
	c := w.calls(1)[0]
	if !c.Disconnected || c.FinishReason != "" || !slices.Equal(c.OutputIDs, []int32{7}) || c.Error == "" {
		t.Errorf("recorded %+v", c)
	}
	w.says("vllm.sse") // asked again, it is sampled anew, and only that counts
	w.ask(chat, helloSS)
	segments := trajectory.Build(w.calls(2))
	trained := 0
	for _, s := range segments {
		for _, bit := range s.LossMask {
			trained += int(bit)
		}
	}
	if trained != 4 {
		t.Errorf("%d tokens train, want the 4 of the second answer: %+v", trained, segments)
	}
}

func TestTooManyAtOnce(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	w.does(func(rw http.ResponseWriter, _ *http.Request) {
		<-release
		_, _ = rw.Write([]byte("{}"))
	})
	done := make(chan struct{}, perRollout)
	for i := range perRollout {
		go func() {
			w.ask(chat, strings.Replace(hello, "Hello", fmt.Sprint(i), 1))
			done <- struct{}{}
		}()
	}
	for w.count() < perRollout {
		time.Sleep(time.Millisecond)
	}
	status, header, got := w.ask(chat, hello)
	if status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", status, header, got)
	}
	close(release)
	for range perRollout {
		<-done
	}
	if len(w.gateway.open) != 0 || len(w.gateway.slots) != 0 || len(w.gateway.flights) != 0 {
		t.Errorf("places are left taken: %v, %d, %d", w.gateway.open, len(w.gateway.slots), len(w.gateway.flights))
	}
}

func TestModels(t *testing.T) {
	w := newWorld(t)
	if _, _, got := w.ask("/openai/v1/models", ""); !strings.Contains(got, `"id":"served"`) || w.count() != 0 {
		t.Errorf("%s, %d requests", got, w.count())
	}
}

func TestCheckBaseURL(t *testing.T) {
	for text, good := range map[string]bool{"http://h:8000/v1": true, "https://h/v1": true, "ftp://h": false, "h:80": false, "http://u:p@h": false,
		"http://h?x=1": false, "http://": false, "http://h#f": false, "file:///etc/passwd": false, "http://[::1]:80/v1": true, "%": false} {
		if err := CheckBaseURL(text); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzCapture: no stream breaks the reader, however it is cut into pieces, and what it yields fits.
func FuzzCapture(f *testing.F) {
	for _, name := range []string{"vllm.sse", "sglang.sse", "anthropic.sse"} {
		body, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, 7)
	}
	f.Fuzz(func(t *testing.T, body []byte, step int) {
		step = max(1, step%4096)
		whole, pieces, claude := &capture{}, &capture{}, &capture{}
		whole.feed(body)
		(&anthropicReader{cap: claude}).feed(body)
		for at := 0; at < len(body) && !pieces.done; at += step {
			pieces.feed(body[at:min(at+step, len(body))])
		}
		var a, b trajectory.ModelCall
		whole.fill(&a)
		pieces.fill(&b)
		one, err1 := json.Marshal(a)
		other, err2 := json.Marshal(b)
		if err1 != nil || err2 != nil || string(one) != string(other) {
			t.Errorf("cut in pieces of %d it is read as\n%s\nand whole as\n%s", step, other, one)
		}
		if len(a.OutputIDs) != len(a.Logprobs) || a.TextOnly != "" && a.OutputIDs != nil {
			t.Errorf("read %+v", a)
		}
	})
}

// BenchmarkOverhead is what the gateway adds to a request, beside the same request sent straight.
func BenchmarkOverhead(b *testing.B) {
	w := newWorld(b)
	w.says("vllm.json")
	for name, url := range map[string]string{"straight": w.upstream.URL + "/v1/chat/completions", "gateway": w.front.URL + chat} {
		b.Run(name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			for range b.N {
				began := time.Now()
				res, err := http.Post(url, "application/json", strings.NewReader(hello))
				if err != nil {
					b.Fatal(err)
				}
				buf := make([]byte, 4096)
				for err == nil {
					_, err = res.Body.Read(buf)
				}
				_ = res.Body.Close()
				took = append(took, time.Since(began))
				w.mu.Lock()
				w.asked, w.paths = nil, nil
				w.mu.Unlock()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
