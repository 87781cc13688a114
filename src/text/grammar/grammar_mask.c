/* grammar_mask.c - see grammar_mask.h. */
#include "text/grammar/grammar_mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/room.h"
#include "text/grammar/grammar_net.h"
#include "text/grammar/vocab_trie.h"

#define MAX_BYTES ((size_t)512 << 20) /* limit of one grammar's places and sets */
#define MAX_STACKS 4096u              /* limit of one place */
#define MAX_TODO 65536u
#define MAX_FRAMES 16u  /* counting frames that a part includes */
#define MAX_FORCED 256u /* bytes of one text that must follow; a longer token is no part of it */
#define UNKNOWN UINT32_MAX
#define NONE UINT32_MAX
#define UNSEEN (UINT32_MAX - 1)
#define TOO_MANY 1 /* the stacks of a place do not fit */

/* What is below a stack: the end of the text, or the unknown caller of a part. */
enum { BOTTOM, CUT, FIRST_NODE };

struct node { /* the top of a stack: the position in a rule, and below it where its caller continues
               */
    uint32_t state, count, parent; /* count: repetitions so far, or bytes of a text edge read */
    uint32_t mark;                 /* the closure that visited it last */
    uint32_t part;                 /* index, or NONE */
    uint32_t back;                 /* the place when this frame is returned to, or NONE */
};

struct place {
    const uint32_t *nodes; /* in order; all of them read bytes */
    uint32_t n;
    bool ended;             /* the bottom was reached */
    uint32_t common;        /* where every lower-case letter leads; DEAD: no such place */
    uint64_t commons;       /* classes of bytes that all lead to it; common UNKNOWN: not computed */
    uint32_t *next;         /* [256]: places, UNKNOWN: not computed; NULL: none computed */
    uint64_t *bits, *leads; /* sets, or NULL */
    uint32_t n_bits, n_leads;
    uint32_t only; /* token, NONE: there is a choice, UNSEEN: not computed */
};

struct part {
    uint64_t *bits;
    const uint32_t *exits; /* trie nodes after which the rule may end */
    uint32_t n_exits;
};

struct slot_table { /* open addressing; 0: free, else 1 + index */
    uint32_t *slots;
    uint32_t n_slots, n_used;
};

struct grammar_mask {
    const struct grammar_net *net;
    const struct vocab_trie *vocab;
    struct arena arena;
    struct node *nodes;
    struct place *places;
    struct part *parts;
    uint32_t n_nodes, cap_nodes, n_places, cap_places, n_parts, cap_parts;
    struct slot_table node_table, place_table;
    uint32_t stamp;
    uint32_t *todo, n_todo; /* [MAX_TODO] */
    uint32_t *rest, n_rest; /* [MAX_STACKS] */
    uint32_t *path;         /* [max_depth + 1]: places of a walk */
    uint32_t *exits, n_exits, cap_exits;
    bool ended;
};

/* ---- memory ---- */

static int grow(void *p, uint32_t *cap, uint32_t n, size_t size)
{
    return room_make32(p, cap, n, size, 64) ? 0 : SHOAL_ENOMEM;
}

static void *piece(struct grammar_mask *m, size_t n, size_t size)
{
    return arena_zalloc_n(&m->arena, n, size);
}

static int no_piece(const struct grammar_mask *m)
{
    return m->arena.rc < 0 ? m->arena.rc : SHOAL_ENOMEM;
}

static int table_room(struct slot_table *t, uint64_t (*hash)(const struct grammar_mask *, uint32_t),
                      const struct grammar_mask *m)
{
    if (2 * (t->n_used + 1) <= t->n_slots)
        return 0;
    uint32_t n = t->n_slots ? 2 * t->n_slots : 1024;
    uint32_t *slots = mem_zalloc_n(n, sizeof(*slots));
    if (!slots)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < t->n_slots; i++)
        if (t->slots[i]) {
            uint32_t at = (uint32_t)hash(m, t->slots[i] - 1) & (n - 1);
            while (slots[at])
                at = (at + 1) & (n - 1);
            slots[at] = t->slots[i];
        }
    mem_free(t->slots);
    t->slots = slots;
    t->n_slots = n;
    return 0;
}

