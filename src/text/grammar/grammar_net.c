/* grammar_net.c - see grammar_net.h. */
#include "text/grammar/grammar_net.h"

#include <string.h>

#include "base/mem.h"
#include "base/room.h"
#include "text/grammar/grammar_branches.h"
#include "text/grammar/grammar_tree.h"

#define MAX_DEPTH 1024u /* depth of the tree */
#define UNROLL 4u       /* longer repetitions are counted while they run */
#define MAX_EDGES (4u * GRAMMAR_NET_MAX_STATES)
#define MAX_TEXTS ((uint32_t)32 << 20) /* bytes */
#define NO_EDGE UINT32_MAX

struct build_edge {
    struct grammar_net_edge e;
    uint32_t next; /* next edge of the same state */
};

struct build_state {
    uint32_t first, last;
};

struct build {
    const struct grammar_tree *t;
    struct err *e;
    int rc;
    struct build_state *states;
    struct build_edge *edges;
    uint32_t n_states, cap_states, n_edges, cap_edges;
    uint32_t *starts, *ends; /* of rules; those after the tree's rules are bodies of repetitions */
    uint32_t n_rules, cap_rules;
    uint8_t *texts;
    uint32_t n_text_bytes, cap_texts;
    uint32_t *filled;   /* [rules of the tree]: the rule of its texts that are not empty, or 0 */
    uint32_t *unfilled; /* rules of the tree whose filled ones are not built yet */
    uint32_t n_unfilled;
    bool *nullable; /* of nodes of the tree */
    bool *lives;    /* states from which the end of the rule can be reached */
    uint32_t depth;
};

static void fail(struct build *b, int code, const char *msg)
{
    if (b->rc == 0)
        b->rc = err_set(b->e, code, "%s", msg);
}

static uint32_t new_state(struct build *b)
{
    if (b->rc < 0)
        return 0;
    if (b->n_states == GRAMMAR_NET_MAX_STATES) {
        fail(b, SHOAL_ELIMIT,
             "the grammar is too large: use fewer rules or smaller repetition counts");
        return 0;
    }
    if (!room_make32(&b->states, &b->cap_states, b->n_states, sizeof(*b->states), 256)) {
        fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
        return 0;
    }
    b->states[b->n_states] = (struct build_state){NO_EDGE, NO_EDGE};
    return b->n_states++;
}

static void new_edge(struct build *b, uint32_t from, struct grammar_net_edge e)
{
    if (b->rc < 0)
        return;
    if (b->n_edges == MAX_EDGES) {
        fail(b, SHOAL_ELIMIT, "the grammar is too large: use fewer rules or characters");
        return;
    }
    if (!room_make32(&b->edges, &b->cap_edges, b->n_edges, sizeof(*b->edges), 256)) {
        fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
        return;
    }
    b->edges[b->n_edges] = (struct build_edge){e, NO_EDGE};
    struct build_state *s = &b->states[from];
    if (s->last == NO_EDGE)
        s->first = b->n_edges;
    else
        b->edges[s->last].next = b->n_edges;
    s->last = b->n_edges++;
}

static void new_empty(struct build *b, uint32_t from, uint32_t to)
{
    new_edge(b, from, (struct grammar_net_edge){.kind = GRAMMAR_NET_EMPTY, .to = to});
}

static void new_bytes(struct build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi)
{
    new_edge(b, from,
             (struct grammar_net_edge){
                 .kind = GRAMMAR_NET_BYTES, .lo = (uint8_t)lo, .hi = (uint8_t)hi, .to = to});
}

