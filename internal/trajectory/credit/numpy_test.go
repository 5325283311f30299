package credit

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
)

var update = flag.Bool("update", false, "run the NumPy reference again and record what it says")

// referenceFile holds random documents with what testdata/reference.py said of them under NumPy.
const referenceFile = "testdata/numpy.json.gz"

// referenceCase is one question to the NumPy reference, and its answer: advantages by segment.
type referenceCase struct {
	Estimator string      `json:"estimator"`
	Gamma     float64     `json:"gamma"`
	Lambda    float64     `json:"lam"`
	DDoF      int         `json:"ddof"`
	Document  *Document   `json:"document"`
	Want      [][]float64 `json:"want,omitempty"`
}

// The same documents give the same advantages here and in trainers' own formulas under NumPy. The answers
// are recorded; with PROCTOR_NUMPY_PYTHON, a Python that has NumPy, fresh documents are tried as well, and
// -update records.
func TestAgreesWithNumPy(t *testing.T) {
	python := os.Getenv("PROCTOR_NUMPY_PYTHON")
	if *update {
		if python == "" {
			t.Fatal("-update needs PROCTOR_NUMPY_PYTHON, a Python that has NumPy")
		}
		record(t, ask(t, python, randomCases(7, 80)))
	}
	cases := recorded(t)
	if python != "" {
		cases = append(cases, ask(t, python, randomCases(rand.Uint64(), 400))...)
	}
	for _, c := range cases {
		compare(t, c)
	}
	t.Logf("%d cases", len(cases))
}

func compare(t *testing.T, c referenceCase) {
	t.Helper()
	res := estimate(t, c.Document, Options{Estimator: c.Estimator, Gamma: c.Gamma, Lambda: c.Lambda, DDoF: c.DDoF})
	k := 0
	for _, r := range res.Rollouts {
		for _, s := range r.Segments {
			for i, got := range s.Advantages {
				if math.Abs(got-c.Want[k][i]) > 1e-9 {
					t.Errorf("%s, rollout %s, segment %s, token %d: %v, NumPy says %v", c.Estimator, r.ID, s.ID, i, got, c.Want[k][i])
				}
			}
			k++
		}
	}
}

func randomCases(seed uint64, n int) []referenceCase {
	rng := rand.New(rand.NewPCG(seed, 2))
	names := []string{"grpo", "grpo-nostd", "rloo", "maxrl", "gae", "vcppo", "compaction", "chained"}
	var out []referenceCase
	for i := range n {
		out = append(out, referenceCase{Estimator: names[i%len(names)], Gamma: 0.9 + rng.Float64()/10, Lambda: rng.Float64(),
			DDoF: rng.IntN(2), Document: random(rng)})
		if out[i].Estimator == "grpo" {
			out[i].DDoF = 1 // verl's; with 0 a group of one is 0 / 1e-6 here and undefined there
		}
	}
	return out
}

func ask(t *testing.T, python string, cases []referenceCase) []referenceCase {
	t.Helper()
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/reference.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("reference.py: %v", err)
	}
	var answers [][][]float64
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(cases) {
		t.Fatalf("reference.py answered %d of %d: %v", len(answers), len(cases), err)
	}
	for i := range cases {
		cases[i].Want = answers[i]
	}
	return cases
}

func recorded(t *testing.T) []referenceCase {
	t.Helper()
	data, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var cases []referenceCase
	if err := json.NewDecoder(r).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 50 {
		t.Fatalf("only %d recorded cases", len(cases))
	}
	return cases
}

func record(t *testing.T, cases []referenceCase) {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if err := json.NewEncoder(w).Encode(cases); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(referenceFile, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