/* ---- stacks ---- */

static uint64_t node_hash(uint32_t state, uint32_t count, uint32_t parent)
{
    return hash_mix(((uint64_t)state << 32 | parent) ^ hash_mix(count + 1));
}

static uint64_t node_hash_of(const struct grammar_mask *m, uint32_t i)
{
    return node_hash(m->nodes[i].state, m->nodes[i].count, m->nodes[i].parent);
}

static int node_get(struct grammar_mask *m, uint32_t state, uint32_t count, uint32_t parent,
                    uint32_t *out)
{
    struct slot_table *t = &m->node_table;
    int rc = table_room(t, node_hash_of, m);
    if (rc < 0)
        return rc;
    uint32_t at = (uint32_t)node_hash(state, count, parent) & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const struct node *n = &m->nodes[t->slots[at] - 1];
        if (n->state == state && n->count == count && n->parent == parent) {
            *out = t->slots[at] - 1;
            return 0;
        }
    }
    rc = grow(&m->nodes, &m->cap_nodes, m->n_nodes, sizeof(*m->nodes));
    if (rc < 0)
        return rc;
    m->nodes[m->n_nodes] = (struct node){state, count, parent, 0, NONE, NONE};
    t->slots[at] = m->n_nodes + 1;
    t->n_used++;
    *out = m->n_nodes++;
    return 0;
}

static int visit(struct grammar_mask *m, uint32_t id)
{
    if (m->nodes[id].mark == m->stamp)
        return 0;
    if (m->n_todo == MAX_TODO)
        return TOO_MANY;
    m->nodes[id].mark = m->stamp;
    m->todo[m->n_todo++] = id;
    return 0;
}

static int visit_state(struct grammar_mask *m, uint32_t state, uint32_t count, uint32_t parent)
{
    uint32_t id;
    int rc = node_get(m, state, count, parent, &id);
    return rc < 0 ? rc : visit(m, id);
}

static int follow(struct grammar_mask *m, const struct node *n, const struct grammar_net_edge *e)
{
    const struct grammar_net *net = m->net;
    uint32_t parent = n->parent;
    int rc = 0;
    switch (e->kind) {
    case GRAMMAR_NET_EMPTY:
        return visit_state(m, e->to, 0, parent);
    case GRAMMAR_NET_CALL:
        if (!net->states[e->to]
                 .final) /* otherwise the caller is complete too, and its own caller continues */
            rc = node_get(m, e->to, 0, n->parent, &parent);
        return rc < 0 ? rc : visit_state(m, net->starts[e->rule], 0, parent);
    case GRAMMAR_NET_COUNT:
        if (n->count >= e->min)
            rc = visit_state(m, e->to, 0, n->parent);
        if (rc == 0 && n->count < e->max) {
            bool open = e->max == UINT32_MAX && n->count >= e->min; /* no need to count on */
            rc = node_get(m, n->state, open ? n->count : n->count + 1, n->parent, &parent);
            if (rc == 0)
                rc = visit_state(m, net->starts[e->rule], 0, parent);
        }
        return rc;
    default:
        return 0;
    }
}

/* From the pending nodes, collects everything reachable without a byte: into rest and ended. */
static int close_stacks(struct grammar_mask *m)
{
    int rc = 0;
    m->n_rest = 0;
    m->ended = false;
    while (m->n_todo > 0 && rc == 0) {
        const uint32_t id = m->todo[--m->n_todo];
        const struct node n = m->nodes[id];
        const struct grammar_net_state *s = &m->net->states[n.state];
        if (s->reads) {
            if (m->n_rest == MAX_STACKS)
                return TOO_MANY;
            m->rest[m->n_rest++] = id;
        }
        if (s->final && n.parent < FIRST_NODE)
            m->ended = true;
        else if (s->final)
            rc = visit(m, n.parent);
        for (uint32_t i = 0; i < s->n_edges && rc == 0; i++)
            rc = follow(m, &n, &m->net->edges[s->edges + i]);
    }
    m->n_todo = 0;
    if (m->n_rest > 1)
        qsort(m->rest, m->n_rest, sizeof(*m->rest), order_u32);
    return rc;
}

