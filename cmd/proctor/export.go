package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"proctor/internal/client"
	"proctor/internal/trajectory"
	"proctor/internal/trajectory/export"
)

// exportFlags are what an export is asked for by.
type exportFlags struct {
	remote
	group, task       string
	all               bool
	form, blocked     string
	out, compress     string
	resume            bool
	check             string
	bytes, documents  int64
	rollouts          int
	skipped, rejected []exportSkip
}

// exportSkip is a rollout that is not in the export, and why.
type exportSkip struct {
	Rollout string `json:"rollout"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

// newExport exports trajectories.
func newExport() *cobra.Command {
	var x exportFlags
	cmd := &cobra.Command{
		Use: "export [ROLLOUT...] --format FORM", Short: "Export trajectories in the forms that trainers read, or check an export",
		Long: `Exports rollouts of a running server, named or chosen by --group, --task or --all (those that ended).

Forms of lines (openai, swe-bench, slime, verl, verifiers) go to one file or to stdout; forms of documents (atif, swe-agent,
inspect) to a folder, a file each, or to stdout, one a line. A name that ends in .gz or .zst is compressed; verl to a name that
ends in .parquet is a parquet file. --resume goes on with an export that was cut off.

--blocked says how turns with a blocked call are exported: keep (as any other), mask (loss_mask 0), penalty or penalty:VALUE
(a reward event at the turn's last token), reject (the rollout is left out).

--check FILE reads an export back and tells what does not hold. Exit status 1: something does not, or a rollout could not be exported.`,
		Example: `  proctor export r_7f3a --format openai
  proctor export --group g_19c2 --format slime --blocked mask --out samples.jsonl.zst
  proctor export --task interval-merge --format verl --out rows.parquet
  proctor export --check samples.jsonl.zst --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if x.check != "" {
				return x.checkFile(cmd)
			}
			return x.run(cmd, args)
		},
	}
	x.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&x.form, "format", "", strings.Join(export.Forms(), ", "))
	f.StringVar(&x.blocked, "blocked", "keep", "turns with a blocked call: keep, mask, penalty[:VALUE], reject")
	f.StringVar(&x.out, "out", "", "file, or folder for forms of documents (default: stdout)")
	f.StringVar(&x.compress, "compress", "", "none, gzip, zstd (default: by the file's name)")
	f.BoolVar(&x.resume, "resume", false, "go on with an export that was cut off")
	f.StringVar(&x.group, "group", "", "all rollouts of this group")
	f.StringVar(&x.task, "task", "", "all rollouts of this task")
	f.BoolVar(&x.all, "all", false, "all rollouts that have ended")
	f.StringVar(&x.check, "check", "", "check this file in place of exporting")
	return cmd
}

// verify holds the flags against each other.
func (x *exportFlags) verify(args []string) error {
	chosen := len(args) > 0 || x.group != "" || x.task != "" || x.all
	parquet := strings.HasSuffix(x.out, ".parquet")
	if x.compress == "" {
		x.compress = export.CompressionOf(x.out)
	}
	_, err := trajectory.ParseBlockPolicy(x.blocked)
	switch {
	case x.form == "":
		return usage(fmt.Errorf("name a form with --format: %s", strings.Join(export.Forms(), ", ")))
	case !slices.Contains(export.Forms(), x.form):
		return usage(fmt.Errorf("--format %.40q is none of %s", x.form, strings.Join(export.Forms(), ", ")))
	case err != nil:
		return usage(fmt.Errorf("--%w", err))
	case !chosen:
		return usage(errors.New("name rollouts, or choose them with --group, --task or --all"))
	case len(args) > 0 && (x.group != "" || x.task != "" || x.all):
		return usage(errors.New("name rollouts, or choose them with --group, --task or --all; not both"))
	case x.compress != export.Plain && x.compress != export.Gzip && x.compress != export.Zstd:
		return usage(fmt.Errorf("--compress %.40q is none of none, gzip, zstd", x.compress))
	case parquet && x.form != export.Verl:
		return usage(fmt.Errorf("only verl is written as parquet; --format %s writes JSON", x.form))
	case parquet && x.resume:
		return usage(errors.New("a parquet file is written whole: --resume needs one of JSON lines"))
	case x.out == "" && (x.resume || x.compress != export.Plain):
		return usage(errors.New("--resume and --compress need --out"))
	case x.out == "" && x.asJSON:
		return usage(errors.New("--json prints a summary and needs --out for the export"))
	}
	return nil
}

func (x *exportFlags) run(cmd *cobra.Command, args []string) error {
	if err := x.verify(args); err != nil {
		return err
	}
	c, err := x.open()
	if err != nil {
		return err
	}
	ids, err := x.choose(cmd.Context(), c, args)
	if err != nil {
		return answered(err)
	}
	to, err := x.sink(cmd.OutOrStdout())
	if err != nil {
		return usage(err)
	}
	if err := x.each(cmd, c, ids, to); err != nil {
		return errors.Join(answered(err), to.abandon())
	}
	if err := to.finish(); err != nil {
		return infra(err)
	}
	return x.tell(cmd)
}

