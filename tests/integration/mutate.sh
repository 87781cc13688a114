#!/usr/bin/env bash
# tools/mutate on a small tree: what a test checks is killed, what it only runs or never runs survives, a listed
# mutant is not counted, an entry without a mutant is reported, and the tree stays as it was.
set -eu
mutate=$(cd "$(dirname "$0")/../.." && pwd)/tools/mutate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p src/base tests/unit/base tools
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(x C)
enable_testing()
add_library(base STATIC src/base/a.c)
add_executable(test_b tests/unit/base/test_b.c)
target_link_libraries(test_b base)
add_test(NAME test_b COMMAND test_b)
set_tests_properties(test_b PROPERTIES LABELS unit)
END
cat >src/base/a.c <<'END'
int limit(int n);
int limit(int n)
{
    if (n > 3) /* > in a comment */
        return 0;
    return n;
}
int more(int n);
int more(int n)
{
    return n + 2;
}
int never(void);
int never(void)
{
    return 7;
}
int endless(int n);
int endless(int n)
{
    while (n > 0)
        n -= 1;
    return n;
}
END
cat >tests/unit/base/test_b.c <<'END'
int limit(int n);
int more(int n);
int endless(int n);
int main(void)
{
    more(1);
    return limit(3) != 3 || limit(4) != 0 || endless(5) != 0;
}
END
cat >tools/mutate-equivalent <<'END'
src/base/a.c: zero: return n + 2;
    a reason, over
    two lines
src/base/a.c: constant: return n + 9;
    this line is gone
END
echo /build-mutate/ >.gitignore
git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm one
before=$(sha256sum src/base/a.c)
failed=0
expect() { # LINE: the output has it
    grep -qFx -- "$1" out || { echo "missing: $1"; failed=1; }
}
refuse() { # TEXT: no line begins with it
    ! grep -qF -- "$1" out || { echo "not expected: $1"; failed=1; }
}
if ! "$mutate" --root "$dir" --base 4b825dc642cb6eb9a060e54bf8d69288fbee4904 --json all.json >out 2>log; then
    echo "it failed:"
    cat log
    failed=1
fi
expect "src/base/a.c:11: arithmetic: + -> - (survived 1 test)"
expect "src/base/a.c:11: constant: 2 -> 3 (survived 1 test)"
expect "src/base/a.c:16: constant: 7 -> 8 (not covered)"
expect "src/base/a.c:16: zero: 7 -> 0 (not covered)"
expect "tools/mutate-equivalent: there is no such mutant any more, remove it: src/base/a.c: constant: return n + 9;"
refuse "src/base/a.c:4:"
refuse "zero: 2"
grep -q '^base  *[0-9]*/[0-9]*  *[0-9]*$' out || { echo "no row for the folder"; failed=1; }
tail -n 1 out | grep -qE '^mutate: [0-9]+ of [0-9]+ killed \([0-9]+ %\)$' || { echo "no last line"; failed=1; }
grep -q '"verdict": "killed"' all.json || { echo "nothing killed in the JSON"; failed=1; }
# A loop without an end is killed by its time limit, and one mutant can be run again.
"$mutate" --root "$dir" --mutant src/base/a.c:21:condition >out 2>log || true
expect "mutate: 1 of 1 killed (100 %)"
"$mutate" --root "$dir" --mutant src/base/a.c:22:arithmetic >out 2>log || true
expect "mutate: 1 of 1 killed (100 %)"
# Survivors fail the run when a share is asked for.
if "$mutate" --root "$dir" --folder base --sample 50 --seed 7 --min 100 >out 2>log; then
    echo "--min 100 passes with survivors"
    failed=1
fi
# Nothing changed, nothing to do.
"$mutate" --root "$dir" --base HEAD >out 2>log
expect "mutate: 0 of 0 killed (100 %)"
rm -f out log all.json
[ "$before" = "$(sha256sum src/base/a.c)" ] || { echo "the source was changed"; failed=1; }
[ -z "$(git status --porcelain)" ] || { echo "the tree was changed:"; git status --short; failed=1; }
[ "$failed" -eq 0 ] || cat log 2>/dev/null
exit "$failed"