/* ---- places ---- */

static uint64_t place_hash(const uint32_t *nodes, uint32_t n, bool ended)
{
    return hash_bytes(nodes, n * sizeof(*nodes), ended);
}

static uint64_t place_hash_of(const struct grammar_mask *m, uint32_t i)
{
    return place_hash(m->places[i].nodes, m->places[i].n, m->places[i].ended);
}

/* The place of the stacks in rest. */
static int place_get(struct grammar_mask *m, uint32_t *out)
{
    struct slot_table *t = &m->place_table;
    *out = GRAMMAR_MASK_DEAD;
    if (m->n_rest == 0 && !m->ended)
        return 0;
    int rc = table_room(t, place_hash_of, m);
    if (rc < 0)
        return rc;
    uint32_t at = (uint32_t)place_hash(m->rest, m->n_rest, m->ended) & (t->n_slots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const struct place *p = &m->places[t->slots[at] - 1];
        if (p->n == m->n_rest && p->ended == m->ended &&
            memcmp(p->nodes, m->rest, p->n * sizeof(*p->nodes)) == 0) {
            *out = t->slots[at] - 1;
            return 0;
        }
    }
    rc = grow(&m->places, &m->cap_places, m->n_places, sizeof(*m->places));
    if (rc < 0)
        return rc;
    uint32_t *nodes = piece(m, m->n_rest + 1, sizeof(*nodes));
    if (!nodes)
        return no_piece(m);
    memcpy(nodes, m->rest, m->n_rest * sizeof(*nodes));
    m->places[m->n_places] = (struct place){
        .nodes = nodes, .n = m->n_rest, .ended = m->ended, .common = UNKNOWN, .only = UNSEEN};
    t->slots[at] = m->n_places + 1;
    t->n_used++;
    *out = m->n_places++;
    return 0;
}

static void new_stamp(struct grammar_mask *m)
{
    if (++m->stamp == 0) { /* wrapped: old marks would look new */
        for (uint32_t i = 0; i < m->n_nodes; i++)
            m->nodes[i].mark = 0;
        m->stamp = 1;
    }
    m->n_todo = 0;
}

/* The edge of a place that can only read the rest of one text; NULL: it has more to read. */
static const struct grammar_net_edge *text_edge(const struct grammar_mask *m, uint32_t place)
{
    const struct place *p = &m->places[place];
    if (p->n != 1)
        return NULL;
    const struct grammar_net_state *s = &m->net->states[m->nodes[p->nodes[0]].state];
    return s->text ? &m->net->edges[s->edges] : NULL;
}

static uint8_t text_byte(const struct grammar_mask *m, const struct grammar_net_edge *e,
                         uint32_t id)
{
    return m->net->texts[e->min + m->nodes[id].count];
}

/* Marks the bytes that some stack reads; all others lead nowhere. */
static int open_table(struct grammar_mask *m, uint32_t place)
{
    uint32_t *next = piece(m, 256, sizeof(*next));
    const struct place *p = &m->places[place];
    if (!next)
        return no_piece(m);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct grammar_net_state *s = &m->net->states[m->nodes[p->nodes[i]].state];
        for (uint32_t k = 0; k < s->n_edges; k++) {
            const struct grammar_net_edge *e = &m->net->edges[s->edges + k];
            for (uint32_t b = e->lo; e->kind == GRAMMAR_NET_BYTES && b <= e->hi; b++)
                next[b] = UNKNOWN;
            if (e->kind == GRAMMAR_NET_TEXT)
                next[text_byte(m, e, p->nodes[i])] = UNKNOWN;
        }
    }
    m->places[place].next = next;
    return 0;
}

/* The stack of a node after a byte that one of its edges reads. */
static int follow_byte(struct grammar_mask *m, uint32_t id, const struct grammar_net_edge *e)
{
    const struct node n = m->nodes[id];
    if (e->kind == GRAMMAR_NET_TEXT && n.count + 1 < e->max)
        return visit_state(m, n.state, n.count + 1, n.parent);
    return visit_state(m, e->to, 0, n.parent);
}

