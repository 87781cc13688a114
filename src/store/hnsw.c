/* hnsw.c - see hnsw.h. */
#include "store/hnsw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/room.h"

#define BUILD_BREADTH 128u
#define SLAB_NODES 4096u
#define CACHE_LINE 64u
#define FETCH_AHEAD 4u  /* rows prefetched before they are compared */
#define CODES_AHEAD 16u /* the same for their 8-bit copies */

struct slab {
    uint32_t ground[SLAB_NODES][1 + HNSW_GROUND_LINKS]; /* [0]: how many */
    uint32_t (*above[SLAB_NODES])[1 + HNSW_LINKS];      /* [level - 1]; NULL: ground level only */
};

struct hnsw {
    struct hnsw_rows rows;
    struct slab **slabs;
    uint32_t n_slabs, cap_slabs;
    uint32_t n, entry, top; /* entry: a row of the highest level, which is top */
    size_t above_bytes;
};

int hnsw_create(struct hnsw **out, const struct hnsw_rows *rows, struct err *e)
{
    struct hnsw *h = mem_zalloc(sizeof(*h));
    *out = h;
    if (!h)
        return err_set(e, SHOAL_ENOMEM, "out of memory for an index of vectors");
    h->rows = *rows;
    return 0;
}

void hnsw_clear(struct hnsw *h)
{
    for (uint32_t i = 0; i < h->n_slabs; i++) {
        for (uint32_t k = 0; k < SLAB_NODES; k++)
            mem_free(h->slabs[i]->above[k]);
        mem_free(h->slabs[i]);
    }
    h->n_slabs = h->n = h->entry = h->top = 0;
    h->above_bytes = 0;
}

void hnsw_destroy(struct hnsw *h)
{
    if (!h)
        return;
    hnsw_clear(h);
    mem_free(h->slabs);
    mem_free(h);
}

uint32_t hnsw_count(const struct hnsw *h)
{
    return h->n;
}

size_t hnsw_bytes(const struct hnsw *h)
{
    return h->n_slabs * sizeof(struct slab) + h->above_bytes;
}

static uint32_t *links_of(const struct hnsw *h, uint32_t row, uint32_t level)
{
    struct slab *s = h->slabs[row / SLAB_NODES];
    return level == 0 ? s->ground[row % SLAB_NODES] : s->above[row % SLAB_NODES][level - 1];
}

const uint32_t *hnsw_links(const struct hnsw *h, uint32_t row, uint32_t level)
{
    return links_of(h, row, level);
}

static uint32_t room_of(uint32_t level)
{
    return level == 0 ? HNSW_GROUND_LINKS : HNSW_LINKS;
}

static const float *row_of(const struct hnsw *h, uint32_t row)
{
    return h->rows.get(h->rows.ctx, row);
}

static float score_of(const struct hnsw *h, const float *q, uint32_t row)
{
    return h->rows.dot(q, row_of(h, row), h->rows.n_cols);
}