/* A path that reads n > 0 bytes. However long it is, it takes one state. */
static void new_text(struct build *b, uint32_t from, uint32_t to, const uint8_t *p, uint32_t n)
{
    const uint32_t at = n > 1 ? new_state(b) : to;
    new_bytes(b, from, at, p[0], p[0]);
    if (n == 2)
        new_bytes(b, at, to, p[1], p[1]);
    if (n <= 2)
        return;
    const uint32_t rest = n - 1, offset = b->n_text_bytes;
    if (b->rc == 0 && rest > MAX_TEXTS - offset)
        fail(b, SHOAL_ELIMIT, "the grammar is too large: use fewer or shorter texts");
    while (b->rc == 0 && offset + rest > b->cap_texts)
        if (!room_make32(&b->texts, &b->cap_texts, b->cap_texts, 1, 256))
            fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
    if (b->rc < 0)
        return;
    memcpy(b->texts + offset, p + 1, rest);
    b->n_text_bytes += rest;
    new_edge(
        b, at,
        (struct grammar_net_edge){.kind = GRAMMAR_NET_TEXT, .to = to, .min = offset, .max = rest});
}

static uint32_t new_rule(struct build *b)
{
    uint32_t cap = b->cap_rules;
    if (b->rc < 0)
        return 0;
    if (!room_make32(&b->starts, &b->cap_rules, b->n_rules, sizeof(*b->starts), 256) ||
        !room_make32(&b->ends, &cap, b->n_rules, sizeof(*b->ends), 256)) {
        fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
        return 0;
    }
    uint32_t start = new_state(b), end = new_state(b);
    b->starts[b->n_rules] = start;
    b->ends[b->n_rules] = end;
    return b->n_rules++;
}

/* ---- classes: code points to UTF-8 ---- */

/* Adds code points from lo to hi whose encodings have n bytes; each byte takes all values between
 * those of lo and hi, independently of the others. */
static void add_encoded(struct build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi,
                        uint32_t n)
{
    static const uint8_t lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    uint32_t at = from;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t shift = 6 * (n - 1 - i), mask = i == 0 ? 0xff : 0x3f,
                 base = i == 0 ? lead[n] : 0x80;
        uint32_t next = i + 1 == n ? to : new_state(b);
        new_bytes(b, at, next, base | (lo >> shift & mask), base | (hi >> shift & mask));
        at = next;
    }
}

/* Splits a range until every byte of the encoding varies independently. */
static void add_split(struct build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi,
                      uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t m = (1u << (6 * i)) - 1;
        if ((lo & ~m) == (hi & ~m))
            continue;
        if ((lo & m) != 0) {
            add_split(b, from, to, lo, lo | m, n);
            add_split(b, from, to, (lo | m) + 1, hi, n);
            return;
        }
        if ((hi & m) != m) {
            add_split(b, from, to, lo, (hi & ~m) - 1, n);
            add_split(b, from, to, hi & ~m, hi, n);
            return;
        }
    }
    add_encoded(b, from, to, lo, hi, n);
}

static void add_range(struct build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi)
{
    static const struct {
        uint32_t lo, hi, n;
    } parts[] = {{0, 0x7f, 1},
                 {0x80, 0x7ff, 2},
                 {0x800, 0xd7ff, 3},
                 {0xe000, 0xffff, 3},
                 {0x10000, 0x10ffff, 4}}; /* without surrogates */
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint32_t l = lo > parts[i].lo ? lo : parts[i].lo, h = hi < parts[i].hi ? hi : parts[i].hi;
        if (l <= h)
            add_split(b, from, to, l, h, parts[i].n);
    }
}

/* ---- nodes ---- */

static void build_node(struct build *b, uint32_t node, uint32_t from, uint32_t to);
static void build_filled(struct build *b, uint32_t node, uint32_t from, uint32_t to);

/* min to max texts of a node that are not empty. */
static void build_counted(struct build *b, uint32_t node, uint32_t min, uint32_t max, uint32_t from,
                          uint32_t to)
{
    uint32_t rule = new_rule(b), state = new_state(b);
    if (b->rc < 0)
        return;
    new_empty(b, from, state);
    new_edge(b, state,
             (struct grammar_net_edge){
                 .kind = GRAMMAR_NET_COUNT, .to = to, .rule = rule, .min = min, .max = max});
    build_filled(b, node, b->starts[rule], b->ends[rule]);
}

