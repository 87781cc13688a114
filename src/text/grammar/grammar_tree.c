/* grammar_tree.c - see grammar_tree.h. */
#include "text/grammar/grammar_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/room.h"

#define MAX_BYTES ((size_t)64 << 20)

void grammar_tree_init(struct grammar_tree *t, struct err *e)
{
    *t = (struct grammar_tree){.e = e};
    arena_init(&t->arena, MAX_BYTES);
}

void grammar_tree_fini(struct grammar_tree *t)
{
    arena_fini(&t->arena);
    mem_free(t->nodes);
    mem_free(t->rules);
    *t = (struct grammar_tree){0};
}

uint32_t grammar_tree_fail(struct grammar_tree *t, int code, const char *fmt, ...)
{
    va_list ap;
    char msg[sizeof(t->e->msg)];
    if (t->rc < 0)
        return GRAMMAR_TREE_NONE;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    t->rc = err_set(t->e, code, "%s", msg);
    return GRAMMAR_TREE_NONE;
}

static uint32_t no_memory(struct grammar_tree *t)
{
    if (t->arena.rc == SHOAL_ELIMIT)
        return grammar_tree_fail(t, SHOAL_ELIMIT, "the grammar is too large");
    return grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a grammar");
}

static uint32_t add(struct grammar_tree *t, const struct grammar_tree_node *node)
{
    if (t->rc < 0)
        return GRAMMAR_TREE_NONE;
    if (t->n_nodes == GRAMMAR_TREE_MAX_NODES)
        return grammar_tree_fail(t, SHOAL_ELIMIT, "the grammar has more than %u parts",
                                 GRAMMAR_TREE_MAX_NODES);
    if (!room_make32(&t->nodes, &t->cap_nodes, t->n_nodes, sizeof(*t->nodes), 64))
        return no_memory(t);
    t->nodes[t->n_nodes] = *node;
    return t->n_nodes++;
}

void grammar_tree_push(struct grammar_tree *t, struct grammar_tree_list *l, uint32_t node)
{
    if (t->rc < 0)
        return;
    if (!room_make_in(&t->arena, &l->items, &l->cap, l->n, sizeof(*l->items), 8)) {
        no_memory(t);
        return;
    }
    l->items[l->n++] = node;
}

uint32_t grammar_tree_literal(struct grammar_tree *t, const char *p, size_t n)
{
    if (t->rc < 0)
        return GRAMMAR_TREE_NONE;
    const char *copy = n > 0 ? arena_copy(&t->arena, p, n) : "";
    if (!copy)
        return no_memory(t);
    return add(t, &(struct grammar_tree_node){
                      .kind = GRAMMAR_TREE_LITERAL, .n = (uint32_t)n, .bytes = copy});
}

uint32_t grammar_tree_text(struct grammar_tree *t, const char *text)
{
    return grammar_tree_literal(t, text, strlen(text));
}

