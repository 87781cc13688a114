/* hnsw_file.c - see hnsw_file.h.
 *
 * Little-endian: magic, version, links above and on the ground, number of rows; for each row its id
 * and sum; for each row and level how many links and where to; a checksum of all before. */
#include "store/hnsw_file.h"

#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rd.h"

#define VERSION 1u
#define GONE UINT32_MAX

static const char magic[8] = {'S', 'H', 'O', 'A', 'L', 'H', 'N', 'W'};

static void put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof(v));
}

static uint32_t level_of(int64_t id)
{
    return hnsw_level((uint64_t)id);
}

void hnsw_file_write(struct buf *out, const struct hnsw *h, const struct hnsw_file_key *keys)
{
    const uint32_t n = hnsw_count(h);
    buf_put(out, magic, sizeof(magic));
    put_u32(out, VERSION);
    put_u32(out, HNSW_LINKS);
    put_u32(out, HNSW_GROUND_LINKS);
    put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        buf_put(out, &keys[i].id, sizeof(keys[i].id));
        put_u32(out, keys[i].sum);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t l = 0; l <= level_of(keys[i].id); l++) {
            const uint32_t *links = hnsw_links(h, i, l);
            buf_put(out, links, (1 + links[0]) * sizeof(*links));
        }
    const uint64_t sum = out->rc == 0 ? hash_large(out->data, out->len, VERSION) : 0;
    buf_put(out, &sum, sizeof(sum));
}

/* ---- reading ---- */

struct hnsw_reader {
    struct hnsw *h;
    uint32_t n;     /* rows of the file */
    int64_t *ids;   /* [n] */
    uint32_t *sums; /* [n] */
    uint32_t *now;  /* [n]: which row it is now, or GONE */
    size_t *at;     /* [n]: of its links on the ground */
    const uint8_t *bytes;
};

static uint32_t word(const struct hnsw_reader *r, size_t at)
{
    uint32_t v;
    memcpy(&v, r->bytes + at, sizeof(v));
    return v;
}

/* Where the links of a row on a level begin; they were checked. */
static size_t links_at(const struct hnsw_reader *r, uint32_t row, uint32_t level)
{
    size_t at = r->at[row];
    for (uint32_t l = 0; l < level; l++)
        at += (1 + (size_t)word(r, at)) * sizeof(uint32_t);
    return at;
}

static bool read_links(struct hnsw_reader *r, struct rd *in, uint32_t row, uint32_t level)
{
    const uint32_t n = rd_u32(in);
    if (in->bad || n > (level == 0 ? HNSW_GROUND_LINKS : HNSW_LINKS))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t to = rd_u32(in);
        if (in->bad || to >= r->n || to == row || level_of(r->ids[to]) < level)
            return false;
    }
    return true;
}

static bool read_rows(struct hnsw_reader *r, struct rd *in)
{
    for (uint32_t i = 0; i < r->n; i++) {
        r->ids[i] = (int64_t)rd_u64(in);
        r->sums[i] = rd_u32(in);
        if (in->bad || (i > 0 && r->ids[i] <= r->ids[i - 1]))
            return false;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        r->at[i] = rd_pos(in);
        for (uint32_t l = 0; l <= level_of(r->ids[i]); l++)
            if (!read_links(r, in, i, l))
                return false;
    }
    return rd_left(in) == 0;
}

/* Finds which rows still exist. They must come first among the current rows, in the same order and
 * with the same numbers; false: they do not, or few are left. */
static bool find_rows(struct hnsw_reader *r, const struct hnsw_file_key *keys, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        r->now[i] = GONE;
        if (at == n || keys[at].id > r->ids[i])
            continue;
        if (keys[at].id < r->ids[i] || keys[at].sum != r->sums[i])
            return false;
        r->now[i] = at++;
    }
    return at > 0 && at >= r->n / 2;
}

static bool has(const struct hnsw_change *c, uint32_t row)
{
    bool found = row == c->row;
    for (uint32_t i = 0; i < c->n && !found; i++)
        found = c->to[i] == row;
    return found;
}

