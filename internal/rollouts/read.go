package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/rules"
)

// Schema names the form of a Trajectory.
const Schema = "proctor.trajectory/1"

// pageSize is how many views a listing gives where none is asked for.
const pageSize = 100

// Get gives one rollout; one that was deleted is not there any more, but for its record.
func (m *Manager) Get(ctx context.Context, id string) (View, error) {
	if r := m.find(id); r != nil {
		return r.view(), nil
	}
	row, err := m.opt.Store.RolloutByID(ctx, id)
	if err != nil {
		return View{}, storeError("read the rollout", err)
	}
	return m.viewOf(ctx, row)
}

// viewOf gives the view of a row. A rollout that is not live and whose row says that it goes on has ended
// since the row was read: the row that was written before it went is read.
func (m *Manager) viewOf(ctx context.Context, row *store.Rollout) (View, error) {
	if r := m.find(row.ID); r != nil {
		return r.view(), nil
	}
	if row.Status != StatusGraded && row.Status != StatusFailed && row.Status != StatusDeleted {
		fresh, err := m.opt.Store.RolloutByID(ctx, row.ID)
		if err != nil {
			return View{}, storeError("read the rollout", err)
		}
		row = fresh
	}
	d, err := readDocument(row)
	if err != nil {
		return View{}, asError(CodeStore, "the rollout's document is damaged", err)
	}
	return d.View, nil
}

// List lists rollouts, newest first, and gives the cursor of the next page, "" on the last one.
func (m *Manager) List(ctx context.Context, f Filter) ([]View, string, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = pageSize
	}
	q := store.Filter{GroupID: f.GroupID, TaskID: f.TaskID, Limit: limit + 1}
	if f.Status != "" {
		q.Statuses = []string{f.Status}
	}
	if f.Cursor != "" {
		before, err := strconv.ParseInt(f.Cursor, 10, 64)
		if err != nil || before < 1 {
			return nil, "", refuse(CodeInvalidField, "field cursor: %.40q is none; take next of the page before, or leave it out", f.Cursor)
		}
		q.Before = before
	}
	rows, err := m.opt.Store.Rollouts(ctx, q)
	if err != nil {
		return nil, "", storeError("list rollouts", err)
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = strconv.FormatInt(rows[limit-1].Seq, 10)
	}
	views := make([]View, 0, len(rows))
	for _, row := range rows {
		v, err := m.viewOf(ctx, row)
		if err != nil {
			return nil, "", err
		}
		views = append(views, v)
	}
	return views, next, nil
}

// Trajectory gives the record of a rollout, as far as it has come.
func (m *Manager) Trajectory(ctx context.Context, id string) (*Trajectory, error) {
	return m.trajectory(ctx, id, true)
}

// trajectory is Trajectory; without events the records lack the facts of their calls.
func (m *Manager) trajectory(ctx context.Context, id string, events bool) (*Trajectory, error) {
	view, err := m.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &Trajectory{Schema: Schema, Rollout: view, Calls: []*monitor.Record{}}
	if t.Calls, err = m.recordsOf(ctx, id, events); err != nil {
		return nil, err
	}
	for _, c := range t.Calls {
		c.Origin = view.Fork.origin(c.Ordinal)
	}
	if err := m.tokens(ctx, t); err != nil {
		return nil, err
	}
	t.Grade, err = m.gradeOf(ctx, view)
	return t, err
}

// records gives the records of a rollout by ordinal.
func (m *Manager) records(ctx context.Context, id string) ([]*monitor.Record, error) {
	return m.recordsOf(ctx, id, true)
}

func (m *Manager) recordsOf(ctx context.Context, id string, events bool) ([]*monitor.Record, error) {
	calls, err := m.opt.Store.Calls(ctx, id)
	if err != nil {
		return nil, storeError("read the calls", err)
	}
	recs := make([]*monitor.Record, 0, len(calls))
	for _, c := range calls {
		rec, _, err := decodeRecord(c, events)
		if err != nil {
			return nil, asError(CodeStore, "the record is damaged", err)
		}
		normaliseLists(rec)
		recs = append(recs, rec)
	}
	return recs, nil
}

// normaliseLists makes lists that are always there out of those that a short form left out.
func normaliseLists(rec *monitor.Record) {
	if rec.Verdict.Hits == nil {
		rec.Verdict.Hits = []rules.Hit{}
	}
	if rec.Verdict.Evidence == nil {
		rec.Verdict.Evidence = []string{}
	}
}

// Export writes the record of a rollout to w as one JSON document, schema proctor.trajectory/1.
func (m *Manager) Export(ctx context.Context, id string, w io.Writer) error {
	t, err := m.Trajectory(ctx, id)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return fmt.Errorf("export rollout %s: %w", id, err)
	}
	return nil
}

// Verdicts lists a rollout's calls that a rule hit, with what people said of them.
func (m *Manager) Verdicts(ctx context.Context, id string) ([]VerdictView, error) {
	if _, err := m.Get(ctx, id); err != nil {
		return nil, err
	}
	recs, err := m.records(ctx, id)
	if err != nil {
		return nil, err
	}
	reviews, err := m.opt.Store.Reviews(ctx, id)
	if err != nil {
		return nil, storeError("read the reviews", err)
	}
	views := []VerdictView{}
	for _, rec := range recs {
		if len(rec.Verdict.Hits) == 0 && rec.Verdict.Decision == monitor.Allow {
			continue
		}
		v := VerdictView{RolloutID: id, Ordinal: rec.Ordinal, Name: rec.Name, Arguments: rec.Arguments, Verdict: rec.Verdict}
		if doc, ok := reviews[rec.Ordinal]; ok {
			if err := json.Unmarshal(doc, &v.Review); err != nil {
				return nil, asError(CodeStore, "a review is damaged", err)
			}
		}
		views = append(views, v)
	}
	return views, nil
}

// AddReview keeps what a person says of the verdict on a call; the last review counts.
func (m *Manager) AddReview(ctx context.Context, id string, ordinal int, review Review) error {
	if err := checkWord("label", review.Label, "hack", "benign", "unsure"); err != nil {
		return err
	}
	if _, err := m.Get(ctx, id); err != nil {
		return err
	}
	if _, err := m.opt.Store.CallByOrdinal(ctx, id, ordinal); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return refuse(CodeNotFound, "the rollout has no call %d", ordinal)
		}
		return storeError("read the call", err)
	}
	if review.At.IsZero() {
		review.At = m.opt.Clock().UTC()
	}
	doc, err := json.Marshal(review)
	if err != nil {
		return asError(CodeInternal, "the review does not encode", err)
	}
	if err := m.opt.Store.PutReview(ctx, id, ordinal, doc); err != nil {
		return storeError("write the review", err)
	}
	return m.reclassify(ctx, id)
}
