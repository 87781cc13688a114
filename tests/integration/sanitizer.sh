#!/usr/bin/env bash
# A sanitizer build must fail on a faulty program: $1 compiler, $2 sanitizer ("address", "thread" or
# ""). Without a sanitizer there is nothing to show, and the test is not registered.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [ "$2" = address ]; then
    cat >"$dir/wrong.c" <<'C'
#include <stdlib.h>
int main(int argc, char **argv) { (void)argv; char *p = malloc(4); p[argc + 3] = 1; int r = p[argc + 3]; free(p); return r - 1; }
C
    "$1" -g -fsanitize=address,undefined "$dir/wrong.c" -o "$dir/wrong"
else
    cat >"$dir/wrong.c" <<'C'
#include <pthread.h>
static int shared;
static void *add(void *p) { for (int i = 0; i < 100000; i++) shared++; return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); pthread_join(t, 0); return 0; }
C
    "$1" -g -fsanitize=thread "$dir/wrong.c" -o "$dir/wrong" -lpthread
fi
if "$dir/wrong" >/dev/null 2>&1; then
    echo "the $2 sanitizer did not find a planted error"
    exit 1
fi
echo "the $2 sanitizer finds a planted error"