/* Replaces a deleted row by one of its neighbours. */
static void add_instead(const struct hnsw_reader *r, struct hnsw_change *c, uint32_t gone)
{
    const size_t at = links_at(r, gone, c->level);
    for (uint32_t i = 0; i < word(r, at); i++) {
        const uint32_t to = r->now[word(r, at + (1 + i) * sizeof(uint32_t))];
        if (to != GONE && !has(c, to)) {
            c->to[c->n++] = to;
            return;
        }
    }
}

static void take_links(const struct hnsw_reader *r, struct hnsw_change *c, uint32_t row)
{
    const size_t at = links_at(r, row, c->level);
    const uint32_t n = word(r, at);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t to = r->now[word(r, at + (1 + i) * sizeof(uint32_t))];
        if (to != GONE && !has(c, to))
            c->to[c->n++] = to;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t to = word(r, at + (1 + i) * sizeof(uint32_t));
        if (r->now[to] == GONE)
            add_instead(r, c, to);
    }
}

static int join(const struct hnsw_reader *r, struct hnsw_plan *p, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->n && rc == 0; i++) {
        if (r->now[i] == GONE)
            continue;
        p->level = level_of(r->ids[i]);
        p->n = 0;
        for (uint32_t l = 0; l <= p->level; l++) {
            struct hnsw_change *c = &p->list[p->n++];
            *c = (struct hnsw_change){.row = r->now[i], .level = l};
            take_links(r, c, i);
        }
        rc = hnsw_apply(r->h, p, e);
    }
    return rc;
}

static int damaged(struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "the index of vectors is damaged, or of another version");
}

/* The header; SHOAL_EFORMAT if it is not ours. */
static int begin(struct hnsw_reader *r, struct rd *in, size_t n_bytes, struct err *e)
{
    uint64_t sum = 0;
    if (n_bytes < sizeof(magic) + sizeof(sum))
        return damaged(e);
    memcpy(&sum, r->bytes + n_bytes - sizeof(sum), sizeof(sum));
    if (memcmp(r->bytes, magic, sizeof(magic)) != 0 ||
        sum != hash_large(r->bytes, n_bytes - sizeof(sum), VERSION))
        return damaged(e);
    *in = rd_make(r->bytes, n_bytes - sizeof(sum));
    (void)rd_take(in, sizeof(magic));
    if (rd_u32(in) != VERSION || rd_u32(in) != HNSW_LINKS || rd_u32(in) != HNSW_GROUND_LINKS)
        return damaged(e);
    r->n = rd_u32(in);
    /* at least its key and the number of its links */
    if (in->bad || r->n > rd_left(in) / (sizeof(int64_t) + 2 * sizeof(uint32_t)))
        return damaged(e);
    return 0;
}

int hnsw_file_read(struct hnsw *h, const void *bytes, size_t n_bytes,
                   const struct hnsw_file_key *keys, uint32_t n, struct err *e)
{
    struct hnsw_reader r = {.h = h, .bytes = bytes};
    struct hnsw_plan *plan = NULL;
    struct rd in = rd_make("", 0);
    int rc = begin(&r, &in, n_bytes, e);
    if (rc < 0)
        return rc;
    r.ids = mem_zalloc_n(r.n + 1u, sizeof(*r.ids));
    r.sums = mem_zalloc_n(r.n + 1u, sizeof(*r.sums));
    r.now = mem_zalloc_n(r.n + 1u, sizeof(*r.now));
    r.at = mem_zalloc_n(r.n + 1u, sizeof(*r.at));
    plan = mem_zalloc(sizeof(*plan));
    if (!r.ids || !r.sums || !r.now || !r.at || !plan)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for an index of vectors");
    else if (!read_rows(&r, &in))
        rc = damaged(e);
    else if (!find_rows(&r, keys, n))
        rc = err_set(e, SHOAL_ECHANGED, "the index belongs to other vectors");
    else
        rc = join(&r, plan, e);
    if (rc < 0)
        hnsw_clear(h);
    mem_free(r.ids);
    mem_free(r.sums);
    mem_free(r.now);
    mem_free(r.at);
    mem_free(plan);
    return rc;
}