float hnsw_encode(int8_t *code, const float *x, uint32_t n)
{
    float amax = 0;
    for (uint32_t i = 0; i < n; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    float k = amax > 0 ? 127.0f / amax : 0;
    if (!(k <= 3.0e38f)) /* values so small that the factor is infinite */
        k = amax = 0;
    for (uint32_t i = 0; i < n; i++)
        code[i] = (int8_t)lrintf(x[i] * k);
    return amax / 127.0f;
}

static bool better(const struct hnsw_hit *a, const struct hnsw_hit *b)
{
    return a->score > b->score || (a->score == b->score && a->row < b->row);
}

static int best_first(const void *a, const void *b)
{
    return better(a, b) ? -1 : better(b, a);
}

/* ---- heaps ---- */

struct heap {
    struct hnsw_hit *list;
    uint32_t n, cap;
    bool best_on_top; /* false: the worst */
};

static bool above(const struct heap *p, const struct hnsw_hit *a, const struct hnsw_hit *b)
{
    return p->best_on_top ? better(a, b) : better(b, a);
}

static void swap(struct hnsw_hit *a, struct hnsw_hit *b)
{
    struct hnsw_hit t = *a;
    *a = *b;
    *b = t;
}

static bool heap_push(struct heap *p, struct hnsw_hit x)
{
    if (p->n == p->cap) {
        uint32_t cap = 2 * p->cap;
        struct hnsw_hit *more = mem_realloc(p->list, cap * sizeof(*more));
        if (!more)
            return false;
        p->list = more;
        p->cap = cap;
    }
    uint32_t i = p->n++;
    p->list[i] = x;
    for (; i > 0 && above(p, &p->list[i], &p->list[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&p->list[i], &p->list[(i - 1) / 2]);
    return true;
}

static struct hnsw_hit heap_pop(struct heap *p)
{
    struct hnsw_hit top = p->list[0];
    p->list[0] = p->list[--p->n];
    for (uint32_t i = 0, c = 1; c < p->n; i = c, c = 2 * c + 1) {
        c += c + 1 < p->n && above(p, &p->list[c + 1], &p->list[c]);
        if (!above(p, &p->list[c], &p->list[i]))
            break;
        swap(&p->list[c], &p->list[i]);
    }
    return top;
}

/* ---- walks ---- */

/* The memory of one search. */
struct walk {
    struct heap best, open; /* the best so far, and those whose links are still to be followed */
    uint64_t *seen;         /* a bit for each row */
    size_t n_words;
};

static bool walk_init(struct walk *w, uint32_t breadth, uint32_t n_rows)
{
    *w = (struct walk){.best = {.cap = breadth + 1},
                       .open = {.cap = 4 * breadth + 64, .best_on_top = true},
                       .n_words = n_rows / 64 + 1};
    w->best.list = mem_zalloc_n(w->best.cap, sizeof(*w->best.list));
    w->open.list = mem_zalloc_n(w->open.cap, sizeof(*w->open.list));
    w->seen = mem_zalloc_n(w->n_words, sizeof(*w->seen));
    return w->best.list && w->open.list && w->seen;
}

static void walk_fini(struct walk *w)
{
    mem_free(w->best.list);
    mem_free(w->open.list);
    mem_free(w->seen);
}

/* Whether it is the first time. */
static bool see(struct walk *w, uint32_t row)
{
    const uint64_t bit = 1ull << (row % 64), was = w->seen[row / 64];
    w->seen[row / 64] = was | bit;
    return !(was & bit);
}

struct aim {
    const float *q;
    const int8_t *code; /* of q; NULL: rows are compared as floats */
    float scale;        /* of the code */
    uint32_t breadth;
    bool (*wanted)(const void *ctx, uint32_t row); /* NULL: all are */
};

static int visit(const struct hnsw *h, struct walk *w, const struct aim *a, struct hnsw_hit x)
{
    if (w->best.n == a->breadth && !better(&x, &w->best.list[0]))
        return 0;
    if (!heap_push(&w->open, x))
        return SHOAL_ENOMEM;
    if (a->wanted && !a->wanted(h->rows.ctx, x.row))
        return 0;
    if (!heap_push(&w->best, x))
        return SHOAL_ENOMEM;
    if (w->best.n > a->breadth)
        heap_pop(&w->best);
    return 0;
}

static float rate(const struct hnsw *h, const struct aim *a, uint32_t row)
{
    float scale;
    if (!a->code)
        return score_of(h, a->q, row);
    const int8_t *code = h->rows.code(h->rows.ctx, row, &scale);
    return (float)h->rows.dot_i8(a->code, code, h->rows.n_cols) * (scale * a->scale);
}

/* Prefetches a row: rows are scattered in memory, and a search spends most of its time waiting. */
static void fetch(const void *p, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += CACHE_LINE)
        __builtin_prefetch((const char *)p + at);
}

static void fetch_row(const struct hnsw *h, const struct aim *a, uint32_t row)
{
    float scale;
    if (a->code)
        fetch(h->rows.code(h->rows.ctx, row, &scale), h->rows.n_cols);
    else
        fetch(row_of(h, row), h->rows.n_cols * sizeof(float));
}

/* Visits the neighbours of x that were not seen before. */
static int follow(const struct hnsw *h, struct walk *w, const struct aim *a, const uint32_t *links)
{
    struct hnsw_hit fresh[HNSW_GROUND_LINKS];
    const uint32_t ahead = a->code ? CODES_AHEAD : FETCH_AHEAD;
    uint32_t n = 0;
    int rc = 0;
    for (uint32_t i = 1; i <= links[0]; i++)
        if (see(w, links[i]))
            fresh[n++].row = links[i];
    for (uint32_t i = 0; i < n && i < ahead; i++)
        fetch_row(h, a, fresh[i].row);
    /* all of them before any is sorted in: products of several rows run side by side */
    for (uint32_t i = 0; i < n; i++) {
        if (i + ahead < n)
            fetch_row(h, a, fresh[i + ahead].row);
        fresh[i].score = rate(h, a, fresh[i].row);
    }
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = visit(h, w, a, fresh[i]);
    return rc;
}

/* Follows the links of a level from the rows in `best`, or from `from` if that is empty. */
static int walk_level(const struct hnsw *h, struct walk *w, const struct aim *a, uint32_t level,
                      uint32_t from)
{
    struct hnsw_hit starts[BUILD_BREADTH];
    uint32_t n = w->best.n < BUILD_BREADTH ? w->best.n : BUILD_BREADTH;
    if (n > 0)
        memcpy(starts, w->best.list, n * sizeof(*starts));
    else
        starts[n++].row = from;
    w->best.n = w->open.n = 0;
    memset(w->seen, 0, w->n_words * sizeof(*w->seen));
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        if (see(w, starts[i].row))
            rc = visit(h, w, a, (struct hnsw_hit){starts[i].row, rate(h, a, starts[i].row)});
    while (rc == 0 && w->open.n > 0) {
        const struct hnsw_hit x = heap_pop(&w->open);
        if (w->best.n == a->breadth && better(&w->best.list[0], &x))
            break;
        if (w->open.n > 0) /* the next one, if this one brings nothing better */
            __builtin_prefetch(links_of(h, w->open.list[0].row, level));
        rc = follow(h, w, a, links_of(h, x.row, level));
    }
    return rc;
}

/* Descends from the top to the level above `level`, each time to the nearest row, and leaves it in
 * best. Links are followed as long as they lead nearer, so no visited set is needed. */
static void descend(const struct hnsw *h, struct walk *w, const struct aim *a, uint32_t level)
{
    struct hnsw_hit at = {h->entry, rate(h, a, h->entry)};
    for (uint32_t l = h->top; l > level; l--)
        for (bool moved = true; moved;) {
            const uint32_t *links = links_of(h, at.row, l);
            moved = false;
            for (uint32_t i = 1; i <= links[0]; i++)
                fetch_row(h, a, links[i]);
            for (uint32_t i = 1; i <= links[0]; i++) {
                const struct hnsw_hit x = {links[i], rate(h, a, links[i])};
                if (better(&x, &at)) {
                    at = x;
                    moved = true;
                }
            }
        }
    w->best.list[0] = at;
    w->best.n = 1;
}

/* Replaces scores computed from codes by exact scores of the rows. */
static void rescore(const struct hnsw *h, const struct aim *a, struct hnsw_hit *hits, uint32_t n)
{
    const struct aim exact = {.q = a->q};
    for (uint32_t i = 0; i < n && i < FETCH_AHEAD; i++)
        fetch_row(h, &exact, hits[i].row);
    for (uint32_t i = 0; i < n; i++) {
        if (i + FETCH_AHEAD < n)
            fetch_row(h, &exact, hits[i + FETCH_AHEAD].row);
        hits[i].score = score_of(h, a->q, hits[i].row);
    }
}

int hnsw_search(const struct hnsw *h, const float *q, uint32_t breadth,
                bool (*wanted)(const void *ctx, uint32_t row), struct hnsw_hit *hits, uint32_t *n,
                struct err *e)
{
    struct aim a = {.q = q, .breadth = breadth, .wanted = wanted};
    struct walk w;
    *n = 0;
    if (h->n == 0 || breadth == 0)
        return 0;
    int8_t *code = h->rows.code ? mem_zalloc(h->rows.n_cols) : NULL;
    if (code) /* without memory for it, rows are compared as floats */
        a.scale = hnsw_encode(code, q, h->rows.n_cols);
    a.code = code;
    int rc = SHOAL_ENOMEM;
    if (walk_init(&w, breadth, h->n)) {
        descend(h, &w, &a, 0);
        rc = walk_level(h, &w, &a, 0, h->entry);
    }
    if (rc == 0) {
        *n = w.best.n;
        memcpy(hits, w.best.list, *n * sizeof(*hits));
        if (code)
            rescore(h, &a, hits, *n);
        qsort(hits, *n, sizeof(*hits), best_first);
    }
    walk_fini(&w);
    mem_free(code);
    return rc < 0 ? err_set(e, rc, "out of memory for a search") : 0;
}

/* ---- rows that join ---- */

/* Picks from candidates, best first, those nearer to the row than to any candidate already picked:
 * links go in all directions, not into one cluster. */
static uint32_t choose(const struct hnsw *h, const struct hnsw_hit *list, uint32_t n, uint32_t most,
                       uint32_t *to)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < n && taken < most; i++) {
        const float *x = row_of(h, list[i].row);
        bool good = true;
        for (uint32_t k = 0; k < taken && good; k++)
            good = score_of(h, x, to[k]) <= list[i].score;
        if (good)
            to[taken++] = list[i].row;
    }
    return taken;
}

