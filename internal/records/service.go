package records

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"proctor/internal/store"
	"proctor/internal/trajectory"
)

// Errors that callers branch on.
var (
	// ErrGateway says that the rollout's records come from the gateway: uploaded ones would train
	// the same tokens a second time.
	ErrGateway = errors.New("the rollout used the model gateway, which recorded its segments")
	// ErrUploaded says that the rollout has other uploaded segments already, or uploaded ones at all
	// where a model call is to be recorded.
	ErrUploaded = errors.New("the rollout has uploaded segments")
)

// maxLedgers bounds how many rollouts' ledgers are held in memory; others are read again when asked for.
const maxLedgers = 8192

// Service keeps the records. Safe for concurrent use.
type Service struct {
	store *store.Store
	codec *codec
	clock func() time.Time

	mu      sync.Mutex
	ledgers map[string]*ledger
}

// ledger is what is held of a rollout whose model is being called. Its own lock makes appends of one
// rollout serial.
type ledger struct {
	used time.Time // guarded by Service.mu

	mu       sync.Mutex
	loaded   bool
	last     int // ordinal
	index    *index
	keys     map[[sha256.Size]byte]Known
	uploaded bool
}

// Known is what was recorded under an Idempotency-Key.
type Known struct {
	Ordinal int
	Request [sha256.Size]byte // of the body
}

// New makes a Service on a store.
func New(s *store.Store) (*Service, error) {
	c, err := newCodec()
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return &Service{store: s, codec: c, clock: time.Now, ledgers: map[string]*ledger{}}, nil
}

// ledger gives a rollout's ledger, locked and loaded.
func (s *Service) ledger(ctx context.Context, rollout string) (*ledger, error) {
	s.mu.Lock()
	l := s.ledgers[rollout]
	if l == nil {
		if len(s.ledgers) >= maxLedgers {
			s.evict()
		}
		l = &ledger{}
		s.ledgers[rollout] = l
	}
	l.used = s.clock()
	s.mu.Unlock()
	l.mu.Lock()
	if l.loaded {
		return l, nil
	}
	if err := s.load(ctx, rollout, l); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	return l, nil
}

// evict drops the ledger that was used longest ago and is not in use. The lock is held.
func (s *Service) evict() {
	oldest := ""
	for id, l := range s.ledgers {
		if oldest == "" || l.used.Before(s.ledgers[oldest].used) {
			oldest = id
		}
	}
	if l := s.ledgers[oldest]; l != nil && l.mu.TryLock() {
		// Whoever waits for it meanwhile finds it not loaded and reads it again.
		*l = ledger{used: l.used}
		delete(s.ledgers, oldest)
	}
}

// load reads what the store holds of a rollout.
func (s *Service) load(ctx context.Context, rollout string, l *ledger) error {
	rows, err := s.store.ModelCalls(ctx, rollout)
	if err != nil {
		return err
	}
	calls, err := s.decode(rows)
	if err != nil {
		return err
	}
	uploaded, err := s.store.Segments(ctx, rollout)
	if err != nil {
		return err
	}
	l.index, l.keys, l.uploaded = newIndex(), map[[sha256.Size]byte]Known{}, len(uploaded) > 0
	for i, c := range calls {
		l.index.shrink(c)
		l.last = c.Ordinal
		if len(rows[i].Key) == sha256.Size {
			l.keys[[sha256.Size]byte(rows[i].Key)] = Known{c.Ordinal, [sha256.Size]byte(rows[i].Request)}
		}
	}
	l.loaded = true
	return nil
}

// Append records a model call and gives it its ordinal. key is an Idempotency-Key, "" for none;
// request the body that the client sent.
func (s *Service) Append(ctx context.Context, rollout, key string, request [sha256.Size]byte, c *trajectory.ModelCall) error {
	l, err := s.ledger(ctx, rollout)
	if err != nil {
		return err
	}
	defer l.mu.Unlock()
	if l.uploaded {
		return ErrUploaded
	}
	c.Ordinal = l.last + 1
	d := l.index.shrink(c)
	packed, err := s.codec.packCall(&d)
	if err != nil {
		return fmt.Errorf("records: model call %d does not encode: %w", c.Ordinal, err)
	}
	row := &store.ModelCall{Ordinal: c.Ordinal, Request: request[:], Doc: packed}
	var sum [sha256.Size]byte
	if key != "" {
		sum = sha256.Sum256([]byte(key))
		row.Key = sum[:]
	}
	if err := s.store.AppendModelCall(ctx, rollout, row); err != nil {
		l.loaded = false // the index names a call that was not written: read it again
		return err
	}
	l.last = c.Ordinal
	if key != "" {
		l.keys[sum] = Known{c.Ordinal, request}
	}
	return nil
}

