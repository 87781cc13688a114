# Thin front of CMake; every target first makes sure that the packages it needs are there.
PREFIX ?= /usr/local
DESTDIR ?=
.PHONY: all configure build install uninstall test nightly check bench run fmt clean deps
all: build

deps:
	@tools/install-deps build

configure: deps
	@cmake --preset release >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@rm -f build.log

build: configure
	@cmake --build build

# make install PREFIX=/usr/local DESTDIR=/tmp/stage: the program, the library with its headers, the
# models, the manual, completions and the systemd unit.
install: deps
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@rm -f build.log
	@cmake --build build
	@umask 022; DESTDIR=$(DESTDIR) cmake --install build >build/install.log || { cat build/install.log; exit 1; }
	@cp build/install_manifest.txt build/installed.txt
	@echo "installed in $(DESTDIR)$(PREFIX)"

# Removes what the last make install wrote.
uninstall:
	@packaging/uninstall build/installed.txt "$(DESTDIR)"

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
