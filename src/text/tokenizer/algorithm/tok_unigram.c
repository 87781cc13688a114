/* tok_unigram.c - see tok_unigram.h. The pieces form a trie whose children are adjacent, sorted by
 * byte; the best path is found from left to right (Viterbi). */
#include "text/tokenizer/algorithm/tok_unigram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer/tok_call.h"
#include "text/tokenizer/tokenizer_info.h"

#define NO_WAY UINT32_MAX

struct node {
    uint32_t child; /* the first of them */
    int32_t id;     /* of the piece that ends here, or NONE */
    uint16_t n_children;
    uint8_t byte;
};

struct unigram {
    const struct tok_vocab *v;
    struct node *nodes; /* [0] is the root */
    double *scores;
    double unk_score;
};

struct place { /* between two bytes of the word: the best path that ends here */
    double score;
    uint32_t from, next;
    int32_t id;
};

static int compare(const void *a, const void *b, void *ctx)
{
    const struct tok_vocab *v = ctx;
    uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
    struct str x = tok_vocab_text(v, ia), y = tok_vocab_text(v, ib);
    int c = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
    if (c != 0)
        return c;
    if (x.n != y.n)
        return x.n < y.n ? -1 : 1;
    return ia < ib ? -1 : ia > ib; /* the last of equal pieces wins */
}

/* Bytes at the front that two pieces share. */
static size_t common(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n, k = 0;
    while (k < n && a.p[k] == b.p[k])
        k++;
    return k;
}

struct range { /* the pieces under a node */
    uint32_t lo, hi, depth;
};

/* Gives node i its children out of its range of sorted pieces. */
static void grow(struct unigram *u, struct range *ranges, uint32_t i, uint32_t *n_nodes,
                 const struct tok_vocab *v, const uint32_t *ids)
{
    struct range r = ranges[i];
    while (r.lo < r.hi && tok_vocab_text(v, ids[r.lo]).n == r.depth)
        u->nodes[i].id = (int32_t)ids[r.lo++];
    u->nodes[i].child = *n_nodes;
    while (r.lo < r.hi) {
        uint8_t b = (uint8_t)tok_vocab_text(v, ids[r.lo]).p[r.depth];
        uint32_t end = r.lo + 1;
        while (end < r.hi && (uint8_t)tok_vocab_text(v, ids[end]).p[r.depth] == b)
            end++;
        u->nodes[*n_nodes] = (struct node){0, TOKENIZER_NONE, 0, b};
        ranges[*n_nodes] = (struct range){r.lo, end, r.depth + 1};
        (*n_nodes)++;
        u->nodes[i].n_children++;
        r.lo = end;
    }
}

static int build(struct unigram *u, const struct tok_vocab *v)
{
    uint32_t n = 0, n_nodes = 1;
    size_t total = 1;
    uint32_t *ids = mem_zalloc_n((size_t)v->n + 1, sizeof(*ids));
    if (!ids)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < v->n; i++)
        if ((v->attr[i] & TOK_ATTR_PLAIN) && u->scores[i] > -INFINITY)
            ids[n++] = i;
    qsort_r(ids, n, sizeof(*ids), compare, (void *)(uintptr_t)v);
    for (uint32_t i = 0; i < n; i++) {
        struct str w = tok_vocab_text(v, ids[i]);
        total += w.n - (i > 0 ? common(tok_vocab_text(v, ids[i - 1]), w) : 0);
    }
    struct range *ranges = mem_zalloc_n(total, sizeof(*ranges));
    u->nodes = mem_zalloc_n(total, sizeof(*u->nodes));
    if (ranges && u->nodes) {
        u->nodes[0].id = TOKENIZER_NONE;
        ranges[0].hi = n;
        for (uint32_t i = 0; i < n_nodes; i++)
            grow(u, ranges, i, &n_nodes, v, ids);
    }
    bool ok = ranges && u->nodes;
    mem_free(ranges);
    mem_free(ids);
    return ok ? 0 : SHOAL_ENOMEM;
}

static void destroy(void *state)
{
    struct unigram *u = state;
    mem_free(u->nodes);
    mem_free(u->scores);
    mem_free(u);
}

int tok_unigram_create(void **out, const struct tok_vocab *v, const double *scores,
                       double unk_score, struct err *e)
{
    struct unigram *u = mem_zalloc(sizeof(*u));
    int rc = SHOAL_ENOMEM;
    *out = NULL;
    if (!u)
        return err_set(e, rc, "tokenizer: %s", err_text(rc));
    u->v = v;
    u->unk_score = unk_score;
    u->scores = mem_zalloc_n((size_t)v->n + 1, sizeof(*u->scores));
    if (u->scores) {
        memcpy(u->scores, scores, v->n * sizeof(*scores));
        rc = build(u, v);
    }
    if (rc < 0) {
        destroy(u);
        return err_set(e, rc, "vocabulary of %u tokens: %s", v->n, err_text(rc));
    }
    *out = u;
    return 0;
}

