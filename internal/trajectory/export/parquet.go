package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// VerlRow is a row of verl's form as parquet.
type VerlRow struct {
	UID         string    `parquet:"uid"`
	PromptIDs   []int32   `parquet:"prompt_ids,list"`
	ResponseIDs []int32   `parquet:"response_ids,list"`
	Mask        []int32   `parquet:"response_mask,list"`
	Logprobs    []float64 `parquet:"response_logprobs,list"`
	Reward      *float64  `parquet:"reward_score,optional"`
	Turns       int32     `parquet:"num_turns"`
	Metrics     string    `parquet:"metrics"`      // JSON
	Extra       string    `parquet:"extra_fields"` // JSON, with the stamp
}

// rowsAGroup is how many rows lie in memory before they are written.
const rowsAGroup = 256

// Parquet writes documents of the form verl as rows.
type Parquet struct {
	w    *parquet.GenericWriter[VerlRow]
	rows int
}

// NewParquet begins a file.
func NewParquet(w io.Writer) *Parquet {
	return &Parquet{w: parquet.NewGenericWriter[VerlRow](w, parquet.Compression(&parquet.Zstd), parquet.KeyValueMetadata("schema", schema(Verl)))}
}

// Add writes one document.
func (p *Parquet) Add(d Document) error {
	var doc struct {
		UID         string          `json:"uid"`
		PromptIDs   []int32         `json:"prompt_ids"`
		ResponseIDs []int32         `json:"response_ids"`
		Mask        []int32         `json:"response_mask"`
		Logprobs    []float64       `json:"response_logprobs"`
		Reward      *float64        `json:"reward_score"`
		Turns       int32           `json:"num_turns"`
		Metrics     json.RawMessage `json:"metrics"`
		Extra       json.RawMessage `json:"extra_fields"`
	}
	if err := json.Unmarshal(d.Body, &doc); err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	row := VerlRow{doc.UID, doc.PromptIDs, doc.ResponseIDs, doc.Mask, doc.Logprobs, doc.Reward, doc.Turns, string(doc.Metrics), string(doc.Extra)}
	if _, err := p.w.Write([]VerlRow{row}); err != nil {
		return err
	}
	if p.rows++; p.rows%rowsAGroup == 0 {
		return p.w.Flush()
	}
	return nil
}

// Close writes the footer.
func (p *Parquet) Close() error { return p.w.Close() }

// CheckParquet is Check for a file of rows.
func CheckParquet(r io.ReaderAt, size int64) (*Report, error) {
	f, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, fmt.Errorf("this is no parquet file: %w", err)
	}
	rows := parquet.NewGenericReader[VerlRow](f)
	defer func() { _ = rows.Close() }()
	rep := &Report{Forms: map[string]int{}, Problems: []Problem{}}
	seen := map[string]bool{}
	buf := make([]VerlRow, 1)
	for n := 1; ; n++ {
		got, err := rows.Read(buf)
		if got == 1 {
			v := buf[0]
			var l line
			l.ids("prompt_ids", v.PromptIDs).ids("response_ids", v.ResponseIDs).ids("response_mask", v.Mask).floats("response_logprobs", v.Logprobs)
			l.raw("extra_fields", json.RawMessage(v.Extra))
			text, lerr := l.end()
			if lerr != nil {
				return nil, lerr
			}
			rep.check(n, text, seen)
		}
		if errors.Is(err, io.EOF) || got == 0 && err == nil {
			rep.Rollouts = len(seen)
			return rep, nil
		}
		if err != nil {
			return rep, fmt.Errorf("row %d: %w", n, err)
		}
	}
}