/* The links of a neighbour, with the new row among them. */
static void plan_back(const struct hnsw *h, struct hnsw_plan *p, uint32_t row, uint32_t level)
{
    const uint32_t *links = links_of(h, row, level);
    struct hnsw_hit list[HNSW_GROUND_LINKS + 1];
    struct hnsw_change *c = &p->list[p->n++];
    uint32_t n = links[0], room = room_of(level);
    *c = (struct hnsw_change){.row = row, .level = level, .n = n + 1};
    if (n < room) {
        memcpy(c->to, links + 1, n * sizeof(*c->to));
        c->to[n] = h->n;
        return;
    }
    const float *x = row_of(h, row);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct hnsw_hit){links[1 + i], score_of(h, x, links[1 + i])};
    list[n] = (struct hnsw_hit){h->n, score_of(h, x, h->n)};
    qsort(list, n + 1, sizeof(*list), best_first);
    c->n = choose(h, list, n + 1, room, c->to);
}

uint32_t hnsw_level(uint64_t key)
{
    double u = ((double)(hash_mix(key + 0x9e3779b97f4a7c15u) >> 11) + 1) / 0x1p53;
    double level = -log(u) / log(HNSW_LINKS);
    return level < HNSW_MAX_LEVEL ? (uint32_t)level : HNSW_MAX_LEVEL;
}