// ByKey gives what was recorded under an Idempotency-Key.
func (s *Service) ByKey(ctx context.Context, rollout, key string) (Known, bool, error) {
	l, err := s.ledger(ctx, rollout)
	if err != nil {
		return Known{}, false, err
	}
	defer l.mu.Unlock()
	k, ok := l.keys[sha256.Sum256([]byte(key))]
	return k, ok, nil
}

// Calls gives the model calls of a rollout, whole, by ordinal.
func (s *Service) Calls(ctx context.Context, rollout string) ([]*trajectory.ModelCall, error) {
	rows, err := s.store.ModelCalls(ctx, rollout)
	if err != nil {
		return nil, err
	}
	return s.decode(rows)
}

func (s *Service) decode(rows []*store.ModelCall) ([]*trajectory.ModelCall, error) {
	calls := make([]*trajectory.ModelCall, 0, len(rows))
	var ids idRows
	for i, row := range rows {
		var d doc
		if err := s.codec.unpackCall(row.Doc, &d); err != nil {
			return nil, fmt.Errorf("records: model call %d does not decode: %w", row.Ordinal, err)
		}
		if d.Ordinal != row.Ordinal || d.Ordinal != i+1 {
			return nil, fmt.Errorf("records: model call %d is stored as %d, number %d", d.Ordinal, row.Ordinal, i+1)
		}
		c, err := d.grow(calls, &ids)
		if err != nil {
			return nil, fmt.Errorf("records: %w", err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// Segments gives the segments of a rollout, built from its model calls or as they were uploaded, and
// the model calls.
func (s *Service) Segments(ctx context.Context, rollout string) ([]*trajectory.Segment, []*trajectory.ModelCall, error) {
	calls, err := s.Calls(ctx, rollout)
	if err != nil {
		return nil, nil, err
	}
	if len(calls) > 0 {
		return trajectory.Build(calls), calls, nil
	}
	rows, err := s.store.Segments(ctx, rollout)
	if err != nil {
		return nil, nil, err
	}
	segments := make([]*trajectory.Segment, len(rows))
	for i, row := range rows {
		if err := s.codec.unpack(row.Doc, &segments[i]); err != nil {
			return nil, nil, fmt.Errorf("records: segment %d does not decode: %w", row.Place, err)
		}
	}
	trajectory.Recount(segments)
	return segments, nil, nil
}

// Upload adds segments of a trainer's own. They are held to the same checks as the gateway's, with
// those that were uploaded before in front; the same upload again changes nothing. It gives how many
// the rollout then has. Errors: ErrGateway, ErrUploaded (another segment is in a place), a list of
// *trajectory.FieldError joined.
func (s *Service) Upload(ctx context.Context, rollout string, segments []*trajectory.Segment) (int, error) {
	l, err := s.ledger(ctx, rollout)
	if err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	if l.last > 0 {
		return 0, ErrGateway
	}
	have, _, err := s.Segments(ctx, rollout)
	if err != nil {
		return 0, err
	}
	rows, err := s.store.Segments(ctx, rollout)
	if err != nil {
		return 0, err
	}
	all, fresh, err := s.merge(have, rows, segments)
	if err != nil {
		return 0, err
	}
	for _, g := range have {
		g.NAfter = 0 // counted anew: more come after it now
	}
	for _, g := range all {
		trajectory.Complete(g)
	}
	if len(fresh) == 0 {
		return len(have), nil
	}
	if problems := trajectory.CheckUpload(all); len(problems) > 0 {
		return 0, joined(problems)
	}
	for i := range fresh {
		if fresh[i].Doc, err = s.codec.pack(all[fresh[i].Place]); err != nil {
			return 0, fmt.Errorf("records: segment %d does not encode: %w", fresh[i].Place, err)
		}
	}
	if err := s.store.AddSegments(ctx, rollout, fresh); err != nil {
		return 0, err
	}
	l.uploaded = true
	return len(all), nil
}

// merge puts uploaded segments behind those that are there, and says which are new.
func (s *Service) merge(have []*trajectory.Segment, rows []store.Segment, segments []*trajectory.Segment) (all []*trajectory.Segment, fresh []store.Segment, err error) {
	all = append(all, have...)
	for i, g := range segments {
		if g == nil {
			return nil, nil, joined([]*trajectory.FieldError{{Field: fmt.Sprintf("segments[%d]", i), What: "is null"}})
		}
		text, err := json.Marshal(g)
		if err != nil { // NaN and infinities do not come as JSON, so that nothing else is left
			return nil, nil, fmt.Errorf("records: %w", err)
		}
		sum := sha256.Sum256(text)
		digest := hex.EncodeToString(sum[:])
		if g.Order >= 0 && g.Order < len(rows) {
			if rows[g.Order].Digest != digest {
				return nil, nil, fmt.Errorf("%w: segments[%d] has order %d, where another one is", ErrUploaded, i, g.Order)
			}
			continue
		}
		fresh = append(fresh, store.Segment{Place: len(all), Digest: digest})
		all = append(all, g)
	}
	return all, fresh, nil
}

func joined(problems []*trajectory.FieldError) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}
