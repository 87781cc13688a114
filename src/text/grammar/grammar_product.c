/* grammar_product.c - see grammar_product.h. */
#include "text/grammar/grammar_product.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "text/grammar/grammar_regex.h"
#include "text/grammar/grammar_tree.h"

#define NONE GRAMMAR_TREE_NONE
#define UNBOUNDED GRAMMAR_TREE_UNBOUNDED
#define MAX_NFA 20000u
#define MAX_DFA 6000u
#define MAX_WORK 8000000u       /* states examined while the automaton is built */
#define MAX_TREE_WORK 40000000u /* for all automata of a grammar */
#define FIXED_WORK 4000u        /* fixed cost of an automaton: clearing its memory */
#define MAX_BYTES ((size_t)64 << 20)
#define MAX_POINTS 2048u /* where ranges of one state begin or end */

/* A state of one expression: it reads a character, or leads on without one. */
struct nfa_state {
    const struct grammar_tree_range *ranges; /* NULL: reads nothing */
    uint32_t n;
    uint32_t a, b; /* next ones; NONE: none */
    uint8_t part;
};

struct dfa_edge {
    uint32_t lo, hi, to;
};

struct dfa_state {
    const uint32_t *ids; /* of the expressions' states, in order; the first one is a count */
    uint32_t n;
    struct dfa_edge *edges;
    uint32_t n_edges;
    bool accepts, lives;
    uint32_t rule;
};

struct product {
    struct grammar_tree *t;
    const struct grammar_product *p;
    struct arena arena;
    struct nfa_state *nfa;
    uint32_t n_nfa;
    uint32_t start[GRAMMAR_PRODUCT_MAX_PARTS], accept[GRAMMAR_PRODUCT_MAX_PARTS];
    struct dfa_state *dfa;
    uint32_t n_dfa;
    struct strmap by_ids;
    uint32_t *marks, stamp; /* marks NFA states that are already in the set */
    uint32_t *set, n_set;   /* under construction: the count, then states */
    uint32_t *todo;
    uint64_t work;
    int rc;
};

int grammar_product_add(struct grammar_product *p, uint32_t node, bool without)
{
    if (p->n == GRAMMAR_PRODUCT_MAX_PARTS)
        return SHOAL_ELIMIT;
    p->parts[p->n++] = (struct grammar_product_part){node, without};
    return 0;
}

static uint32_t too_large(struct product *w)
{
    if (w->rc == 0)
        w->rc = w->arena.rc == SHOAL_ENOMEM ? SHOAL_ENOMEM : SHOAL_ELIMIT;
    return 0;
}

/* ---- the expressions ---- */

static uint32_t nfa_new(struct product *w, uint8_t part, uint32_t a, uint32_t b)
{
    if (w->n_nfa == MAX_NFA)
        return too_large(w);
    w->nfa[w->n_nfa] = (struct nfa_state){.a = a, .b = b, .part = part};
    return w->n_nfa++;
}

static uint32_t nfa_node(struct product *w, uint8_t part, uint32_t node, uint32_t to);

static uint32_t nfa_class(struct product *w, uint8_t part, const struct grammar_tree_range *r,
                          uint32_t n, uint32_t to)
{
    uint32_t s = nfa_new(w, part, to, NONE);
    if (w->rc == 0) {
        w->nfa[s].ranges = r;
        w->nfa[s].n = n;
    }
    return s;
}

static uint32_t nfa_literal(struct product *w, uint8_t part, const struct grammar_tree_node *n,
                            uint32_t to)
{
    struct grammar_tree_range *r = arena_zalloc_n(&w->arena, n->n + 1u, sizeof(*r));
    const uint8_t *p = (const uint8_t *)n->bytes, *end = p + n->n;
    uint32_t k = 0;
    if (!r)
        return too_large(w);
    while (p < end) {
        uint32_t cp = 0;
        unsigned bytes = utf8_decode(p, end, &cp);
        if (bytes == 0)
            return too_large(w);
        r[k++] = (struct grammar_tree_range){cp, cp};
        p += bytes;
    }
    while (k-- > 0)
        to = nfa_class(w, part, &r[k], 1, to);
    return to;
}

