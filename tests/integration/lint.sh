#!/usr/bin/env bash
# The checks pass for this tree, and fail for a tree that breaks them.
set -eu
cd "$(dirname "$0")/../.."
tools/check-includes
tools/check-names
tools/check-banned
tools/check-tests
tools/check-docs

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
# refused CHECK TEXT WHY: CHECK fails for the tree in $dir and says TEXT.  Then the tree is emptied.
refused() {
    if "tools/$1" "$dir" >"$dir.out" 2>&1; then
        echo "$1 accepts $3"
        failed=1
    elif ! grep -q "$2" "$dir.out"; then
        echo "$1 refuses $3, but does not say \"$2\":"
        cat "$dir.out"
        failed=1
    fi
    rm -rf "$dir.out" "${dir:?}"/*
}
# accepted CHECK WHY
accepted() {
    if ! "tools/$1" "$dir" >"$dir.out" 2>&1; then
        echo "$1 refuses $2:"
        cat "$dir.out"
        failed=1
    fi
    rm -rf "$dir.out" "${dir:?}"/*
}
put() { # file line...
    mkdir -p "$dir/$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$dir/$1"
}

put src/model/up.c '#include "engine/decode/sampler.h"'
refused check-includes 'must not include "engine/decode/sampler.h"' "an include that points up"

put src/new/a.c '#include "base/buf.h"'
refused check-includes 'src/new' "a folder that it does not know"

put src/base/a.h '#include "base/b.h"'
put src/base/b.h '#include "base/a.h"'
refused check-includes 'circle' "two headers in a circle"

put src/base/a.c '#include "base/a.h"' '#include "base/b.h"'
put src/base/b.c '#include "base/b.h"' '#include "base/c.h"'
put src/base/c.c '#include "base/c.h"' '#include "base/a.h"'
refused check-includes 'base/b' "three files in a circle"

put src/base/a.c '#include "base/a.h"' '#include "base/a_int.h"' '#include "base/b.h"'
put src/base/a_int.h '#include "base/a.h"'
put src/base/b.c '#include "base/b.h"' '#include "base/c.h"'
put src/wire/a.c '#include "base/a.h"' '#include "wire/b.h"'
accepted check-includes "files without a circle"

put src/host/same.c
put src/flow/same.c
refused check-names 'same' "two files with one name"

put src/router/same.c
put bench/same.c
refused check-names 'bench/same' "a benchmark with the name of a source file"

put src/engine/job.h 'struct job {' '    int a;' '};'
put src/cmd/cmd_a.c 'static const struct job { int b; } jobs[] = {{1}};'
refused check-names 'src/cmd/cmd_a.c' "a struct of a header that another file defines too"

put src/trust/roles.h 'enum role { ROLE_A };'
put src/text/tok_roles.c 'struct role {' '    int a;' '};'
refused check-names 'src/text/tok_roles.c' "a struct with the name of an enum"

put src/store/vectors.h 'struct vectors;'
put src/store/vectors.c 'struct vectors {' '    int a;' '};'
put src/eval/texts.c 'struct vectors {' '    int b;' '};'
refused check-names 'src/eval/texts.c' "a struct with the name of an opaque one"

put src/base/a.h 'struct err *a_make(struct other *o);'
put src/base/a.c 'struct local { int a; };' 'struct err *a_make(struct other *o) {'
put src/base/b.c 'struct local { int b; };' 'struct err { int c; };'
accepted check-names "structs that one file knows, and uses of one that a header names"

put src/base/queue_list.c 'int list_push(int a)' '{' '}'
refused check-names 'queue_list.c: list_push' "a function that does not begin with the name of its file"

put src/base/queue.c 'const struct row rows[] = {' '    {1},' '};'
refused check-names 'queue.c: rows' "a table that does not begin with the name of its file"

put src/base/queue.c 'static int list_push(int a)' '{' '}' 'static const struct row *' 'rows(int a, int b)' '{' '}' \
    'int other(int a);' 'int queue_push(int a,' '               int b)' '{' '}' 'int shoal_push(void)' '{' '}' 'enum { LIST = 3 };'
accepted check-names "names that begin with that of their file, private and public ones"

put include/shoal/a.h
put src/site/a.c '    sink->ops->carry(sink, &deed, done, ctx);'
refused check-banned 'only src/apps/home/gate/gate.c may reach a sink' "a sink that is called around the gate"

put include/shoal/a.h
put src/site/a.c '    send = sink->ops->carry;'
refused check-banned 'only src/apps/home/gate/gate.c may reach a sink' "a copy of the pointer to a sink"

put include/shoal/a.h
put src/apps/home/gate/gate.c '    sink->ops->carry(sink, &deed, done, ctx);' '    sink->ops->carry(sink, &deed, done, ctx);'
refused check-banned 'exactly one place' "a gate with a second door"

put include/shoal/a.h
put src/apps/home/gate/gate.c '    sink->ops->carry(sink, &deed, done, ctx);'
accepted check-banned "a gate with one door"

put src/base/a.c
put src/wire/b.c
put tests/unit/base/test_a.c
refused check-tests 'src/wire has no tests' "a folder without tests"

put src/base/a.c
put tests/unit/base/test_a.c
put tests/unit/old/test_b.c
refused check-tests 'tests/unit/old' "tests of no folder"

put src/base/a.c
put tests/unit/base/test_a.c 'fopen("../''shared/x", "r")'
refused check-tests 'test_a.c' "a test that reads a file from outside"

put src/base/a.c
put tests/unit/base/test_a.c
accepted check-tests "a tree where tests mirror src"

put README.md 'Read `src/base/gone.c`.'
refused check-docs 'README.md:1: there is no src/base/gone.c' "a guide that names a file that is gone"

put CONTRIBUTING.md 'Add a row in `table.c`.'
put src/base/tables.c
refused check-docs 'there is no table.c' "a file name that is nearly right"

put docs/ARCHITECTURE.md 'See [the page](OLD.md).'
refused check-docs 'there is no OLD.md' "a link to a page that is gone"

put src/base/README.md 'Files: `thing_NAME.c`.'
put src/base/thing.c
refused check-docs 'thing_NAME.c' "a pattern that no file matches"

put src/base/README.md '`a.c`, `base/b.h`, `file/`, `src/base/file/c.c`, `b_NAME.h`, `b` and `GET /v1/models.json`' '```' '`no.c`' '```'
put src/base/a.c
put src/base/b.h
put src/base/b_one.h
put src/base/file/c.c
put README.md '[architecture](docs/ARCHITECTURE.md) `docs/ARCHITECTURE.md` `http://x.example/y.c`'
put docs/ARCHITECTURE.md '[start](../README.md#start) `base/a.c`'
accepted check-docs "guides whose files exist"
exit "$failed"