static void build_repeat(struct build *b, const struct grammar_tree_node *n, uint32_t from,
                         uint32_t to)
{
    const bool open = n->max == GRAMMAR_TREE_UNBOUNDED;
    /* Where a text may be empty, fewer than the smallest count do as well. */
    const uint32_t min = b->nullable[n->children[0]] ? 0 : n->min;
    if ((open ? min : n->max) > UNROLL) {
        build_counted(b, n->children[0], min, n->max, from, to);
        return;
    }
    uint32_t at = new_state(b);
    new_empty(b, from, at);
    for (uint32_t i = 0; i < min && b->rc == 0; i++) {
        uint32_t next = new_state(b);
        build_node(b, n->children[0], at, next);
        at = next;
    }
    if (open) {
        uint32_t loop = new_state(b), end = new_state(b);
        new_empty(b, at, loop);
        build_node(b, n->children[0], loop, end);
        new_empty(b, end, loop);
        at = loop;
    }
    for (uint32_t i = min; !open && i < n->max && b->rc == 0; i++) {
        uint32_t next = new_state(b);
        new_empty(b, at, to);
        build_node(b, n->children[0], at, next);
        at = next;
    }
    new_empty(b, at, to);
}

/* One node after the other. */
static void build_nodes(struct build *b, const uint32_t *nodes, uint32_t n, uint32_t from,
                        uint32_t to)
{
    for (uint32_t i = 0; i < n && b->rc == 0; i++) {
        const uint32_t next = i + 1 == n ? to : new_state(b);
        build_node(b, nodes[i], from, next);
        from = next;
    }
    if (n == 0)
        new_empty(b, from, to);
}

/* Branches in order, which have their first `at` bytes in common, as a tree of what they have in
 * common: at any place only a few of them are left, however many there are. */
static void build_branches(struct build *b, const struct grammar_branch *list, uint32_t n,
                           uint32_t at, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0, last; i < n && b->rc == 0; i = last) {
        const struct grammar_branch *one = &list[i];
        last = i + 1;
        if (one->n == at) {
            build_nodes(b, one->rest, one->n_rest, from, to);
            continue;
        }
        while (last < n && list[last].text[at] == one->text[at])
            last++;
        const struct grammar_branch *far =
            &list[last - 1]; /* they are sorted: the most different */
        uint32_t common = at + 1;
        while (common < one->n && one->text[common] == far->text[common])
            common++;
        const bool whole = one->n == common && far->n == common && one->n_rest + far->n_rest == 0;
        const uint32_t next = whole ? to : new_state(b);
        new_text(b, from, next, one->text + at, common - at);
        if (!whole)
            build_branches(b, one, last - i, common, next, to);
    }
}

static void build_either(struct build *b, const struct grammar_tree_node *n, uint32_t from,
                         uint32_t to)
{
    struct grammar_branches all;
    const int rc = grammar_branches_init(&all, b->t, n);
    if (rc < 0)
        fail(b, rc,
             rc == SHOAL_ENOMEM ? "out of memory for a grammar" : "the grammar is too large");
    else
        build_branches(b, all.list, all.n, 0, from, to);
    grammar_branches_fini(&all);
}

