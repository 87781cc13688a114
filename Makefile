# A front end for CMake.  Each target first installs the Debian packages it needs; `make help` lists them.
PREFIX ?= /usr/local
DESTDIR ?=
.PHONY: all conformance-llama-server conformance-manual conformance-observe conformance-ollama conformance-python conformance-registry conformance-supply conformance-tools deb help deps configure build install uninstall unit test check mutate chaos nightly bench run demo-cluster demo-voice schedulers fmt clean test-cuda
all: build

help: ## show this list
	@echo "usage: make [TARGET] [VARIABLE=value]"
	@echo
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/p' Makefile | expand -t 16
	@echo
	@echo "  BASE=COMMIT  make mutate changes only lines of src/ that differ from that commit (a sample of src/)"
	@echo "  BENCH=NAME   what make bench runs, with its options (all)"
	@echo "  CROSS=1      make chaos with a node of another architecture, under qemu (no)"
	@echo "  DURATION=N   seconds of make chaos (60) and make nightly (600 of load, 300 of chaos)"
	@echo "  FOLDER=NAME  make mutate changes only src/NAME (all of src/)"
	@echo "  MIN=P        make mutate fails when fewer than P percent are killed (0)"
	@echo "  MUTANT=PATH:LINE:OPERATOR  make mutate runs this one again"
	@echo "  NETNS=1      make chaos with every member in a network namespace, whose cable is pulled (no; needs root)"
	@echo "  PREFIX=DIR   where make install puts the files (/usr/local)"
	@echo "  DESTDIR=DIR  a folder in front of PREFIX, for packagers (none)"
	@echo "  PARTS=...    what make schedulers runs (image compose systemd kubernetes nomad)"
	@echo "  SAMPLE=N     lines that make mutate changes (100)"
	@echo "  SEED=N       what make chaos does to whom, and when; which lines make mutate changes (a random one, which is printed)"
	@echo "  SOAK=N       minutes of mixed load on the release build in make nightly (120)"
	@echo "  TESTS=...    what make test runs: arguments of ctest, for example '-R serve' (all);"
	@echo "               with make mutate: near, unit, quick (and integration tests of up to 10 s) or all (quick)"

deps: ## install the Debian packages that the build needs
	@tools/install-deps build

configure: deps
	@cmake --preset release >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@rm -f build.log

build: configure ## build the program and the library in build/ (the default)
	@cmake --build build --target shoal shoal_lib shoal_static pages

install: deps ## install the program, the library, the models and the manual
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@rm -f build.log
	@cmake --build build --target shoal shoal_lib shoal_static pages
	@umask 022; DESTDIR=$(DESTDIR) cmake --install build >build/install.log || { cat build/install.log; exit 1; }
	@cp build/install_manifest.txt build/installed.txt
	@echo "installed in $(DESTDIR)$(PREFIX)"

deb: configure ## make a Debian package of the program, the library and the models in build/
	@command -v dpkg-shlibdeps >/dev/null || { echo "install dpkg-dev first"; exit 1; }
	@cmake --build build --target shoal shoal_lib shoal_static pages
	@packaging/make-deb build build

uninstall: ## remove what the last make install wrote
	@packaging/uninstall build/installed.txt "$(DESTDIR)"

unit: ## unit and fuzz tests: about 15 seconds, no network
	@tools/run-tests --unit

test: ## every test, then some of them again under the sanitizers
	@tools/install-deps test
	@tools/run-tests $(TESTS)

test-cuda: ## on a machine with an NVIDIA GPU and nvcc: every model's bits against the CPU, the sanitizer, times
	@tools/test-cuda

conformance-llama-server: configure ## run llama.cpp's own server tests against ours and print a table; STORIES=FILE.gguf: path of stories260K
	@cmake --build build --target shoal
	@tests/conformance/llama_server build/shoal

conformance-manual: configure ## answer 30 questions about a manual with a real 135 M model from PyPI; MANUAL=FILE QUESTIONS=FILE: use your own
	@cmake --build build --target shoal
	@tests/conformance/manual_real build/shoal $(MANUAL) $(QUESTIONS)

conformance-observe: configure ## a real Prometheus (Debian's package) scrapes a server under load and runs the rules and dashboards
	@cmake --build build --target shoal
	@tests/conformance/observe build/shoal

conformance-ollama: configure ## build Ollama's own command line from its Go module, run it against the server, and count what works
	@cmake --build build --target shoal
	@tests/conformance/ollama_cli build/shoal

conformance-python: configure ## run Python clients from PyPI against the server and count results by client
	@cmake --build build --target shoal
	@tests/conformance/python_clients build/shoal

conformance-registry: configure ## build a real registry (distribution 3) from its Go module, and count what pull, push, list and rm do with it
	@cmake --build build --target shoal
	@tests/conformance/registry build/shoal

conformance-supply: configure ## sign and check models in both directions with model_signing from PyPI, and minisign
	@cmake --build build --target shoal
	@tests/conformance/supply build/shoal

conformance-tools: configure ## tool calls by real models from PyPI (1.2 GB), through four clients
	@cmake --build build --target shoal
	@tests/conformance/tools_real build/shoal

check: ## format, includes, banned calls, a build with clang, cppcheck
	@tools/install-deps check
	@tools/run-checks

mutate: ## change the code in small ways, one at a time: a test must fail each time (docs/TESTING.md)
	@tools/install-deps test
	@tools/mutate $(if $(BASE),--base $(BASE)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(FOLDER),--folder $(FOLDER)) $(if $(MUTANT),--mutant $(MUTANT)) $(if $(TESTS),--tests $(TESTS)) $(if $(MIN),--min $(MIN))

chaos: configure ## kill nodes and break the network under 32 streams; no token may be lost
	@tools/install-deps test
	@cmake --build build --target shoal chaos_proxy
	@$(if $(CROSS),tools/build-cross build-cross)
	@$(if $(CROSS),CROSS=build-cross/run,PAUSE_MS=2000) NETNS=$(NETNS) node tests/chaos/chaos.js build/shoal build/tests/chaos_proxy $(or $(DURATION),60) $(SEED)

nightly: ## mixed load, chaos and elections under AddressSanitizer, then two hours of load on the release build
	@tools/install-deps test
	@SOAK=$(or $(SOAK),120) tools/run-nightly $(DURATION)

bench: configure ## run the benchmarks, with the peers beside us
	@tools/install-deps bench
	@cmake --build build
	@bench/run $(BENCH)

run: configure ## start the server with the models of this repository, a simulated plant and a house
	@cmake --build build --target shoal demo_devices
	@tools/run-demo

demo-cluster: configure ## start three nodes and a gateway here, kill the node that is streaming, and see the text continue
	@tools/install-deps demo
	@cmake --build build --target shoal
	@tools/demo-cluster

demo-voice: configure ## speak a command to a satellite, kill the recognizer in the middle of it, and see it carried out over MQTT
	@tools/install-deps demo
	@cmake --build build --target shoal
	@tools/demo-voice

schedulers: configure ## test the image, the Compose file, the systemd units and the Helm chart for real; builds Kubernetes first (root, 40 minutes once)
	@tools/install-deps schedulers
	@cmake --build build --target shoal shoal_lib shoal_static pages
	@tests/schedulers/run build/shoal $(PARTS)

fmt: ## format all C files
	@tools/install-deps check
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

clean: ## remove what was built
	rm -rf build build-*
