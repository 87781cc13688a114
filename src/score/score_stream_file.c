/* score_stream_file.c - see score_stream_file.h. */
#include "score/score_stream_file.h"

#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/rd.h"
#include "score/score_stream_int.h"

#define MAGIC "SHOALST1"

/* ---- writing ---- */

static void put_u32(struct buf *out, uint32_t v)
{
    buf_put(out, &v, sizeof(v));
}

static void put_u64(struct buf *out, uint64_t v)
{
    buf_put(out, &v, sizeof(v));
}

void score_stream_file_begin(struct buf *out, uint64_t model)
{
    buf_put(out, MAGIC, sizeof(MAGIC) - 1);
    put_u64(out, model);
}

static void put_body(struct buf *out, const struct score_stream *s, struct score_stream_clock c)
{
    uint64_t idle_ms = c.now_ns > s->used_ns ? (c.now_ns - s->used_ns) / 1000000u : 0;
    put_u64(out, s->client);
    put_u64(out, c.wall_ms > idle_ms ? c.wall_ms - idle_ms : 0);
    put_u64(out, s->n_rows);
    put_u32(out, s->n_columns);
    put_u32(out, s->n_waiting);
    put_u32(out, (uint32_t)strlen(s->name));
    buf_puts(out, s->name);
    buf_put(out, s->state, s->state_bytes);
    buf_put(out, s->waiting, (size_t)s->n_waiting * s->n_columns * sizeof(double));
}

static void put_record(struct buf *out, const struct score_stream *s, struct score_stream_clock c)
{
    size_t at = out->len;
    put_u32(out, 0); /* length and hash follow when the body is there */
    put_u64(out, 0);
    size_t from = out->len;
    put_body(out, s, c);
    if (out->rc < 0)
        return;
    uint32_t n = (uint32_t)(out->len - from);
    uint64_t hash = hash_large(out->data + from, n, 0);
    memcpy(out->data + at, &n, sizeof(n));
    memcpy(out->data + at + sizeof(n), &hash, sizeof(hash));
}

void score_stream_file_put(struct buf *out, struct score_streams *t, struct score_stream_clock c,
                           bool every)
{
    for (uint32_t i = 0; i < SCORE_STREAM_BUCKETS; i++)
        for (struct score_stream *s = t->buckets[i]; s; s = s->next) {
            if ((every || s->changed) && !score_streams_is_over(t, s, c.now_ns))
                put_record(out, s, c);
            s->changed = false;
        }
}

/* ---- reading ---- */

struct record {
    uint64_t client, used_ms, n_rows;
    uint32_t n_columns, n_waiting;
    char name[SCORE_STREAM_MAX_NAME + 1];
    size_t state_bytes, waiting_bytes;
    const uint8_t *state, *waiting;
};

static int damaged(struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "a stream in the file is damaged");
}

static int read_record(const struct score_streams *t, struct record *r, struct rd *in,
                       struct err *e)
{
    r->client = rd_u64(in);
    r->used_ms = rd_u64(in);
    r->n_rows = rd_u64(in);
    r->n_columns = rd_u32(in);
    r->n_waiting = rd_u32(in);
    uint32_t n = rd_u32(in);
    const uint8_t *name = n <= SCORE_STREAM_MAX_NAME ? rd_take(in, n) : NULL;
    if (!name || n == 0 || memchr(name, '\0', n))
        return damaged(e);
    memcpy(r->name, name, n);
    r->name[n] = '\0';
    if (r->n_columns == 0 || r->n_columns > t->info.max_inputs ||
        (t->info.n_inputs && r->n_columns != t->info.n_inputs) ||
        r->n_waiting >= score_streams_needed(t))
        return damaged(e);
    r->state_bytes = scorer_state_bytes(t->scorer, r->n_columns);
    r->waiting_bytes = (size_t)r->n_waiting * r->n_columns * sizeof(double);
    r->state = rd_take(in, r->state_bytes);
    r->waiting = rd_take(in, r->waiting_bytes);
    return in->bad || rd_left(in) > 0 ? damaged(e) : 0;
}

int score_stream_file_take(struct score_streams *t, const void *p, size_t n,
                           struct score_stream_clock c, struct err *e)
{
    struct rd in = rd_make(p, n);
    struct record r;
    struct score_stream *s;
    int rc = read_record(t, &r, &in, e);
    if (rc < 0)
        return rc;
    score_streams_remove(t, r.client, r.name);
    uint64_t idle_ms = c.wall_ms > r.used_ms ? c.wall_ms - r.used_ms : 0;
    if (idle_ms > t->limits.idle_ns / 1000000u)
        return 0;
    rc = score_streams_add(t, r.client, r.name, r.n_columns, &s, e);
    if (rc < 0)
        return rc;
    if (r.state_bytes)
        memcpy(s->state, r.state, r.state_bytes);
    if (r.waiting_bytes)
        memcpy(s->waiting, r.waiting, r.waiting_bytes);
    s->n_waiting = r.n_waiting;
    s->n_rows = r.n_rows;
    s->used_ns = c.now_ns > idle_ms * 1000000u ? c.now_ns - idle_ms * 1000000u : 0;
    if (r.state_bytes && !scorer_state_fits(t->scorer, s->state, s->n_columns)) {
        score_streams_remove(t, r.client, r.name);
        return damaged(e);
    }
    return 0;
}

int score_stream_file_read(struct score_streams *t, const void *p, size_t n, uint64_t model,
                           struct score_stream_clock c, size_t *whole, struct err *e)
{
    struct rd in = rd_make(p, n);
    const uint8_t *magic = rd_take(&in, sizeof(MAGIC) - 1);
    uint64_t of = rd_u64(&in);
    *whole = 0;
    if (in.bad || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0)
        return err_set(e, SHOAL_EFORMAT, "not a file of streams");
    if (of != model)
        return err_set(e, SHOAL_EFORMAT, "its streams belong to another model");
    *whole = rd_pos(&in);
    while (rd_left(&in) > 0) {
        uint32_t size = rd_u32(&in);
        uint64_t hash = rd_u64(&in);
        const uint8_t *body = rd_take(&in, size);
        if (!body || hash_large(body, size, 0) != hash)
            return 0; /* the process was killed while it wrote this */
        int rc = score_stream_file_take(t, body, size, c, e);
        if (rc < 0)
            return rc;
        *whole = rd_pos(&in);
    }
    return 0;
}