/* The place of the stacks that wait, closed. Where there are too many of them, the grammar is so
 * ambiguous that they cannot be told apart in bounded time: that text is not generated. */
static int closed_place(struct grammar_mask *m, int rc, uint32_t *out)
{
    if (rc == 0)
        rc = close_stacks(m);
    if (rc == 0)
        return place_get(m, out);
    *out = GRAMMAR_MASK_DEAD;
    m->n_todo = 0;
    return rc == TOO_MANY ? 0 : rc;
}

static int compute_step(struct grammar_mask *m, uint32_t place, uint8_t byte, uint32_t *out)
{
    uint32_t from = 0, to = 255; /* bytes that the edges treat like this one */
    int rc = 0;
    new_stamp(m);
    for (uint32_t i = 0; i < m->places[place].n && rc == 0; i++) {
        const uint32_t id = m->places[place].nodes[i];
        const struct grammar_net_state *s = &m->net->states[m->nodes[id].state];
        for (uint32_t k = 0; k < s->n_edges && rc == 0; k++) {
            const struct grammar_net_edge *e = &m->net->edges[s->edges + k];
            const bool text = e->kind == GRAMMAR_NET_TEXT;
            if (e->kind != GRAMMAR_NET_BYTES && !text)
                continue;
            const uint8_t lo = text ? text_byte(m, e, id) : e->lo, hi = text ? lo : e->hi;
            if (byte < lo) {
                to = lo <= to ? lo - 1u : to;
            } else if (byte > hi) {
                from = hi >= from ? hi + 1u : from;
            } else {
                from = lo > from ? lo : from;
                to = hi < to ? hi : to;
                rc = follow_byte(m, id, e);
            }
        }
    }
    rc = closed_place(m, rc, out);
    for (uint32_t b = from; rc == 0 && b <= to; b++)
        m->places[place].next[b] = *out;
    return rc;
}

/* In the middle of a text there is one way on. A table of all bytes for each of its places would
 * be most of the memory of a long list of texts. */
static int step_text(struct grammar_mask *m, uint32_t place, const struct grammar_net_edge *e,
                     uint8_t byte, uint32_t *out)
{
    const uint32_t id = m->places[place].nodes[0];
    *out = GRAMMAR_MASK_DEAD;
    if (byte != text_byte(m, e, id))
        return 0;
    new_stamp(m);
    return closed_place(m, follow_byte(m, id, e), out);
}

static inline int step(struct grammar_mask *m, uint32_t place, uint8_t byte, uint32_t *out)
{
    if (!m->places[place].next) {
        const struct grammar_net_edge *text = text_edge(m, place);
        int rc = text ? step_text(m, place, text, byte, out) : open_table(m, place);
        if (text || rc < 0)
            return rc;
    }
    *out = m->places[place].next[byte];
    return *out == UNKNOWN ? compute_step(m, place, byte, out) : 0;
}

/* ---- sets ---- */

static uint32_t n_words(const struct grammar_mask *m)
{
    return vocab_trie_words(m->vocab);
}

static void set_tokens(const struct grammar_mask *m, uint64_t *bits, uint32_t token)
{
    for (; token != VOCAB_TRIE_NONE; token = m->vocab->same[token])
        bits[token / 64] |= (uint64_t)1 << (token % 64);
}

/* Strings are mostly matched by a loop, or by a counted loop: all but a few characters lead to the
 * same place. Finds that place and the byte classes that lead there. */
static int find_common(struct grammar_mask *m, uint32_t place)
{
    uint64_t others = 1; /* class 0 holds parts of characters */
    uint32_t common = text_edge(m, place) ? GRAMMAR_MASK_DEAD : UNKNOWN, to = UNKNOWN;
    int rc = m->places[place].next || common == GRAMMAR_MASK_DEAD ? 0 : open_table(m, place);
    for (uint32_t b = 'a'; b <= 'z' && rc == 0 && common != GRAMMAR_MASK_DEAD; b++) {
        if (m->places[place].next[b] != GRAMMAR_MASK_DEAD)
            rc = step(m, place, (uint8_t)b, &to);
        else
            to = GRAMMAR_MASK_DEAD; /* the usual case: nothing is computed for these places */
        common = common == UNKNOWN || common == to ? to : GRAMMAR_MASK_DEAD;
    }
    for (uint32_t b = 0; b < 0x80 && rc == 0 && common != GRAMMAR_MASK_DEAD; b++) {
        rc = step(m, place, (uint8_t)b, &to);
        if (to != common)
            others |= (uint64_t)1 << vocab_trie_class((uint8_t)b);
    }
    if (rc < 0)
        return rc;
    m->places[place].common = common;
    m->places[place].commons = common != GRAMMAR_MASK_DEAD ? ~others : 0;
    return 0;
}

