/* tok_unigram.c - see tok_unigram.h.  The pieces are a trie whose children lie side by side, sorted
 * by their byte; the best way is found from left to right (Viterbi). */
#include "text/tokenizer/tok_unigram.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/tok_hf.h"

#define NO_WAY UINT32_MAX

struct node {
    uint32_t child; /* the first of them */
    int32_t id;     /* of the piece that ends here, or NONE */
    uint16_t n_children;
    uint8_t byte;
};

struct unigram {
    struct node *nodes; /* [0] is the root */
    double *scores;
    double unk_score;
};

struct place { /* between two bytes of the word: the best way that ends here */
    double score;
    uint32_t from, next;
    int32_t id;
};

static int compare(const void *a, const void *b, void *ctx)
{
    const struct tokenizer *t = ctx;
    uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
    struct tok_piece x = tok_text(t, ia), y = tok_text(t, ib);
    int c = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);
    if (c != 0)
        return c;
    if (x.n != y.n)
        return x.n < y.n ? -1 : 1;
    return ia < ib ? -1 : ia > ib; /* of equals the last one counts */
}

/* Bytes at the front that two pieces share. */
static size_t common(struct tok_piece a, struct tok_piece b)
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
                 const struct tokenizer *t, const uint32_t *ids)
{
    struct range r = ranges[i];
    while (r.lo < r.hi && tok_text(t, ids[r.lo]).n == r.depth)
        u->nodes[i].id = (int32_t)ids[r.lo++];
    u->nodes[i].child = *n_nodes;
    while (r.lo < r.hi) {
        uint8_t b = (uint8_t)tok_text(t, ids[r.lo]).p[r.depth];
        uint32_t end = r.lo + 1;
        while (end < r.hi && (uint8_t)tok_text(t, ids[end]).p[r.depth] == b)
            end++;
        u->nodes[*n_nodes] = (struct node){0, TOKENIZER_NONE, 0, b};
        ranges[*n_nodes] = (struct range){r.lo, end, r.depth + 1};
        (*n_nodes)++;
        u->nodes[i].n_children++;
        r.lo = end;
    }
}

static int build(struct unigram *u, const struct tokenizer *t)
{
    uint32_t n = 0, n_nodes = 1;
    size_t total = 1;
    uint32_t *ids = mem_zalloc_n((size_t)t->v.n + 1, sizeof(*ids));
    if (!ids)
        return SHOAL_ENOMEM;
    for (uint32_t i = 0; i < t->v.n; i++)
        if (t->v.attr[i] & TOK_ATTR_PLAIN)
            ids[n++] = i;
    qsort_r(ids, n, sizeof(*ids), compare, (void *)t);
    for (uint32_t i = 0; i < n; i++) {
        struct tok_piece w = tok_text(t, ids[i]);
        total += w.n - (i > 0 ? common(tok_text(t, ids[i - 1]), w) : 0);
    }
    struct range *ranges = mem_zalloc_n(total, sizeof(*ranges));
    u->nodes = mem_zalloc_n(total, sizeof(*u->nodes));
    if (ranges && u->nodes) {
        u->nodes[0].id = TOKENIZER_NONE;
        ranges[0].hi = n;
        for (uint32_t i = 0; i < n_nodes; i++)
            grow(u, ranges, i, &n_nodes, t, ids);
    }
    bool ok = ranges && u->nodes;
    mem_free(ranges);
    mem_free(ids);
    return ok ? 0 : SHOAL_ENOMEM;
}

int unigram_create(struct unigram **out, const struct tokenizer *t, const double *scores,
                   double unk_score, struct err *e)
{
    struct unigram *u = mem_zalloc(sizeof(*u));
    int rc = SHOAL_ENOMEM;
    *out = NULL;
    if (u)
        u->scores = mem_zalloc_n((size_t)t->v.n + 1, sizeof(*u->scores));
    if (u && u->scores) {
        memcpy(u->scores, scores, t->v.n * sizeof(*scores));
        u->unk_score = unk_score;
        rc = build(u, t);
    }
    if (rc < 0) {
        unigram_destroy(u);
        return err_set(e, rc, "vocabulary of %u tokens", t->v.n);
    }
    *out = u;
    return 0;
}

void unigram_destroy(struct unigram *u)
{
    if (!u)
        return;
    mem_free(u->nodes);
    mem_free(u->scores);
    mem_free(u);
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
static int emit_unknown(struct tok_scratch *s, const char *p, size_t n)
{
    const struct tokenizer *t = s->t;
    bool all = true;
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        all &= t->v.byte_id[(uint8_t)p[i]] >= 0;
    if (!all)
        return t->model_unk >= 0 ? tok_emit(s, t->model_unk, p, n) : 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = tok_emit(s, t->v.byte_id[(uint8_t)p[i]], p, n); /* each is all of them, says the
                                                                reference */
    return rc;
}

int unigram_encode(struct tok_scratch *s, const char *p, size_t n)
{
    const struct tokenizer *t = s->t;
    int rc = hf_scratch_work(s->hf, (n + 1) * sizeof(struct place));
    if (rc < 0)
        return rc;
    struct place *places = s->hf->work;
    find_best(t->unigram, t->model_unk, places, p, n);
    for (uint32_t i = (uint32_t)n; i > 0; i = places[i].from)
        places[places[i].from].next = i;
    for (uint32_t i = 0; i < n && rc == 0;) {
        uint32_t end = places[i].next, id;
        if (places[end].id >= 0 && places[end].id != t->model_unk) {
            rc = tok_emit(s, places[end].id, p + i, end - i);
        } else {
            while (end < n && places[places[end].next].id == t->model_unk)
                end = places[end].next;
            if (tok_find(&t->v, p + i, end - i, &id))
                rc = tok_emit(s, (int32_t)id, p + i, end - i);
            else
                rc = emit_unknown(s, p + i, end - i);
        }
        i = end;
    }
    return rc;
}
