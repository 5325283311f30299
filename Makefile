# `make help` lists the targets. Work of more than a line lives in docker/ and .ci/.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X main.version=$(VERSION)

.PHONY: classifier pool compat bash-trace tells mini help run test build docker image lint eval bench fuzz chaos interop swebench grading-swebench attacks toy-training
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-8s %s\n", $$1, $$2 }'

run: build image ## all set-up, then the demo
	bin/proctor demo

test: build image ## all set-up, then every test
	@.ci/test.sh

build: ## bin/proctor and bin/boxd, static, version stamped
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/proctor ./cmd/boxd

docker: ## make sure that a Docker daemon answers
	@docker/ensure-docker.sh

image: docker ## the base image, proctor/base:dev
	@docker/build-base.sh

lint: ## linters and vulnerability check
	@.ci/lint.sh

eval: build ## detection figures held to testdata/eval/baseline.json; UPDATE=1 rewrites it and docs/detection.md
	bin/proctor eval monitor/normalize/corpus/testdata/*.jsonl testdata/eval/*.jsonl --baseline testdata/eval/baseline.json --page docs/detection.md \
		--beside "$(or $(CORPORA),$(dir $(firstword $(wildcard ../*/data/hacks*.jsonl))),../data)" $(if $(UPDATE),--update)

bench: build image ## performance ratios, measured side by side in one run; UPDATE=1 writes docs/performance.md; SWEREX=a Python that has swe-rex adds that peer
	@.ci/bench.sh $(if $(UPDATE),docs/performance.md)

fuzz: ## every fuzzer for a while (FUZZTIME, 10s each)
	@docker/fuzz.sh

tells: build image ## the whole hunt for tells: every probe, more samples of time, thousands of spliced scripts; ten minutes
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_TELLS=1 $(GO) test -count=1 -timeout 30m -run 'NoTell|SplicedScripts' ./cmd/proctor ./monitor/decoy

chaos: build image ## N=1000 faults under ROLLOUTS=32, by SEED=1, with OUTPUT_MB=1024; DOCKERD=1 starts a daemon of its own and restarts it; JSON=FILE
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_CHAOS=$(or $(N),1000) PROCTOR_CHAOS_ROLLOUTS=$(or $(ROLLOUTS),32) PROCTOR_CHAOS_SEED=$(or $(SEED),1) \
		PROCTOR_CHAOS_OUTPUT_MB=$(or $(OUTPUT_MB),1024) PROCTOR_CHAOS_DOCKERD=$(DOCKERD) PROCTOR_CHAOS_JSON=$(abspath $(JSON)) \
		$(GO) test -count=1 -timeout 120m -v -run 'TestChaos$$' ./cmd/proctor

swebench: build image ## ten real instances from rows, bundles and packages to grades; ten minutes (PROCTOR_SWEBENCH names their folder)
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_SWEBENCH_ALL=1 $(GO) test -count=1 -v -p 1 -timeout 60m -run "TestSWEBenchValidates|TestDockerPrepareDockerfile" ./cmd/proctor ./tasks

grading-swebench: ## log parsers and reports held to the swebench package, fetched for it
	@docker/grading-swebench.sh

interop: ## gateway and exports against the other sides' own Python packages; WITH_LLAMA=1 adds llama.cpp's server
	@.ci/interop.sh

mini: build image ## mini-swe-agent from PyPI on a rollout, unchanged
	python3 -m venv .cache/mini && .cache/mini/bin/pip install -q mini-swe-agent
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_MINI=$(CURDIR)/.cache/mini/bin $(GO) test -count=1 -run MiniSWEAgent ./cmd/proctor

compat: build image ## SWE-ReX, OpenEnv and MCP clients from PyPI on real rollouts
	python3 -m venv .cache/compat && .cache/compat/bin/pip install -q swe-rex aiohttp openenv-core mcp httpx
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_COMPAT_PYTHON=$(CURDIR)/.cache/compat/bin/python $(GO) test -count=1 -run CompatClients ./cmd/proctor

pool: image ## the engine's whole contract, by sandboxes claimed from a pool
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_POOL=1 $(GO) test -count=1 -timeout 30m -run ThroughPool ./sandbox/pool

attacks: build image ## every forgery of a state's reward alone, held to a grader that believes it
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_ATTACKS=1 $(GO) test -count=1 -timeout 40m -run 'Attacks' ./tasks/grading

matching: ## fast matching held to the plain way on every line of every corpus; ten minutes
	PROCTOR_CORPORA=all $(GO) test -count=1 -timeout 60m -v -run TestFastMatchingAgreesOnCorpora ./cmd/proctor

runsc: build image ## the contract suite under gVisor's runsc; ten minutes
	PROCTOR_REQUIRE_DOCKER=1 PROCTOR_RUNSC=1 $(GO) test -count=1 -v -timeout 30m -run Runsc ./sandbox/oci

bash-trace: ## what the normaliser says is run, held to bash -x over the whole corpora; an hour
	BASH_TRACE=1 BASH_FULL=1 go test -count=1 -timeout 120m -v -run TestRunsWhatBashRuns ./monitor/normalize

toy-training: ## a tiny policy trained by GRPO and PPO, with and without Proctor; minutes; draws docs/img/toy-training.svg
	PROCTOR_TOY=1 $(GO) test -count=1 -timeout 60m -v -run ToyTrainingWhole ./cmd/proctor

classifier: build ## trains the built-in classifier anew on the corpora (two minutes); the same corpora give the same model
	bin/proctor classifier train testdata/eval/heldout-*.jsonl monitor/normalize/corpus/testdata/variants.jsonl \
		$(foreach f,composed.dev.jsonl hacks.dev.jsonl real_calls.dev.jsonl nl2bash.jsonl.gz swe_agent_commands.dev.jsonl.gz,$(or $(CORPORA),../shared/data)/$(f)) \
		--task-vars $(or $(CORPORA),../shared/data)/swe_tasks.json --out monitor/classifier/core.model
