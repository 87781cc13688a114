#!/usr/bin/env bash
# calls.sh BUILD CC: the .c files of the tree do not call each other in circles, every global has a user,
# and the check fails for files that break this.
set -eu
build=$1 cc=$2
cd "$(dirname "$0")/../.."
tools/check-calls . "$build"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
put() { # FOLDER FILE CODE: a source file, compiled into the library of its folder
    mkdir -p "$dir/src/$1" "$dir/build/src/$1"
    printf '%s\n' "$3" >"$dir/src/$1/$2"
    "$cc" -c -o "$dir/$2.o" "$dir/src/$1/$2"
    ar qc "$dir/build/src/$1/lib$1.a" "$dir/$2.o"
}
program() { # FOLDER FILE CODE: a test, benchmark or tool
    mkdir -p "$dir/build/$1"
    printf '%s\n' "$3" >"$dir/$2"
    "$cc" -c -o "$dir/build/$1/$2.o" "$dir/$2"
}
# refused TEXT WHY: the check fails and says TEXT.  Then the tree is emptied.
refused() {
    if tools/check-calls "$dir" >"$dir.out" 2>&1; then
        echo "check-calls accepts $2"
        failed=1
    elif ! grep -q -- "$1" "$dir.out"; then
        echo "check-calls refuses $2, but does not say \"$1\":"
        cat "$dir.out"
        failed=1
    fi
    rm -rf "$dir.out" "${dir:?}"/*
}
accepted() { # WHY
    if ! tools/check-calls "$dir" >"$dir.out" 2>&1; then
        echo "check-calls refuses $1:"
        cat "$dir.out"
        failed=1
    fi
    rm -rf "$dir.out" "${dir:?}"/*
}

put base a.c 'int b(void); int a(void) { return 1; } int use_b(void) { return b(); }'
put base b.c 'int a(void); int b(void) { return a(); }'
refused 'src/base/a.c -> src/base/b.c: b$' "two files in a circle"

put base a.c 'int b(void); int a(void) { return b(); }'
put wire b.c 'int c(void); int b(void) { return c(); }'
put wire c.c 'extern int (*const table[])(void); int c(void) { return table[0](); }'
put base d.c 'int a(void); extern int (*const table[])(void); int (*const table[])(void) = {a};'
refused '4 files' "a circle over two folders and a table"

put base a.c 'int b(int (*f)(void)); static int own(void) { return 1; } int main(void) { return b(own); }'
put base b.c 'int b(int (*f)(void)) { return f(); }'
accepted "a pointer to a function of the caller"

put text jinja_call.c 'int jinja_call(void) { return 1; }'
put text jinja_eval.c 'int jinja_call(void); int jinja_eval(void) { return jinja_call(); }'
refused 'no such circle any more' "a listed circle that is gone"

put base a.c 'int a(void) { return 1; } int b(void) { return a(); }'
put wire c.c 'int b(void); int main(void) { return b(); }'
refused 'no other file uses a of src/base/a.c' "a global that only its own file uses"

put base a.c 'int a(void) { return 1; } int main(void) { return a(); }'
program tests test_a.c 'int a(void); int test(void) { return a(); }'
accepted "a global that a test uses besides its own file"

put base a.c '/* a: see a */ int a(void) { return 1; } int main(void) { return 0; }'
program bench bench_a.c 'int a(void); int bench(void) { return a(); }'
refused 'only tests use a of src/base/a.c' "a global that only a benchmark uses"

put base mem.c 'int mem_calls(void) { return 1; } int main(void) { return 0; }'
program tests test_mem.c 'int mem_calls(void); int test(void) { return mem_calls(); }'
accepted "a global for tests that is listed"

put base mem.c 'int mem_calls(void) { return 1; }'
put wire c.c 'int mem_calls(void); int main(void) { return mem_calls(); }'
refused 'mem_calls of src/base/mem.c needs no row' "a row for a global that has a user now"

put library api.c 'int shoal_api(void) { return 1; }'
accepted "a public function"

refused 'build first' "a tree without libraries"
exit "$failed"