static void build_kind(struct build *b, const struct grammar_tree_node *n, uint32_t from,
                       uint32_t to)
{
    switch (n->kind) {
    case GRAMMAR_TREE_LITERAL:
        if (n->n == 0)
            new_empty(b, from, to);
        else
            new_text(b, from, to, (const uint8_t *)n->bytes, n->n);
        break;
    case GRAMMAR_TREE_CLASS:
        for (uint32_t i = 0; i < n->n && b->rc == 0; i++)
            add_range(b, from, to, n->ranges[i].lo, n->ranges[i].hi);
        break;
    case GRAMMAR_TREE_SEQUENCE:
        build_nodes(b, n->children, n->n, from, to);
        break;
    case GRAMMAR_TREE_EITHER:
        build_either(b, n, from, to);
        break;
    case GRAMMAR_TREE_REPEAT:
        build_repeat(b, n, from, to);
        break;
    case GRAMMAR_TREE_RULE:
        new_edge(b, from,
                 (struct grammar_net_edge){.kind = GRAMMAR_NET_CALL, .to = to, .rule = n->rule});
        break;
    }
}

/* Adds the paths from one state to another that a node's texts take. Neither state gets an edge
 * back from inside. */
static void build_node(struct build *b, uint32_t node, uint32_t from, uint32_t to)
{
    if (b->rc < 0)
        return;
    if (++b->depth > MAX_DEPTH)
        fail(b, SHOAL_ELIMIT, "the grammar is nested too deeply");
    else
        build_kind(b, &b->t->nodes[node], from, to);
    b->depth--;
}

/* ---- texts that are not empty ---- */

/* Every child may be empty: after those that were, one is not, and the others follow. */
static void fill_sequence(struct build *b, const struct grammar_tree_node *n, uint32_t from,
                          uint32_t to)
{
    uint32_t full = new_state(b); /* where something was read */
    for (uint32_t i = 0; i < n->n && b->rc == 0; i++) {
        const uint32_t next = i + 1 == n->n ? to : new_state(b);
        build_filled(b, n->children[i], from, next);
        if (i > 0)
            build_node(b, n->children[i], full, next);
        if (i + 1 == n->n)
            break;
        const uint32_t empty = new_state(b);
        new_empty(b, from, empty);
        from = empty;
        full = next;
    }
}

/* The rule of a rule's texts that are not empty; it is built later, so that rules may be recursive.
 */
static uint32_t filled_rule(struct build *b, uint32_t rule)
{
    if (b->filled[rule] == 0) {
        const uint32_t own = new_rule(b);
        if (b->rc < 0)
            return 0;
        b->filled[rule] = own;
        b->unfilled[b->n_unfilled++] = rule;
    }
    return b->filled[rule];
}

static void fill_kind(struct build *b, const struct grammar_tree_node *n, uint32_t from,
                      uint32_t to)
{
    switch (n->kind) {
    case GRAMMAR_TREE_LITERAL: /* it is empty */
    case GRAMMAR_TREE_CLASS:
        break;
    case GRAMMAR_TREE_SEQUENCE:
        fill_sequence(b, n, from, to);
        break;
    case GRAMMAR_TREE_EITHER:
        for (uint32_t i = 0; i < n->n && b->rc == 0; i++)
            build_filled(b, n->children[i], from, to);
        break;
    case GRAMMAR_TREE_REPEAT:
        if (n->max > 0)
            build_counted(b, n->children[0], 1, n->max, from, to);
        break;
    case GRAMMAR_TREE_RULE:
        new_edge(b, from,
                 (struct grammar_net_edge){
                     .kind = GRAMMAR_NET_CALL, .to = to, .rule = filled_rule(b, n->rule)});
        break;
    }
}

/* As build_node, but without the empty text. */
static void build_filled(struct build *b, uint32_t node, uint32_t from, uint32_t to)
{
    if (b->rc < 0)
        return;
    if (!b->nullable[node]) {
        build_node(b, node, from, to);
        return;
    }
    if (++b->depth > MAX_DEPTH)
        fail(b, SHOAL_ELIMIT, "the grammar is nested too deeply");
    else
        fill_kind(b, &b->t->nodes[node], from, to);
    b->depth--;
}

/* ---- checks ---- */

