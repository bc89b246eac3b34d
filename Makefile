# The two commands that a newcomer needs are 'make survey' and 'make test'. Both start from Python
# 3.11, g++ 12 and make, put everything they need into .venv and .deps, and rebuild what changed.
#
#   make WAYWISER_CUDA=ON survey     builds the GPU code where there is no GPU too
#   make WAYWISER_CUDA=OFF test      builds for the host alone
#   make PYTHON=python3.12 test      with another Python
#   make ARCH=aarch64 wheel          wheels for aarch64
#   make survey SURVEY="--only 'by cpu'"

PYTHON ?= python3
# A survey alone compiles no GPU code on a machine without an NVIDIA device, unless an earlier build
# did. All other goals compile it everywhere.
nvidia := $(wildcard /dev/nvidiactl /proc/driver/nvidia /dev/dxg /dev/nvhost-gpu \
    .venv/ready-build-cuda-ON .venv/ready-cuda-ON)
WAYWISER_CUDA ?= $(if $(filter-out survey,$(MAKECMDGOALS))$(nvidia),ON,OFF)
SURVEY ?=
export WAYWISER_CUDA

ready := .venv/ready-cuda-$(WAYWISER_CUDA)
ready_build := .venv/ready-build-cuda-$(WAYWISER_CUDA)
set_up := scripts/set-up $(wildcard scripts/locks/*.txt build_backend/*.py)

.PHONY: survey product test lint format wheel release release-checks build compile lock clean help

survey:
ifeq ($(WAYWISER_CUDA),OFF)
	@echo "No NVIDIA device here: this builds for the host alone. To build for GPUs, here or on a login" \
	    "node whose folder GPU nodes share: make WAYWISER_CUDA=ON survey"
endif
	@$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j2) $(ready) product
	.venv/bin/waywiser survey --preset quick $(SURVEY)

product: $(ready_build)
	scripts/build dev product

test: build .venv/ready-test .venv/ready-browser .venv/ready-mpi .venv/ready-slurm .venv/ready-guest
	@if [ -d .deps/guest/arm-packages ]; then scripts/build arm64; fi
	@scripts/test

build: $(ready) compile

compile: $(ready_build)
	scripts/build dev

lint: build .venv/ready-test .venv/ready-lint
	scripts/lint

format: .venv/ready-lint
	scripts/lint --fix

wheel: $(ready) .venv/ready-wheel .venv/ready-release $(if $(filter aarch64,$(ARCH)),.venv/ready-guest)
	scripts/make-wheel

# The binaries of wheels, for drivers from R525 on, and what can be tested of them without a GPU.
release: $(ready) .venv/ready-release
	CUDACXX=$(CURDIR)/.deps/release/cuda/bin/nvcc scripts/build release

# The same for CI, in build/release-checks/: the files without CUDA are those of the dev preset, which has
# compiled them with the same options. On another system than Debian there is no such compiler, and
# nothing is built.
release-checks: compile .venv/ready-release
	@if [ -e .venv/ready-release ]; then \
	    CUDACXX=$(CURDIR)/.deps/release/cuda/bin/nvcc scripts/build release-checks && \
	    PATH="$(CURDIR)/.venv/bin:$$PATH" ctest --preset release-checks; fi

$(ready_build): $(set_up)
	$(PYTHON) scripts/set-up --build
	@touch $@

$(ready): $(ready_build)
	$(PYTHON) scripts/set-up
	@touch $@

# Without a browser its tests say so, and fail in CI.
.venv/ready-browser: $(ready)
	@if $(PYTHON) scripts/set-up --browser; then touch $@; fi

# The same holds for MPI libraries, and for Slurm and the emulator where the distribution has the
# pinned versions.
.venv/ready-mpi: $(ready)
	@if $(PYTHON) scripts/set-up --mpi; then touch $@; fi

.venv/ready-slurm: $(ready) scripts/slurm.toml
	@if $(PYTHON) scripts/set-up --slurm; then touch $@; fi

.venv/ready-guest: $(ready) scripts/guest.toml
	@if $(PYTHON) scripts/set-up --guest; then touch $@; fi

.venv/ready-release: $(ready) scripts/release.toml
	@if $(PYTHON) scripts/set-up --release; then touch $@; fi

.venv/ready-%: $(ready)
	$(PYTHON) scripts/set-up --group $*
	@touch $@

# The newest versions of what is installed here.
lock: .venv/ready-lock
	scripts/lock

# What was built and fetched; profiles stay.
clean:
	rm -rf build dist .venv .deps python/waywiser/*.so python/waywiser/lib

help:
	@echo "make survey   measure this machine (quick)"
	@echo "make test     build and run every test that this machine can run"
	@echo "make build    build the product and the tests, with CUDA (WAYWISER_CUDA=OFF: without)"
	@echo "make lint     formatters, linters, types, layers, vocabulary"
	@echo "make format   let the formatters write"
	@echo "make wheel    wheels for drivers from R525 and glibc from 2.28 on, and a source archive, in dist/"
	@echo "make ARCH=aarch64 wheel   wheels for aarch64, compiled on x86-64 and used in an emulated machine"
	@echo "make release  the binaries of these wheels, in build/release/"
	@echo "make lock     newer versions of the packages that are installed here, each by its hash"
	@echo "make clean    remove what was built and fetched"