// choose lists the rollouts to export, oldest first, so that a later export goes on where this ends.
func (x *exportFlags) choose(ctx context.Context, c *client.Client, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	var ids []string
	query := url.Values{"task_id": {x.task}, "group_id": {x.group}, "limit": {"1000"}}
	for {
		page, next, err := c.List(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, v := range page {
			if v.EndedAt != nil {
				ids = append(ids, v.ID)
			}
		}
		if next == "" {
			break
		}
		query.Set("cursor", next)
	}
	slices.Reverse(ids)
	return ids, nil
}

// ahead is how many rollouts are fetched while another is written: one keeps the server busy. They are all
// that an export holds in memory, however many rollouts it is of.
const ahead = 2

// fetched is a rollout on its way from the server.
type fetched struct {
	id        string
	there     bool // it is in the file already
	documents []export.Document
	err       error
}

// each exports the rollouts in turn. One that cannot be exported is told and left out.
func (x *exportFlags) each(cmd *cobra.Command, c *client.Client, ids []string, to exportSink) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	for f := range x.fetch(ctx, c, ids, to) {
		if f.there {
			x.rollouts++
			continue
		}
		err := f.err
		if err == nil {
			err = to.rollout(f.id, func(each func(export.Document) error) error {
				for _, d := range f.documents {
					x.documents++
					x.bytes += int64(len(d.Body)) + 1
					if err := each(d); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := x.count(cmd, f.id, err); err != nil {
			return err
		}
	}
	return cmd.Context().Err()
}

// count notes what became of a rollout; an error that ends the export comes back.
func (x *exportFlags) count(cmd *cobra.Command, id string, err error) error {
	var p *client.Problem
	switch {
	case err == nil:
		x.rollouts++
	case errors.As(err, &p) && p.Code == "rollout_rejected":
		x.rejected = append(x.rejected, exportSkip{id, p.Code, p.Detail})
	case errors.As(err, &p) && (p.Code == "no_tokens" || p.Code == "no_patch"):
		x.skipped = append(x.skipped, exportSkip{id, p.Code, p.Detail})
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "proctor: "+p.Detail)
	default:
		return err
	}
	return nil
}

// fetch gives the rollouts in order, each whole: up to ahead of them are fetched at a time.
func (x *exportFlags) fetch(ctx context.Context, c *client.Client, ids []string, to exportSink) iter.Seq[fetched] {
	there := map[string]bool{} // asked before anything is written: the sink is the writer's alone from then on
	for _, id := range ids {
		there[id] = to.done(id)
	}
	return func(yield func(fetched) bool) {
		queue := make(chan chan fetched, ahead-1)
		go func() {
			defer close(queue)
			for _, id := range ids {
				one := make(chan fetched, 1)
				select {
				case queue <- one:
				case <-ctx.Done():
					return
				}
				if there[id] {
					one <- fetched{id: id, there: true}
					continue
				}
				there[id] = true // named twice, it is written once
				go func() { one <- x.documentsOf(ctx, c, id) }()
			}
		}()
		for one := range queue {
			if !yield(<-one) {
				return
			}
		}
	}
}

// documentsOf reads a rollout's documents from the server.
func (x *exportFlags) documentsOf(ctx context.Context, c *client.Client, id string) fetched {
	f := fetched{id: id}
	query := url.Values{"format": {x.form}, "blocked": {x.blocked}}
	f.err = c.Lines(ctx, "/v1/rollouts/"+url.PathEscape(id)+"/trajectory?"+query.Encode(), func(line []byte) error {
		d := export.Document{Body: line}
		if !export.Lines(x.form) {
			d.Name = export.NameOf(x.form, id, line)
		}
		f.documents = append(f.documents, d)
		return nil
	})
	return f
}

// tell says what was exported.
func (x *exportFlags) tell(cmd *cobra.Command) error {
	if x.asJSON {
		sum := map[string]any{"format": x.form, "blocked": x.blocked, "out": x.out, "rollouts": x.rollouts, "documents": x.documents, "bytes": x.bytes,
			"skipped": append([]exportSkip{}, x.skipped...), "rejected": append([]exportSkip{}, x.rejected...)}
		if err := writeJSON(cmd.OutOrStdout(), sum); err != nil {
			return err
		}
	} else if x.out != "" {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%d rollouts, %d documents, %d bytes before compression; %d left out, %d could not be exported\n",
			x.rollouts, x.documents, x.bytes, len(x.rejected), len(x.skipped))
	}
	if len(x.skipped) > 0 {
		return failed(errSilent)
	}
	return nil
}

// checkFile holds an export against its form.
func (x *exportFlags) checkFile(cmd *cobra.Command) error {
	f, err := os.Open(x.check)
	if err != nil {
		return usage(err)
	}
	defer func() { _ = f.Close() }()
	var rep *export.Report
	if strings.HasSuffix(x.check, ".parquet") {
		st, serr := f.Stat()
		if serr != nil {
			return infra(serr)
		}
		rep, err = export.CheckParquet(f, st.Size())
	} else {
		var plain io.ReadCloser
		if plain, err = export.Reader(f); err == nil {
			rep, err = export.Check(plain)
			err = errors.Join(err, plain.Close())
		}
	}
	if err != nil {
		return usage(fmt.Errorf("%s: %w", x.check, err))
	}
	if x.asJSON {
		if err := writeJSON(cmd.OutOrStdout(), rep); err != nil {
			return err
		}
	} else {
		for _, p := range rep.Problems {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s:%s\n", x.check, p)
		}
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s of %s, %s\n", plural(rep.Documents, "document"), plural(rep.Rollouts, "rollout"), plural(len(rep.Problems), "problem"))
	}
	if len(rep.Problems) > 0 || rep.Documents == 0 {
		return failed(errSilent)
	}
	return nil
}