static const struct node *child(const struct unigram *u, const struct node *at, uint8_t b)
{
    const struct node *c = u->nodes + at->child;
    uint32_t n = at->n_children;
    while (n > 4) {
        uint32_t half = n / 2;
        if (c[half].byte <= b) {
            c += half;
            n -= half;
        } else {
            n = half;
        }
    }
    for (; n > 0; n--, c++)
        if (c->byte == b)
            return c;
    return NULL;
}

static void offer(struct place *at, uint32_t from, double score, int32_t id)
{
    if (at->from == NO_WAY || score > at->score) {
        at->score = score;
        at->from = from;
        at->id = id;
    }
}

/* Fills places[0 .. n]. */
static void find_best(const struct unigram *u, int32_t unk, struct place *places, const char *p,
                      size_t n)
{
    const uint8_t *q = (const uint8_t *)p;
    for (size_t i = 0; i <= n; i++)
        places[i].from = NO_WAY;
    places[0].score = 0;
    for (size_t i = 0, len; i < n; i += len) {
        const struct node *at = u->nodes;
        double here = places[i].score;
        uint32_t c;
        bool single = false;
        len = utf8_decode(q + i, q + n, &c);
        len = len ? len : 1;
        for (size_t k = i; k < n && (at = child(u, at, q[k]));) {
            k++;
            if (at->id >= 0)
                offer(&places[k], (uint32_t)i, u->scores[at->id] + here, at->id);
            single |= at->id >= 0 && k - i == len;
        }
        if (!single)
            offer(&places[i + len], (uint32_t)i, u->unk_score + here, unk);
    }
}

/* Bytes that no piece spells: byte tokens if all have one, else the unknown token. */
static int emit_unknown(const struct tok_vocab *v, struct tok_call *c, const char *p, size_t n)
{
    bool all = true;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        all &= v->byte_id[(uint8_t)p[i]] >= 0;
    if (!all)
        return v->unk >= 0 ? tok_call_emit(c, v->unk, p, n) : 0;
    for (size_t i = 0; i < n && rc == 0; i++) /* the reference gives each the range of all */
        rc = tok_call_emit(c, v->byte_id[(uint8_t)p[i]], p, n);
    return rc;
}

struct work {
    struct place *places;
    size_t cap_bytes;
};

_Static_assert(sizeof(struct work) <= TOKENIZER_WORK_BYTES, "working memory of a word");

static int reserve(struct work *w, size_t n_places)
{
    size_t n = n_places * sizeof(*w->places);
    if (n <= w->cap_bytes)
        return 0;
    struct place *bigger = mem_alloc(n + n / 2);
    if (!bigger)
        return SHOAL_ENOMEM;
    mem_free(w->places);
    w->places = bigger;
    w->cap_bytes = n + n / 2;
    return 0;
}

static int word(const void *state, struct tok_call *c, void *work, const char *p, size_t n)
{
    const struct unigram *u = state;
    const struct tok_vocab *v = u->v;
    struct work *w = work;
    int rc = reserve(w, n + 1);
    if (rc < 0)
        return rc;
    struct place *places = w->places;
    find_best(u, v->unk, places, p, n);
    for (uint32_t i = (uint32_t)n; i > 0; i = places[i].from)
        places[places[i].from].next = i;
    for (uint32_t i = 0; i < n && rc == 0;) {
        uint32_t end = places[i].next, id;
        if (places[end].id >= 0 && places[end].id != v->unk) {
            const bool token = (uint32_t)places[end].id < v->n_tokens;
            rc = tok_call_emit(c, token ? places[end].id : v->unk, p + i, end - i);
        } else {
            while (end < n && places[places[end].next].id == v->unk)
                end = places[end].next;
            if (tok_vocab_find(v, p + i, end - i, &id))
                rc = tok_call_emit(c, (int32_t)id, p + i, end - i);
            else
                rc = emit_unknown(v, c, p + i, end - i);
        }
        i = end;
    }
    return rc;
}

static void word_end(void *work)
{
    struct work *w = work;
    mem_free(w->places);
}

const struct tokenizer_ops tok_unigram_ops = {
    .word = word, .word_end = word_end, .destroy = destroy};
