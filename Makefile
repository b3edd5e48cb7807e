# The two commands: `make demo` and `make test`. Each installs what is missing, builds, and runs.
PRESET ?= release
JOBS ?= $(shell nproc)
BUILD = $(if $(filter release ci,$(PRESET)),build,build-$(PRESET))
FORETRAIN = $(BUILD)/foretrain

PREFIX ?= /usr/local
MINUTES ?= 1

.PHONY: demo build test install package packages configure golden keys page page-test quotes docs gallery map scaling-plot \
        measure-hosts mutants-random fuzz format tidy clean

demo: build
	@FORETRAIN=$(FORETRAIN) .ci/demo

build: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target foretrain

test: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target all
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

# The program with its catalogue, manual page and completions, into PREFIX; as Debian packages, into the build folder.
install: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target foretrain_words
	@cmake --install $(BUILD) --prefix $(PREFIX) --component program >/dev/null

package: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target foretrain_words
	@cd $(BUILD) && cpack >/dev/null && ls foretrain*.deb

packages:
	@.ci/install-packages

configure: packages
	@cmake --preset $(PRESET) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }; rm -f $(BUILD).log

# Writes the expected outputs in tests/golden anew; read the difference before committing it.
golden: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target test_reports test_import test_page
	@FORETRAIN_GOLDEN=write $(BUILD)/tests/test_reports "[golden]"
	@FORETRAIN_GOLDEN=write $(BUILD)/tests/test_import "[golden]"
	@FORETRAIN_GOLDEN=write $(BUILD)/tests/test_page "[golden]"

# The page of reference about keys, from the tables that files are read by, and the schema of results.
keys: build
	@$(FORETRAIN) keys --markdown > reports/docs/keys.md
	@$(FORETRAIN) keys --schema result > reports/docs/result.schema.json

# Template of `foretrain report`, from reports/page/source; needs npm.
page:
	@cd reports/page && npm ci --no-fund --no-audit >/dev/null && node bundle.mjs

# Opens pages of every kind in Chromium; reports/docs/pictures anew.
page-test: build
	@tests/page/browser/run $(FORETRAIN) reports/docs/pictures || [ $$? = 77 ]

# Quotes of the program in pages: commands, the gallery's numbers, outputs.
quotes: build
	@reports/docs/refresh.py $(FORETRAIN)

# The pages as a site that needs no network, in build/site; needs mkdocs-material.
docs:
	@mkdocs build --strict --quiet --config-file reports/mkdocs.yml && echo build/site/index.html

# The pictures of README and gallery.
gallery: demo map
	@mkdir -p reports/gallery && cp $(BUILD)/demo/*.svg reports/gallery/
	@FORETRAIN=$(FORETRAIN) .ci/gallery
	@reports/docs/refresh.py $(FORETRAIN)

# When does a parameter server win? 5,720 predictions and the map that they make.
map: build
	@FORETRAIN=$(FORETRAIN) .ci/map
	@mkdir -p reports/gallery && cp $(BUILD)/map/*.svg reports/gallery/

# Growth of the program's own time with GPUs and micro-batches; needs gnuplot and time.
scaling-plot: build
	@tests/benchmark/plot_training_scaling $(FORETRAIN) reports/gallery/training-scaling.svg

# PyTorch's training steps between hosts made of this machine, beside their predictions; as root, needs python3-torch.
# PART: training, parallel, vision or lifetime.
measure-hosts: build
	@FORETRAIN=$(FORETRAIN) validate/pytorch/measure_hosts.sh $(or $(PART),training)

# Which of COUNT mistakes that SEED (or several: 1,2,3) draws from all sources tests see.
mutants-random:
	@.ci/mutants $(or $(SEED),1) $(or $(COUNT),60)

# libFuzzer over all that reads input from outside, MINUTES for each harness; needs clang-16.
fuzz:
	@SECONDS_EACH=$$((60 * $(MINUTES))) .ci/fuzz

format:
	@git ls-files --cached --others --exclude-standard '*.cpp' '*.hpp' | xargs clang-format -i

# clang-tidy 16 on every source, tests among them, each compiled alone: an hour and more on two cores.
tidy:
	@$(MAKE) configure PRESET=tidy
	@cmake --build build-tidy --parallel $(JOBS) --target all -- -k 0

clean:
	@rm -rf build build-*