static bool is_nullable(const struct build *b, const struct grammar_tree_node *n)
{
    switch (n->kind) {
    case GRAMMAR_TREE_LITERAL:
        return n->n == 0;
    case GRAMMAR_TREE_CLASS:
        return false;
    case GRAMMAR_TREE_SEQUENCE:
        for (uint32_t i = 0; i < n->n; i++)
            if (!b->nullable[n->children[i]])
                return false;
        return true;
    case GRAMMAR_TREE_EITHER:
        for (uint32_t i = 0; i < n->n; i++)
            if (b->nullable[n->children[i]])
                return true;
        return false;
    case GRAMMAR_TREE_REPEAT:
        return n->min == 0 || b->nullable[n->children[0]];
    case GRAMMAR_TREE_RULE:
        return b->nullable[b->t->rules[n->rule].node];
    }
    return false;
}

/* Children come before their parents, so few rounds suffice. */
static void find_nullable(struct build *b)
{
    bool changed = true;
    b->nullable = mem_zalloc_n(b->t->n_nodes + 1, sizeof(*b->nullable));
    if (!b->nullable)
        fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
    while (b->rc == 0 && changed) {
        changed = false;
        for (uint32_t i = 0; i < b->t->n_nodes; i++)
            if (!b->nullable[i] && is_nullable(b, &b->t->nodes[i]))
                changed = b->nullable[i] = true;
    }
}

static bool edge_lives(const struct build *b, const struct grammar_net_edge *e)
{
    if (!b->lives[e->to])
        return false;
    if (e->kind == GRAMMAR_NET_CALL || (e->kind == GRAMMAR_NET_COUNT && e->min > 0))
        return b->lives[b->starts[e->rule]];
    return true;
}

static bool state_lives(const struct build *b, uint32_t s)
{
    for (uint32_t i = b->states[s].first; i != NO_EDGE; i = b->edges[i].next)
        if (edge_lives(b, &b->edges[i].e))
            return true;
    return false;
}

/* Which states can reach the end of their rule. */
static void find_lives(struct build *b)
{
    bool changed = true, up = false;
    b->lives = mem_zalloc_n(b->n_states + 1, sizeof(*b->lives));
    if (!b->lives) {
        fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
        return;
    }
    for (uint32_t i = 0; i < b->n_rules; i++)
        b->lives[b->ends[i]] = true;
    while (changed) { /* both ways in turn: most chains go one way */
        changed = false;
        for (uint32_t k = 0; k < b->n_states; k++) {
            uint32_t s = up ? k : b->n_states - 1 - k;
            if (!b->lives[s] && state_lives(b, s))
                changed = b->lives[s] = true;
        }
        up = !up;
    }
}

static const char *rule_name(const struct build *b, uint32_t rule)
{
    for (uint32_t i = 0; rule >= b->t->n_rules && i < b->t->n_rules; i++)
        if (b->filled[i] == rule)
            rule = i;
    return rule < b->t->n_rules && b->t->rules[rule].name ? b->t->rules[rule].name : NULL;
}

/* ---- left recursion ---- */

struct left {
    uint32_t *called; /* rules that begin another one, all lists one after the other */
    uint32_t *from;   /* [n_rules + 1]: where each rule's list begins */
    uint32_t *n_in;   /* how many rules begin with this one */
    uint32_t *mark;   /* [n_states]: 1 + the rule that visited it last */
    uint32_t *todo;   /* [n_states] */
    uint32_t n_called, cap_called;
};

static bool rule_nullable(const struct build *b, uint32_t rule)
{
    /* bodies of counted repetitions and filled rules are never empty */
    return rule < b->t->n_rules && b->nullable[b->t->rules[rule].node];
}

