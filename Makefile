# Thin front of CMake; every target first makes sure that the packages it needs are there.
.PHONY: all configure build test nightly check bench run fmt clean deps
all: build

deps:
	@tools/install-deps build

configure: deps
	@cmake --preset release >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@rm -f build.log

build: configure
	@cmake --build build

test:
	@tools/install-deps test
	@tools/run-tests

# Ten minutes of mixed load under the sanitizers; make nightly DURATION=60 for one.
nightly:
	@tools/install-deps test
	@tools/run-nightly $(DURATION)

check:
	@tools/install-deps check
	@tools/run-checks

bench: build
	@tools/install-deps bench
	@bench/run $(BENCH)

run: configure
	@cmake --build build --target shoal
	@tools/run-demo

fmt:
	@tools/install-deps check
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

clean:
	rm -rf build build-*
