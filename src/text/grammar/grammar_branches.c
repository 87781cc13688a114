/* grammar_branches.c - see grammar_branches.h. */
#include "text/grammar/grammar_branches.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/grammar/grammar_tree.h"

#define MAX_BYTES ((size_t)128 << 20) /* of one alternative's branches */
#define MAX_JOINED 1024u              /* bytes of a text that is joined from several nodes */
#define MAX_RULES 4u                  /* rules on the way to a text */

/* The only text of a node, if it has just one; NULL: it has several, or is not that simple. */
static const uint8_t *text_of(const struct grammar_tree *t, uint32_t node, uint8_t out[4],
                              uint32_t *n, uint32_t rules)
{
    const struct grammar_tree_node *s = &t->nodes[node];
    switch (s->kind) {
    case GRAMMAR_TREE_LITERAL:
        *n = s->n;
        return (const uint8_t *)s->bytes;
    case GRAMMAR_TREE_CLASS:
        if (s->n != 1 || s->ranges[0].lo != s->ranges[0].hi ||
            (s->ranges[0].lo >= 0xd800 && s->ranges[0].lo <= 0xdfff))
            return NULL;
        *n = utf8_encode((char *)out, s->ranges[0].lo);
        return out;
    case GRAMMAR_TREE_RULE:
        if (rules == 0)
            return NULL;
        return text_of(t, t->rules[s->rule].node, out, n, rules - 1);
    default:
        return NULL;
    }
}

/* Joins the texts of a branch's first nodes, as far as each has just one. */
static int read_branch(struct grammar_branches *all, const struct grammar_tree *t,
                       const uint32_t *nodes, uint32_t n_nodes, struct grammar_branch *out)
{
    uint8_t joined[MAX_JOINED], part[4];
    uint32_t n = 0, i = 0;
    const uint8_t *only = NULL;
    for (; i < n_nodes; i++) {
        uint32_t n_part = 0;
        const uint8_t *p = text_of(t, nodes[i], part, &n_part, MAX_RULES);
        if (!p)
            break;
        if (i == 0 && p != part && n_nodes == 1) { /* no copy of a literal that is all of it */
            only = p;
            n = n_part;
            continue;
        }
        if (n_part > MAX_JOINED - n)
            break;
        memcpy(joined + n, p, n_part);
        n += n_part;
    }
    *out = (struct grammar_branch){only, nodes + i, n, n_nodes - i};
    if (!only && n > 0)
        out->text = (const uint8_t *)arena_copy(&all->arena, (const char *)joined, n);
    return out->text || n == 0 ? 0 : SHOAL_ENOMEM;
}

static int by_text(const void *a, const void *b)
{
    const struct grammar_branch *x = a, *y = b;
    const uint32_t n = x->n < y->n ? x->n : y->n;
    const int order = n > 0 ? memcmp(x->text, y->text, n) : 0;
    if (order != 0)
        return order;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->n_rest < y->n_rest ? -1 : x->n_rest > y->n_rest;
}

int grammar_branches_init(struct grammar_branches *all, const struct grammar_tree *t,
                          const struct grammar_tree_node *either)
{
    int rc = 0;
    *all = (struct grammar_branches){.n = 0};
    arena_init(&all->arena, MAX_BYTES);
    all->list = arena_zalloc_n(&all->arena, either->n + 1, sizeof(*all->list));
    for (uint32_t i = 0; i < either->n && all->list && rc == 0; i++) {
        const struct grammar_tree_node *s = &t->nodes[either->children[i]];
        const bool sequence = s->kind == GRAMMAR_TREE_SEQUENCE;
        rc = read_branch(all, t, sequence ? s->children : &either->children[i], sequence ? s->n : 1,
                         &all->list[i]);
    }
    if (!all->list || rc < 0)
        return all->arena.rc == SHOAL_ELIMIT ? SHOAL_ELIMIT : SHOAL_ENOMEM;
    all->n = either->n;
    qsort(all->list, all->n, sizeof(*all->list), by_text);
    return 0;
}

void grammar_branches_fini(struct grammar_branches *all)
{
    arena_fini(&all->arena);
}
