/* fuzz_graph_expr.c - expressions of flows: parsed, checked and computed without a crash, and with
 * errors that point into the text.  The first byte chooses template or condition, and the form. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/graph/graph_expr.h"
#include "pipeline/graph/graph_kind.h"
#include "support/fuzz_note.h"
#include "wire/value_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct graph_type *type_of(const struct graph_scope *s, const char *name, size_t n,
                                        const char **why)
{
    (void)s;
    (void)why;
    for (int i = 0; i < 6; i++) /* the kinds with a fixed result */
        if (strlen(graph_kinds[i].name) == n && memcmp(graph_kinds[i].name, name, n) == 0)
            return graph_kinds[i].gives;
    return n == 3 && memcmp(name, "any", 3) == 0 ? &graph_type_any : NULL;
}

static const struct value *value_of(const struct graph_values *v, const char *name, size_t n)
{
    static const struct value items[] = {{.kind = VALUE_TEXT, .text = {"3", 1}},
                                         {.kind = VALUE_NUMBER, .number = 3}};
    static const struct value_member members[] = {
        {"label", {.kind = VALUE_TEXT, .text = {"a\"b", 3}}},
        {"list", {.kind = VALUE_LIST, .list = {items, 2}}},
        {"score", {.kind = VALUE_NUMBER, .number = 0.5}}};
    static const struct value map = {.kind = VALUE_MAP, .map = {members, 3}};
    (void)v;
    (void)name;
    return n == 5 ? NULL : &map;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"classify", "tag", "any", NULL};
    static const struct graph_scope scope = {type_of, names};
    static const struct graph_values values = {value_of};
    struct arena a;
    struct graph_expr *x;
    struct graph_expr_error bad = {0};
    struct err e = {0};
    struct value v;
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    enum graph_expr_mode mode = data[0] & 1 ? GRAPH_EXPR_CONDITION : GRAPH_EXPR_TEMPLATE;
    arena_init(&a, (size_t)64 << 20);
    int rc = graph_expr_parse(&x, &a, text, size - 1, mode, &bad);
    if (rc == 0)
        rc = graph_expr_check(x, &scope, NULL, &bad);
    if (rc < 0 && (bad.at > size - 1 || !bad.msg[0]))
        abort(); /* an error without a position */
    FUZZ_NOTE("%d %zu %s", rc, (size_t)bad.at, bad.msg);
    if (rc == 0 &&
        graph_expr_eval(&v, x, &values, (enum graph_expr_form)(data[0] / 2 % 3), &a, &e) < 0 &&
        !e.msg[0])
        abort();
    if (rc == 0 && !e.msg[0]) {
        struct buf b;
        buf_init(&b, 1 << 20);
        value_bytes_put(&b, &v);
        FUZZ_NOTE_BYTES(b.data, b.len);
        buf_fini(&b);
    }
    FUZZ_NOTE("%s", e.msg);
    arena_fini(&a);
    return 0;
}