/* Whether every text below a trie node is allowed after `place`, as far as can be known without
 * checking each. */
static int allows_all(struct grammar_mask *m, const struct vocab_trie_node *n, uint32_t place,
                      bool exits, bool *out)
{
    *out = false;
    for (uint32_t left = n->height; left > 0; left--) {
        if (exits && m->places[place].ended)
            return 0;
        if (m->places[place].common == UNKNOWN) {
            int rc = find_common(m, place);
            if (rc < 0)
                return rc;
        }
        const struct place *p = &m->places[place];
        if (n->below & ~p->commons)
            return 0;
        if (p->common == place) {
            *out = true;
            return 0;
        }
        place = p->common;
    }
    *out = n->height < UINT8_MAX;
    return 0;
}

/* Every token that begins with the text of a node. */
static void set_all(const struct grammar_mask *m, uint64_t *bits, uint32_t node)
{
    const uint32_t *order = m->vocab->order, last = vocab_trie_last(m->vocab, node);
    for (uint32_t i = m->vocab->nodes[node].first; i < last; i++)
        bits[order[i] / 64] |= (uint64_t)1 << (order[i] % 64);
}

/* Sets the tokens below a trie node that can follow, if the node's own text led to `place`. exits:
 * also lists where a rule ends with more of the trie after it. */
static int walk(struct grammar_mask *m, uint32_t place, uint32_t from, uint64_t *bits, bool exits)
{
    const struct vocab_trie_node *nodes = m->vocab->nodes;
    const uint32_t end = nodes[from].end;
    int rc = 0;
    m->path[nodes[from].depth] = place;
    for (uint32_t i = from + 1; i < end && rc == 0;) {
        const struct vocab_trie_node *n = &nodes[i];
        uint32_t to = GRAMMAR_MASK_DEAD;
        bool all = false;
        rc = step(m, m->path[n->depth - 1], n->byte, &to);
        if (rc == 0 && to != GRAMMAR_MASK_DEAD && n->height > 0)
            rc = allows_all(m, n, to, exits, &all);
        if (rc < 0 || to == GRAMMAR_MASK_DEAD) {
            i = n->end;
            continue;
        }
        if (all) {
            set_all(m, bits, i);
            i = n->end;
            continue;
        }
        set_tokens(m, bits, n->token);
        if (exits && n->height > 0 && m->places[to].ended) {
            rc = grow(&m->exits, &m->cap_exits, m->n_exits, sizeof(*m->exits));
            if (rc == 0)
                m->exits[m->n_exits++] = i;
        }
        m->path[n->depth] = to;
        i++;
    }
    return rc;
}

/* Clamps a count to the bytes that a token can have; it behaves the same. */
static uint32_t clamp_count(const struct grammar_mask *m, uint32_t state, uint32_t count)
{
    const struct grammar_net_edge *e = &m->net->edges[m->net->states[state].edges];
    const uint32_t far = m->vocab->max_depth + 1;
    if (count < e->min)
        return e->min - count > far ? e->min - far : count;
    if (e->max != UINT32_MAX && e->max - count > far && e->max - far >= e->min)
        return e->max - far;
    return count;
}

