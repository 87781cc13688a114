#!/usr/bin/env bash
# tools/count-tests on the results of a real ctest run: tests that pass, fail, hang, are missing or
# skipped, as scripts or inside a cmocka program. Usage: count_tests.sh SKIPPING
set -eu
skipping=$(realpath "$1")
count=$(cd "$(dirname "$0")/../.." && pwd)/tools/count-tests
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >CMakeLists.txt <<EOF
cmake_minimum_required(VERSION 3.25)
project(x NONE)
enable_testing()
add_test(NAME good COMMAND true)
add_test(NAME noisy COMMAND echo "a <tag> & [  SKIPPED ] 2 test(s), listed below:")
add_test(NAME bad COMMAND false)
add_test(NAME hangs COMMAND sleep 60)
set_tests_properties(hangs PROPERTIES TIMEOUT 0.1)
add_test(NAME missing COMMAND /nonexistent)
add_test(NAME skipped COMMAND sh -c "exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME skipping COMMAND $skipping)
EOF
cmake -S . -B b >/dev/null
failed=0
# expect STATUS LINE COUNT-ARGUMENTS...
expect() {
    local status=0 line
    line=$("$count" "${@:3}") || status=$?
    if [ "$line" != "$2" ] || [ "$status" != "$1" ]; then
        printf 'got      %s (%s)\nexpected %s (%s)\n' "$line" "$status" "$2" "$1"
        failed=1
    fi
}
results() { # file ctest-arguments...
    ctest --test-dir b --output-junit "$dir/$1" "${@:2}" >/dev/null 2>&1 || true
}
results all.xml
results good.xml -R good
results skips.xml -R skipp
expect 1 "3 passed, 3 failed, 2 skipped: skipped, skipping/test_that_skips" all.xml
expect 0 "1 passed, 0 failed" good.xml
expect 0 "1 passed, 0 failed, 2 skipped: skipped, skipping/test_that_skips" skips.xml
expect 0 "2 passed, 0 failed, 2 skipped: skipped, skipping/test_that_skips" skips.xml good.xml
expect 1 "1 passed, 1 failed" -f 1 good.xml # a build that failed
expect 1 "2 failed, no test ran" -f 2
exit "$failed"