/* Lists the rules that the texts of a rule can begin with. */
static void list_left(struct build *b, struct left *l, uint32_t rule)
{
    uint32_t n = 0;
    l->todo[n++] = b->starts[rule];
    l->mark[b->starts[rule]] = rule + 1;
    while (n > 0 && b->rc == 0) {
        uint32_t s = l->todo[--n];
        for (uint32_t i = b->states[s].first; i != NO_EDGE; i = b->edges[i].next) {
            const struct grammar_net_edge *e = &b->edges[i].e;
            bool calls = e->kind == GRAMMAR_NET_CALL || e->kind == GRAMMAR_NET_COUNT;
            if (calls &&
                room_make32(&l->called, &l->cap_called, l->n_called, sizeof(uint32_t), 256)) {
                l->called[l->n_called++] = e->rule;
                l->n_in[e->rule]++;
            } else if (calls) {
                fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
            }
            bool passes = e->kind == GRAMMAR_NET_EMPTY ||
                          (e->kind == GRAMMAR_NET_COUNT && e->min == 0) ||
                          (e->kind == GRAMMAR_NET_CALL && rule_nullable(b, e->rule));
            if (passes && l->mark[e->to] != rule + 1) {
                l->mark[e->to] = rule + 1;
                l->todo[n++] = e->to;
            }
        }
    }
}

/* Removes rules that no other rule begins with; if none is left in the end, there is no cycle. */
static void refuse_circle(struct build *b, struct left *l)
{
    uint32_t n = 0, n_left = b->n_rules;
    for (uint32_t i = 0; i < b->n_rules; i++)
        if (l->n_in[i] == 0)
            l->todo[n++] = i;
    while (n > 0) {
        uint32_t r = l->todo[--n];
        n_left--;
        for (uint32_t i = l->from[r]; i < l->from[r + 1]; i++)
            if (--l->n_in[l->called[i]] == 0)
                l->todo[n++] = l->called[i];
    }
    for (uint32_t i = 0; n_left > 0 && i < b->n_rules; i++)
        if (l->n_in[i] > 0 && rule_name(b, i)) {
            b->rc = err_set(b->e, SHOAL_EINVAL,
                            "rule %s can begin with itself (left recursion): write it as a "
                            "repetition, or put the recursion at its end",
                            rule_name(b, i));
            return;
        }
    if (n_left > 0)
        fail(b, SHOAL_EINVAL, "a rule can begin with itself (left recursion)");
}

static void check_left(struct build *b)
{
    struct left l = {0};
    if (b->rc < 0)
        return;
    uint32_t most = b->n_states > b->n_rules ? b->n_states : b->n_rules;
    l.from = mem_zalloc_n(b->n_rules + 1, sizeof(*l.from));
    l.n_in = mem_zalloc_n(b->n_rules + 1, sizeof(*l.n_in));
    l.mark = mem_zalloc_n(most + 1, sizeof(*l.mark));
    l.todo = mem_zalloc_n(most + 1, sizeof(*l.todo));
    if (l.from && l.n_in && l.mark && l.todo) {
        for (uint32_t r = 0; r < b->n_rules && b->rc == 0; r++) {
            list_left(b, &l, r);
            l.from[r + 1] = l.n_called;
        }
        if (b->rc == 0)
            refuse_circle(b, &l);
    } else {
        fail(b, SHOAL_ENOMEM, "out of memory for a grammar");
    }
    mem_free(l.called);
    mem_free(l.from);
    mem_free(l.n_in);
    mem_free(l.mark);
    mem_free(l.todo);
}

/* ---- the result ---- */

static void pack_state(const struct build *b, struct grammar_net *net, uint32_t s)
{
    struct grammar_net_state *out = &net->states[s];
    out->edges = net->n_edges;
    for (uint32_t i = b->states[s].first; i != NO_EDGE; i = b->edges[i].next) {
        struct grammar_net_edge e = b->edges[i].e;
        if (!edge_lives(b, &e))
            continue;
        if (e.kind == GRAMMAR_NET_COUNT && !b->lives[b->starts[e.rule]])
            e.kind = GRAMMAR_NET_EMPTY; /* none is allowed, and there cannot be more */
        out->counts = e.kind == GRAMMAR_NET_COUNT;
        out->text = e.kind == GRAMMAR_NET_TEXT;
        out->reads |= e.kind == GRAMMAR_NET_BYTES || e.kind == GRAMMAR_NET_TEXT;
        net->edges[net->n_edges++] = e;
    }
    out->n_edges = net->n_edges - out->edges;
}