/* The stack of a node down to its caller, which is replaced by CUT: *outer is what was there. */
static int cut_stack(struct grammar_mask *m, uint32_t id, uint32_t *local, uint32_t *outer)
{
    uint32_t frames[MAX_FRAMES], n = 0, base = CUT, p = m->nodes[id].parent;
    int rc = 0;
    while (p >= FIRST_NODE && n < MAX_FRAMES && m->net->states[m->nodes[p].state].counts) {
        frames[n++] = p;
        p = m->nodes[p].parent;
    }
    *outer = p;
    while (n > 0 && rc == 0) {
        const struct node f = m->nodes[frames[--n]];
        rc = node_get(m, f.state, clamp_count(m, f.state, f.count), base, &base);
    }
    if (rc == 0)
        rc = node_get(m, m->nodes[id].state, m->nodes[id].count, base, local);
    return rc;
}

static int compute_part(struct grammar_mask *m, uint32_t local)
{
    uint32_t place, *exits;
    int rc = grow(&m->parts, &m->cap_parts, m->n_parts, sizeof(*m->parts));
    uint64_t *bits = piece(m, n_words(m), sizeof(*bits));
    if (rc < 0 || !bits)
        return rc < 0 ? rc : no_piece(m);
    m->rest[0] = local;
    m->n_rest = 1;
    m->ended = false;
    m->n_exits = 0;
    rc = place_get(m, &place);
    if (rc == 0)
        rc = walk(m, place, 0, bits, true);
    if (rc < 0)
        return rc;
    exits = piece(m, m->n_exits + 1, sizeof(*exits));
    if (!exits)
        return no_piece(m);
    if (m->n_exits)
        memcpy(exits, m->exits, m->n_exits * sizeof(*exits));
    m->parts[m->n_parts] = (struct part){bits, exits, m->n_exits};
    m->nodes[local].part = m->n_parts++;
    return 0;
}

/* Adds the tokens that may follow one stack. */
static int add_stack(struct grammar_mask *m, uint32_t id, uint64_t *bits)
{
    uint32_t local = 0, outer = 0;
    int rc = cut_stack(m, id, &local, &outer);
    if (rc == 0 && m->nodes[local].part == NONE)
        rc = compute_part(m, local);
    if (rc < 0)
        return rc;
    const struct part part = m->parts[m->nodes[local].part];
    for (uint32_t i = 0; i < n_words(m); i++)
        bits[i] |= part.bits[i];
    if (outer < FIRST_NODE || part.n_exits == 0)
        return 0;
    if (m->nodes[outer].back == NONE) {
        uint32_t back = NONE;
        new_stamp(m);
        rc = closed_place(m, visit(m, outer), &back);
        if (rc < 0)
            return rc;
        m->nodes[outer].back = back;
    }
    for (uint32_t i = 0; i < part.n_exits && rc == 0; i++)
        rc = walk(m, m->nodes[outer].back, part.exits[i], bits, false);
    return rc;
}

static uint32_t count_bits(const uint64_t *bits, uint32_t n)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (bits[i]) /* most are 0, and not every CPU counts bits */
            sum += (uint32_t)__builtin_popcountll(bits[i]);
    return sum;
}

static int compute_set(struct grammar_mask *m, uint32_t place)
{
    uint64_t *bits = piece(m, n_words(m), sizeof(*bits));
    int rc = 0;
    if (!bits)
        return no_piece(m);
    for (uint32_t i = 0; i < m->places[place].n && rc == 0; i++)
        rc = add_stack(m, m->places[place].nodes[i], bits);
    for (uint32_t i = 0; m->places[place].ended && i < n_words(m); i++)
        bits[i] |= m->vocab->ends[i];
    if (rc < 0)
        return rc;
    m->places[place].bits = bits;
    m->places[place].n_bits = count_bits(bits, n_words(m));
    return 0;
}

/* The set of a place where a leading space is dropped: tokens that begin with a space count without
 * it. */
static int compute_leads(struct grammar_mask *m, uint32_t place)
{
    const struct vocab_trie_node *nodes = m->vocab->nodes;
    uint64_t *bits = piece(m, n_words(m), sizeof(*bits));
    uint32_t space = 1;
    int rc = 0;
    if (!bits)
        return no_piece(m);
    memcpy(bits, m->places[place].bits, n_words(m) * sizeof(*bits));
    while (space < m->vocab->n_nodes && nodes[space].byte != ' ')
        space = nodes[space].end;
    if (space < m->vocab->n_nodes) {
        for (uint32_t i = space; i < nodes[space].end; i++)
            for (uint32_t t = nodes[i].token; t != VOCAB_TRIE_NONE; t = m->vocab->same[t])
                bits[t / 64] &= ~((uint64_t)1 << (t % 64));
        rc = walk(m, place, space, bits, false);
    }
    if (rc < 0)
        return rc;
    m->places[place].leads = bits;
    m->places[place].n_leads = count_bits(bits, n_words(m));
    return 0;
}