static int by_lo(const void *a, const void *b)
{
    const struct grammar_tree_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

uint32_t grammar_tree_class(struct grammar_tree *t, const struct grammar_tree_range *r, size_t n,
                            bool negated)
{
    if (t->rc < 0)
        return GRAMMAR_TREE_NONE;
    struct grammar_tree_range *all = arena_zalloc_n(&t->arena, n + 1, sizeof(*all));
    struct grammar_tree_range *out = arena_zalloc_n(&t->arena, n + 1, sizeof(*out));
    uint32_t n_all = 0, n_out = 0;
    if (!all || !out)
        return no_memory(t);
    if (n > 0)
        memcpy(all, r, n * sizeof(*all));
    qsort(all, n, sizeof(*all), by_lo);
    for (size_t i = 0; i < n; i++) {
        if (all[i].lo > all[i].hi)
            continue;
        if (n_all > 0 && all[i].lo <= all[n_all - 1].hi + 1)
            all[n_all - 1].hi = all[i].hi > all[n_all - 1].hi ? all[i].hi : all[n_all - 1].hi;
        else
            all[n_all++] = all[i];
    }
    uint32_t from = 0;
    for (uint32_t i = 0; negated && i < n_all; i++) {
        if (all[i].lo > from)
            out[n_out++] = (struct grammar_tree_range){from, all[i].lo - 1};
        from = all[i].hi + 1;
    }
    if (negated && from <= GRAMMAR_TREE_MAX_CODE)
        out[n_out++] = (struct grammar_tree_range){from, GRAMMAR_TREE_MAX_CODE};
    return add(t, &(struct grammar_tree_node){.kind = GRAMMAR_TREE_CLASS,
                                              .n = negated ? n_out : n_all,
                                              .ranges = negated ? out : all});
}

static uint32_t add_list(struct grammar_tree *t, enum grammar_tree_kind kind,
                         const struct grammar_tree_list *l)
{
    if (l->n == 1)
        return l->items[0];
    return add(t, &(struct grammar_tree_node){.kind = kind, .n = l->n, .children = l->items});
}

uint32_t grammar_tree_sequence(struct grammar_tree *t, const struct grammar_tree_list *l)
{
    return add_list(t, GRAMMAR_TREE_SEQUENCE, l);
}

uint32_t grammar_tree_either(struct grammar_tree *t, const struct grammar_tree_list *l)
{
    return add_list(t, GRAMMAR_TREE_EITHER, l);
}

uint32_t grammar_tree_sequence3(struct grammar_tree *t, uint32_t a, uint32_t b, uint32_t c)
{
    struct grammar_tree_list l = {0};
    grammar_tree_push(t, &l, a);
    if (b != GRAMMAR_TREE_NONE)
        grammar_tree_push(t, &l, b);
    if (c != GRAMMAR_TREE_NONE)
        grammar_tree_push(t, &l, c);
    return t->rc < 0 ? GRAMMAR_TREE_NONE : grammar_tree_sequence(t, &l);
}

uint32_t grammar_tree_either2(struct grammar_tree *t, uint32_t a, uint32_t b)
{
    struct grammar_tree_list l = {0};
    grammar_tree_push(t, &l, a);
    grammar_tree_push(t, &l, b);
    return t->rc < 0 ? GRAMMAR_TREE_NONE : grammar_tree_either(t, &l);
}

uint32_t grammar_tree_repeat(struct grammar_tree *t, uint32_t node, uint32_t min, uint32_t max)
{
    struct grammar_tree_list l = {0};
    if (min > GRAMMAR_TREE_MAX_COUNT ||
        (max > GRAMMAR_TREE_MAX_COUNT && max != GRAMMAR_TREE_UNBOUNDED))
        return grammar_tree_fail(t, SHOAL_ELIMIT, "a repetition counts to more than %u",
                                 GRAMMAR_TREE_MAX_COUNT);
    if (min > max)
        return grammar_tree_either(t, &l); /* nothing matches */
    grammar_tree_push(t, &l, node);
    if (min == 1 && max == 1)
        return node;
    return add(
        t, &(struct grammar_tree_node){
               .kind = GRAMMAR_TREE_REPEAT, .n = 1, .min = min, .max = max, .children = l.items});
}

uint32_t grammar_tree_add_rule(struct grammar_tree *t, const char *name, size_t name_bytes)
{
    const char *copy = NULL;
    if (t->rc < 0)
        return GRAMMAR_TREE_NONE;
    if (t->n_rules == GRAMMAR_TREE_MAX_NODES)
        return grammar_tree_fail(t, SHOAL_ELIMIT, "the grammar has more than %u rules",
                                 GRAMMAR_TREE_MAX_NODES);
    if (name && !(copy = arena_printf(&t->arena, "%.*s", (int)name_bytes, name))[0])
        copy = NULL;
    if (!room_make32(&t->rules, &t->cap_rules, t->n_rules, sizeof(*t->rules), 64) ||
        t->arena.rc < 0)
        return no_memory(t);
    t->rules[t->n_rules] = (struct grammar_tree_rule){GRAMMAR_TREE_NONE, copy};
    return t->n_rules++;
}

void grammar_tree_define(struct grammar_tree *t, uint32_t rule, uint32_t node)
{
    if (t->rc == 0)
        t->rules[rule].node = node;
}

uint32_t grammar_tree_call(struct grammar_tree *t, uint32_t rule)
{
    return add(t, &(struct grammar_tree_node){.kind = GRAMMAR_TREE_RULE, .rule = rule});
}