static struct grammar_net *pack(struct build *b, uint32_t root)
{
    struct grammar_net *net = mem_zalloc(sizeof(*net));
    if (!net)
        return NULL;
    net->states = mem_zalloc_n(b->n_states + 1, sizeof(*net->states));
    net->edges = mem_zalloc_n(b->n_edges + 1, sizeof(*net->edges));
    net->starts = b->starts;
    net->texts = b->texts;
    net->n_text_bytes = b->n_text_bytes;
    b->starts = NULL;
    b->texts = NULL;
    net->n_states = b->n_states;
    net->n_rules = b->n_rules;
    net->root = root;
    if (!net->states || !net->edges || !net->starts) {
        grammar_net_destroy(net);
        return NULL;
    }
    /* edge_lives looks at the starts */
    b->starts = net->starts;
    for (uint32_t s = 0; s < b->n_states; s++)
        pack_state(b, net, s);
    b->starts = NULL;
    for (uint32_t r = 0; r < b->n_rules; r++)
        net->states[b->ends[r]].final = true;
    return net;
}

int grammar_net_compile(struct grammar_net **out, const struct grammar_tree *t, uint32_t root,
                        struct err *e)
{
    struct build b = {.t = t, .e = e};
    *out = NULL;
    for (uint32_t r = 0; r < t->n_rules; r++)
        new_rule(&b);
    find_nullable(&b);
    b.filled = mem_zalloc_n(t->n_rules + 1, sizeof(*b.filled));
    b.unfilled = mem_zalloc_n(t->n_rules + 1, sizeof(*b.unfilled));
    if (!b.filled || !b.unfilled)
        fail(&b, SHOAL_ENOMEM, "out of memory for a grammar");
    for (uint32_t r = 0; r < t->n_rules && b.rc == 0; r++)
        build_node(&b, t->rules[r].node, b.starts[r], b.ends[r]);
    for (uint32_t i = 0; i < b.n_unfilled && b.rc == 0; i++) { /* the list grows */
        const uint32_t r = b.unfilled[i];
        build_filled(&b, t->rules[r].node, b.starts[b.filled[r]], b.ends[b.filled[r]]);
    }
    check_left(&b);
    if (b.rc == 0)
        find_lives(&b);
    if (b.rc == 0 && !b.lives[b.starts[root]])
        b.rc =
            err_set(e, SHOAL_EINVAL, "no text matches%s%s%s%s", rule_name(&b, root) ? " rule " : "",
                    rule_name(&b, root) ? rule_name(&b, root) : "", t->why_empty[0] ? ": " : "",
                    t->why_empty);
    if (b.rc == 0 && !(*out = pack(&b, root)))
        b.rc = err_set(e, SHOAL_ENOMEM, "out of memory for a grammar");
    mem_free(b.states);
    mem_free(b.edges);
    mem_free(b.starts);
    mem_free(b.ends);
    mem_free(b.texts);
    mem_free(b.filled);
    mem_free(b.unfilled);
    mem_free(b.nullable);
    mem_free(b.lives);
    return b.rc;
}

void grammar_net_destroy(struct grammar_net *net)
{
    if (!net)
        return;
    mem_free(net->states);
    mem_free(net->edges);
    mem_free(net->starts);
    mem_free(net->texts);
    mem_free(net);
}

size_t grammar_net_bytes(const struct grammar_net *net)
{
    return sizeof(*net) + net->n_states * sizeof(*net->states) +
           net->n_edges * sizeof(*net->edges) + net->n_rules * sizeof(*net->starts) +
           net->n_text_bytes;
}