int grammar_mask_allowed(struct grammar_mask *m, uint32_t place, bool lead,
                         struct grammar_mask_set *out)
{
    int rc = 0;
    if (!m->places[place].bits)
        rc = compute_set(m, place);
    if (rc == 0 && lead && !m->places[place].leads)
        rc = compute_leads(m, place);
    const struct place *p = &m->places[place];
    *out = (struct grammar_mask_set){lead ? p->leads : p->bits, lead ? p->n_leads : p->n_bits};
    return rc;
}

/* ---- use ---- */

/* Nodes 0 and 1 and the dead place are there from the start. */
static int begin(struct grammar_mask *m)
{
    arena_init(&m->arena, MAX_BYTES);
    int rc = grow(&m->nodes, &m->cap_nodes, 0, sizeof(*m->nodes));
    if (rc == 0)
        rc = grow(&m->places, &m->cap_places, 0, sizeof(*m->places));
    if (rc < 0)
        return rc;
    m->nodes[BOTTOM] = m->nodes[CUT] = (struct node){0, 0, 0, 0, NONE, NONE};
    m->n_nodes = FIRST_NODE;
    m->places[GRAMMAR_MASK_DEAD] = (struct place){.n = 0};
    m->n_places = 1;
    m->stamp = 0;
    return 0;
}

static void forget(struct grammar_mask *m)
{
    arena_fini(&m->arena);
    mem_free(m->nodes);
    mem_free(m->places);
    mem_free(m->parts);
    mem_free(m->node_table.slots);
    mem_free(m->place_table.slots);
    m->nodes = NULL;
    m->places = NULL;
    m->parts = NULL;
    m->n_nodes = m->cap_nodes = m->n_places = m->cap_places = m->n_parts = m->cap_parts = 0;
    m->node_table = m->place_table = (struct slot_table){0};
}

int grammar_mask_start(struct grammar_mask *m, uint32_t *place)
{
    *place = GRAMMAR_MASK_DEAD;
    if (m->n_nodes == 0) { /* memory ran out in trim */
        int rc = begin(m);
        if (rc < 0)
            return rc;
    }
    new_stamp(m);
    return closed_place(m, visit_state(m, m->net->starts[m->net->root], 0, BOTTOM), place);
}

int grammar_mask_create(struct grammar_mask **out, const struct grammar_net *net,
                        const struct vocab_trie *vocab, struct err *e)
{
    struct grammar_mask *m = mem_zalloc(sizeof(*m));
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a grammar");
    m->net = net;
    m->vocab = vocab;
    m->todo = mem_zalloc_n(MAX_TODO, sizeof(*m->todo));
    m->rest = mem_zalloc_n(MAX_STACKS, sizeof(*m->rest));
    m->path = mem_zalloc_n(vocab->max_depth + 1, sizeof(*m->path));
    uint32_t start = GRAMMAR_MASK_DEAD;
    int rc = m->todo && m->rest && m->path ? begin(m) : SHOAL_ENOMEM;
    if (rc == 0)
        rc = grammar_mask_start(m, &start);
    if (rc == 0 && start == GRAMMAR_MASK_DEAD)
        rc = err_set(e, SHOAL_ELIMIT,
                     "the grammar is too ambiguous: its texts can begin in more than %u ways",
                     MAX_STACKS);
    else if (rc < 0)
        rc = err_set(e, rc, "out of memory for a grammar");
    if (rc < 0)
        grammar_mask_destroy(m);
    else
        *out = m;
    return rc;
}

void grammar_mask_destroy(struct grammar_mask *m)
{
    if (!m)
        return;
    forget(m);
    mem_free(m->todo);
    mem_free(m->rest);
    mem_free(m->path);
    mem_free(m->exits);
    mem_free(m);
}