static uint32_t nfa_repeat(struct product *w, uint8_t part, const struct grammar_tree_node *n,
                           uint32_t to)
{
    uint32_t at = to;
    if (n->max == UNBOUNDED) {
        at = nfa_new(w, part, NONE, to);
        uint32_t body = nfa_node(w, part, n->children[0], at);
        if (w->rc == 0)
            w->nfa[at].a = body;
    }
    for (uint32_t i = n->min; n->max != UNBOUNDED && i < n->max && w->rc == 0; i++)
        at = nfa_new(w, part, nfa_node(w, part, n->children[0], at), to);
    for (uint32_t i = 0; i < n->min && w->rc == 0; i++)
        at = nfa_node(w, part, n->children[0], at);
    return at;
}

/* The state where a node begins that leads to another state. */
static uint32_t nfa_node(struct product *w, uint8_t part, uint32_t node, uint32_t to)
{
    if (w->rc < 0)
        return 0;
    const struct grammar_tree_node *n = &w->t->nodes[node];
    uint32_t at;
    switch (n->kind) {
    case GRAMMAR_TREE_LITERAL:
        return nfa_literal(w, part, n, to);
    case GRAMMAR_TREE_CLASS:
        return nfa_class(w, part, n->ranges, n->n, to);
    case GRAMMAR_TREE_SEQUENCE:
        for (uint32_t i = n->n; i-- > 0;)
            to = nfa_node(w, part, n->children[i], to);
        return to;
    case GRAMMAR_TREE_EITHER:
        at = nfa_new(w, part, NONE, NONE); /* no branches: it leads nowhere */
        for (uint32_t i = 0; i < n->n; i++)
            at = nfa_new(w, part, nfa_node(w, part, n->children[i], to), at);
        return at;
    case GRAMMAR_TREE_REPEAT:
        return nfa_repeat(w, part, n, to);
    case GRAMMAR_TREE_RULE:
        break;
    }
    return too_large(w); /* rules may lead to themselves */
}

/* ---- sets of states ---- */

static void set_begin(struct product *w, uint32_t count)
{
    w->stamp++;
    w->set[0] = count;
    w->n_set = 1;
}

/* Adds a state and all states reachable from it without a character. */
static void set_add(struct product *w, uint32_t id)
{
    uint32_t n = 0;
    w->todo[n++] = id;
    while (n > 0) {
        id = w->todo[--n];
        const struct nfa_state *s = &w->nfa[id];
        if (w->marks[id] == w->stamp)
            continue;
        w->marks[id] = w->stamp;
        w->work++;
        if (s->ranges || id == w->accept[s->part]) {
            w->set[w->n_set++] = id;
            continue;
        }
        if (s->b != NONE)
            w->todo[n++] = s->b;
        if (s->a != NONE)
            w->todo[n++] = s->a;
    }
}

/* Whether every expression that must match still can match. */
static bool set_lives(const struct product *w)
{
    bool alive[GRAMMAR_PRODUCT_MAX_PARTS] = {false};
    for (uint32_t i = 1; i < w->n_set; i++)
        alive[w->nfa[w->set[i]].part] = true;
    for (uint32_t i = 0; i < w->p->n; i++)
        if (!w->p->parts[i].without && !alive[i])
            return false;
    return true;
}

static bool set_accepts(const struct product *w)
{
    bool matches[GRAMMAR_PRODUCT_MAX_PARTS] = {false};
    for (uint32_t i = 1; i < w->n_set; i++)
        if (w->set[i] == w->accept[w->nfa[w->set[i]].part])
            matches[w->nfa[w->set[i]].part] = true;
    for (uint32_t i = 0; i < w->p->n; i++)
        if (matches[i] == w->p->parts[i].without)
            return false;
    return w->set[0] >= w->p->min;
}

