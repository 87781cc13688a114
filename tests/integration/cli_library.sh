#!/usr/bin/env bash
# The installed library: a C program outside of the tree builds against it, shared and static, and
# nothing but the public names leaves it.  Arguments: shoal, cli_tool, build folder, C compiler.
. "$(dirname "$0")/lib.sh"
cc=$4
cmake --install "$build" --prefix "$tmp/prefix" >install.log || { cat install.log; fail "install"; }
lib=$(dirname "$(find "$tmp/prefix" -name libshoal.so)")
names=$(nm -D --defined-only "$lib/libshoal.so" | awk '$2 != "A" {print $3}')
same "names that are not shoal_*" "$(grep -v '^shoal_' <<<"$names")" ""
declared=$(grep -hoE '\bshoal_[a-z_]+\(' "$root"/include/shoal/*.h | tr -d '(' | sort -u)
same "declared and exported" "$(sort -u <<<"$names" | comm -3 - <(echo "$declared"))" ""
cat >use.c <<'C'
#include <shoal/shoal.h>
#include <stdio.h>
static void event(void *ctx, const struct shoal_event *e)
{
    fwrite(e->text, 1, e->text_bytes, ctx);
}
int main(int argc, char **argv)
{
    struct shoal_engine *en;
    struct shoal_error err = {0};
    struct shoal_task *task;
    int32_t *tokens;
    size_t n;
    if (argc != 3 || shoal_engine_open(&en, argv[1], NULL, &err) < 0 ||
        shoal_tokenize(en, argv[2], 7, SHOAL_TEXT_ADD_SPECIAL, &tokens, &n, &err) < 0)
        return fprintf(stderr, "%s\n", err.msg), 1;
    struct shoal_task_opts o = {
        .size = sizeof(o), .tokens = tokens, .n_tokens = (uint32_t)n, .max_tokens = 24, .event = event, .event_ctx = stdout};
    if (shoal_task_submit(en, &o, &task, &err) < 0)
        return fprintf(stderr, "%s\n", err.msg), 1;
    int rc = shoal_task_wait(task);
    shoal_task_free(task);
    shoal_free(tokens);
    shoal_engine_close(en);
    return rc != 0;
}
C
run 0 generate -m "$refs/qwen3.gguf" --temp 0 -n 24 "was the"; cp out want
checked=$((checked + 2))
"$cc" -std=c11 -Wall -Werror -I"$tmp/prefix/include" use.c -o use-shared -L"$lib" -lshoal ${CFLAGS_EXTRA:-} || fail "shared does not link"
LD_LIBRARY_PATH=$lib ./use-shared "$refs/qwen3.gguf" "was the" >out || fail "shared does not run"
cmp out want || fail "the library gives another text than the program"
"$cc" -std=c11 -I"$tmp/prefix/include" use.c -o use-static "$lib/libshoal.a" -lpcre2-8 -lutf8proc -lcjson -lpthread -lm ${CFLAGS_EXTRA:-} || fail "static does not link"
./use-static "$refs/qwen3.gguf" "was the" >out || fail "static does not run"
cmp out want || fail "the static library gives another text"
finish