int grammar_mask_step(struct grammar_mask *m, uint32_t *place, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    int rc = 0;
    for (size_t i = 0; i < n && *place != GRAMMAR_MASK_DEAD && rc == 0; i++)
        rc = step(m, *place, p[i], place);
    return rc;
}

int grammar_mask_take(struct grammar_mask *m, uint32_t *place, int32_t token, uint32_t skip)
{
    const struct vocab_trie *v = m->vocab;
    if (token < 0 || (uint32_t)token >= v->n_vocab || v->text_bytes[token] <= skip) {
        *place = GRAMMAR_MASK_DEAD;
        return 0;
    }
    return grammar_mask_step(m, place, v->texts[token] + skip, v->text_bytes[token] - skip);
}

bool grammar_mask_complete(const struct grammar_mask *m, uint32_t place)
{
    return m->places[place].ended;
}

bool grammar_mask_over(const struct grammar_mask *m, uint32_t place)
{
    return m->places[place].n == 0;
}

size_t grammar_mask_forced(struct grammar_mask *m, uint32_t place, char *out, size_t n)
{
    size_t len = 0;
    while (len < n && !m->places[place].ended && m->places[place].n > 0) {
        const struct grammar_net_edge *text = text_edge(m, place);
        uint32_t only = text ? text_byte(m, text, m->places[place].nodes[0]) : 256;
        if (!text && !m->places[place].next && open_table(m, place) < 0)
            break;
        for (uint32_t b = 0; !text && b < 256; b++)
            if (m->places[place].next[b] != GRAMMAR_MASK_DEAD) {
                if (only < 256)
                    return len;
                only = b;
            }
        if (only == 256 || step(m, place, (uint8_t)only, &place) < 0)
            break;
        out[len++] = (char)only;
    }
    return len;
}

/* The longest token that begins the only text, and how many tokens begin it. */
static uint32_t longest_token(const struct vocab_trie *v, const char *text, size_t n,
                              uint32_t *n_tokens)
{
    uint32_t at = 0, best = NONE;
    *n_tokens = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t child = at + 1;
        while (child < v->nodes[at].end && v->nodes[child].byte != (uint8_t)text[i])
            child = v->nodes[child].end;
        if (child >= v->nodes[at].end)
            break;
        at = child;
        if (v->nodes[at].token != VOCAB_TRIE_NONE)
            best = NONE;
        for (uint32_t t = v->nodes[at].token; t != VOCAB_TRIE_NONE; t = v->same[t]) {
            best = t < best ? t : best;
            ++*n_tokens;
        }
    }
    return best;
}

int grammar_mask_only(struct grammar_mask *m, uint32_t place, int32_t *token)
{
    char text[MAX_FORCED];
    *token = -1;
    if (m->places[place].only == UNSEEN) {
        struct grammar_mask_set set;
        uint32_t n_tokens = 0, only = NONE;
        int rc = grammar_mask_allowed(m, place, false, &set);
        if (rc < 0)
            return rc;
        const size_t n = grammar_mask_forced(m, place, text, sizeof(text));
        if (n > 0)
            only = longest_token(m->vocab, text, n, &n_tokens);
        m->places[place].only = n_tokens == set.n ? only : NONE;
    }
    if (m->places[place].only != NONE)
        *token = (int32_t)m->places[place].only;
    return 0;
}

size_t grammar_mask_bytes(const struct grammar_mask *m)
{
    const size_t fixed = sizeof(*m) + MAX_TODO * sizeof(*m->todo) + MAX_STACKS * sizeof(*m->rest);
    return fixed + m->arena.used_bytes + m->cap_nodes * sizeof(*m->nodes) +
           m->cap_places * sizeof(*m->places) + m->cap_parts * sizeof(*m->parts) +
           (m->node_table.n_slots + m->place_table.n_slots) * sizeof(uint32_t);
}

bool grammar_mask_trim(struct grammar_mask *m, size_t max_bytes)
{
    if (m->n_nodes > 0 && m->arena.rc == 0 && grammar_mask_bytes(m) <= max_bytes)
        return false;
    forget(m);
    if (begin(m) < 0)
        forget(m);
    return true;
}