/* Returns the automaton's state for the set; NONE: nothing can follow there. */
static uint32_t set_end(struct product *w)
{
    uint32_t id = 0;
    if (!set_lives(w))
        return NONE;
    qsort(w->set + 1, w->n_set - 1, sizeof(*w->set), order_u32);
    const size_t bytes = w->n_set * sizeof(*w->set);
    if (strmap_get(&w->by_ids, (const char *)w->set, bytes, &id))
        return id;
    uint32_t *ids = arena_zalloc(&w->arena, bytes);
    if (!ids || w->n_dfa == MAX_DFA)
        return too_large(w);
    memcpy(ids, w->set, bytes);
    id = w->n_dfa++;
    w->dfa[id] = (struct dfa_state){.ids = ids, .n = w->n_set, .accepts = set_accepts(w)};
    int rc = strmap_put(&w->by_ids, (const char *)ids, bytes, id);
    if (rc < 0)
        w->rc = rc;
    return id;
}

/* ---- the automaton ---- */

/* Where the sets of characters that may follow begin or end: between two points all are alike. */
static uint32_t points_of(struct product *w, const struct dfa_state *s, uint32_t *points)
{
    uint32_t n = 0, k = 0;
    for (uint32_t i = 1; i < s->n; i++) {
        const struct nfa_state *x = &w->nfa[s->ids[i]];
        for (uint32_t j = 0; j < x->n; j++) {
            if (n + 2 > MAX_POINTS)
                return too_large(w);
            points[n++] = x->ranges[j].lo;
            points[n++] = x->ranges[j].hi + 1;
        }
    }
    if (n == 0)
        return 0;
    qsort(points, n, sizeof(*points), order_u32);
    for (uint32_t i = 0; i < n; i++)
        if (k == 0 || points[k - 1] != points[i])
            points[k++] = points[i];
    return k;
}

static bool reads(const struct nfa_state *s, uint32_t c)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (c >= s->ranges[i].lo && c <= s->ranges[i].hi)
            return true;
    return false;
}

static void dfa_follow(struct product *w, uint32_t id)
{
    uint32_t points[MAX_POINTS], count = w->dfa[id].ids[0];
    const struct dfa_state s = w->dfa[id];
    const uint32_t n = points_of(w, &s, points);
    const bool counts = w->p->max != UNBOUNDED || count < w->p->min;
    if (w->p->max != UNBOUNDED && count == w->p->max)
        return;
    struct dfa_edge *edges = arena_zalloc_n(&w->arena, n + 1u, sizeof(*edges));
    uint32_t k = 0;
    if (!edges) {
        too_large(w);
        return;
    }
    for (uint32_t i = 0; i + 1 < n && w->rc == 0; i++) {
        set_begin(w, counts ? count + 1 : count);
        for (uint32_t j = 1; j < s.n; j++, w->work++)
            if (reads(&w->nfa[s.ids[j]], points[i]))
                set_add(w, w->nfa[s.ids[j]].a);
        uint32_t to = set_end(w);
        if (to == NONE)
            continue;
        if (k > 0 && edges[k - 1].to == to && edges[k - 1].hi + 1 == points[i])
            edges[k - 1].hi = points[i + 1] - 1;
        else
            edges[k++] = (struct dfa_edge){points[i], points[i + 1] - 1, to};
    }
    w->dfa[id].edges = edges;
    w->dfa[id].n_edges = k;
    if (w->work > MAX_WORK)
        too_large(w);
}

/* Marks the states from which a text can end. */
static void dfa_prune(struct product *w)
{
    bool changed = true;
    for (uint32_t i = 0; i < w->n_dfa; i++)
        w->dfa[i].lives = w->dfa[i].accepts;
    while (changed && w->rc == 0) {
        changed = false;
        for (uint32_t i = w->n_dfa; i-- > 0;)
            for (uint32_t j = 0; j < w->dfa[i].n_edges && !w->dfa[i].lives; j++)
                if (w->dfa[w->dfa[i].edges[j].to].lives)
                    changed = w->dfa[i].lives = true;
        w->work += w->n_dfa;
        if (w->work > MAX_WORK)
            too_large(w);
    }
}

/* A character of any of the state's edges to one other, then that state. */
static uint32_t emit_edges(struct product *w, const struct dfa_state *s, uint32_t first)
{
    struct grammar_tree_range *r = arena_zalloc_n(&w->arena, s->n_edges, sizeof(*r));
    const uint32_t to = s->edges[first].to;
    uint32_t n = 0;
    if (!r)
        return too_large(w);
    for (uint32_t i = first; i < s->n_edges; i++)
        if (s->edges[i].to == to)
            r[n++] = (struct grammar_tree_range){s->edges[i].lo, s->edges[i].hi};
    uint32_t node = grammar_tree_class(w->t, r, n, false);
    if (w->p->flags & GRAMMAR_REGEX_JSON)
        node = grammar_regex_json_class(w->t, node, w->p->flags);
    return grammar_tree_sequence3(w->t, node, grammar_tree_call(w->t, w->dfa[to].rule), NONE);
}