int hnsw_plan(const struct hnsw *h, uint64_t key, struct hnsw_plan *p, struct err *e)
{
    const float *q = row_of(h, h->n);
    const struct aim a = {.q = q, .breadth = BUILD_BREADTH};
    struct walk w;
    p->level = hnsw_level(key);
    p->n = 0;
    if (h->n == 0)
        return 0;
    uint32_t from = p->level < h->top ? p->level : h->top;
    int rc = walk_init(&w, BUILD_BREADTH, h->n) ? 0 : SHOAL_ENOMEM;
    if (rc == 0)
        descend(h, &w, &a, from);
    for (uint32_t level = from + 1; level-- > 0 && rc == 0;) {
        struct hnsw_hit list[BUILD_BREADTH];
        rc = walk_level(h, &w, &a, level, h->entry);
        if (rc < 0)
            break;
        uint32_t n = w.best.n;
        memcpy(list, w.best.list, n * sizeof(*list));
        qsort(list, n, sizeof(*list), best_first);
        struct hnsw_change *own = &p->list[p->n++];
        *own = (struct hnsw_change){.row = h->n, .level = level};
        own->n = choose(h, list, n, HNSW_LINKS, own->to);
        for (uint32_t i = 0; i < own->n; i++)
            plan_back(h, p, own->to[i], level);
    }
    walk_fini(&w);
    return rc < 0 ? err_set(e, rc, "out of memory for an index of vectors") : 0;
}

static bool add_slab(struct hnsw *h)
{
    if (!room_make32(&h->slabs, &h->cap_slabs, h->n_slabs, sizeof(*h->slabs), 8))
        return false;
    struct slab *s = mem_zalloc(sizeof(*s));
    if (!s)
        return false;
    h->slabs[h->n_slabs++] = s;
    return true;
}

int hnsw_apply(struct hnsw *h, const struct hnsw_plan *p, struct err *e)
{
    uint32_t(*upper)[1 + HNSW_LINKS] = NULL;
    if (h->n / SLAB_NODES == h->n_slabs && !add_slab(h))
        return err_set(e, SHOAL_ENOMEM, "out of memory for an index of vectors");
    if (p->level > 0) {
        upper = mem_zalloc_n(p->level, sizeof(*upper));
        if (!upper)
            return err_set(e, SHOAL_ENOMEM, "out of memory for an index of vectors");
        h->slabs[h->n / SLAB_NODES]->above[h->n % SLAB_NODES] = upper;
        h->above_bytes += p->level * sizeof(*upper);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const struct hnsw_change *c = &p->list[i];
        uint32_t *links = links_of(h, c->row, c->level);
        links[0] = c->n;
        memcpy(links + 1, c->to, c->n * sizeof(*links));
    }
    if (h->n == 0 || p->level > h->top) {
        h->entry = h->n;
        h->top = p->level;
    }
    h->n++;
    return 0;
}