static uint32_t emit(struct product *w)
{
    for (uint32_t i = 0; i < w->n_dfa; i++)
        if (w->dfa[i].lives)
            w->dfa[i].rule = grammar_tree_add_rule(w->t, NULL, 0);
    for (uint32_t i = 0; i < w->n_dfa && grammar_tree_rc(w->t) == 0; i++) {
        const struct dfa_state *s = &w->dfa[i];
        struct grammar_tree_list l = {0};
        if (!s->lives)
            continue;
        if (s->accepts)
            grammar_tree_push(w->t, &l, grammar_tree_text(w->t, ""));
        for (uint32_t j = 0; j < s->n_edges && w->rc == 0; j++) {
            bool again = !w->dfa[s->edges[j].to].lives;
            for (uint32_t k = 0; k < j && !again; k++)
                again = s->edges[k].to == s->edges[j].to;
            if (!again)
                grammar_tree_push(w->t, &l, emit_edges(w, s, j));
        }
        if (w->rc < 0 || grammar_tree_rc(w->t) < 0)
            return NONE;
        grammar_tree_define(w->t, s->rule, grammar_tree_either(w->t, &l));
    }
    return grammar_tree_call(w->t, w->dfa[0].rule);
}

static void build(struct product *w)
{
    w->nfa = arena_zalloc_n(&w->arena, MAX_NFA, sizeof(*w->nfa));
    w->dfa = arena_zalloc_n(&w->arena, MAX_DFA, sizeof(*w->dfa));
    w->marks = arena_zalloc_n(&w->arena, MAX_NFA, sizeof(*w->marks));
    w->set = arena_zalloc_n(&w->arena, MAX_NFA + 1u, sizeof(*w->set));
    w->todo = arena_zalloc_n(&w->arena, 2u * MAX_NFA + 1u, sizeof(*w->todo));
    if (!w->nfa || !w->dfa || !w->marks || !w->set || !w->todo) {
        w->rc = SHOAL_ENOMEM;
        return;
    }
    for (uint8_t i = 0; i < w->p->n && w->rc == 0; i++) {
        w->accept[i] = nfa_new(w, i, NONE, NONE);
        w->start[i] = nfa_node(w, i, w->p->parts[i].node, w->accept[i]);
    }
    set_begin(w, 0);
    for (uint32_t i = 0; i < w->p->n && w->rc == 0; i++)
        set_add(w, w->start[i]);
    if (w->rc == 0)
        set_end(w);
    for (uint32_t i = 0; i < w->n_dfa && w->rc == 0; i++)
        dfa_follow(w, i);
    dfa_prune(w);
}

int grammar_product_build(struct grammar_tree *t, const struct grammar_product *p, uint32_t *node)
{
    struct product w = {.t = t, .p = p};
    const struct grammar_tree_list none = {0};
    *node = NONE;
    if (grammar_tree_rc(t) < 0)
        return grammar_tree_rc(t);
    if (t->work > MAX_TREE_WORK)
        return SHOAL_ELIMIT;
    if (p->min > p->max) {
        *node = grammar_tree_either(t, &none);
        return grammar_tree_rc(t);
    }
    if (strmap_init(&w.by_ids, 256) < 0) {
        grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a grammar");
        return SHOAL_ENOMEM;
    }
    arena_init(&w.arena, MAX_BYTES);
    build(&w);
    if (w.rc == 0)
        *node = w.n_dfa == 0 || !w.dfa[0].lives ? grammar_tree_either(t, &none) : emit(&w);
    t->work += w.work + w.n_nfa + FIXED_WORK;
    arena_fini(&w.arena);
    strmap_fini(&w.by_ids);
    if (w.rc == SHOAL_ENOMEM)
        grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a grammar");
    return w.rc < 0 ? w.rc : grammar_tree_rc(t);
}
