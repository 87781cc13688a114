/* score_stream.c - see score_stream.h. */
#include "score/score_stream.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "score/score_stream_int.h"

#define MAX_STREAMS 4096u
#define MAX_BYTES ((size_t)256 << 20)
#define IDLE_NS 3600000000000ull
/* ---- the table ---- */

uint32_t score_streams_needed(const struct score_streams *t)
{
    return t->info.stateful || t->info.window <= t->info.hop ? t->info.hop : t->info.window;
}

static void free_stream(struct score_stream *s)
{
    if (!s)
        return;
    mem_free(s->name);
    mem_free(s->state);
    mem_free(s->waiting);
    mem_free(s);
}

static struct score_stream **bucket_of(struct score_streams *t, uint64_t client, const char *name)
{
    return &t->buckets[hash_bytes(name, strlen(name), client) & (SCORE_STREAM_BUCKETS - 1)];
}

static struct score_stream *find(struct score_streams *t, uint64_t client, const char *name)
{
    struct score_stream *s = *bucket_of(t, client, name);
    while (s && (s->client != client || strcmp(s->name, name) != 0))
        s = s->next;
    return s;
}

bool score_streams_is_over(const struct score_streams *t, const struct score_stream *s,
                           uint64_t now_ns)
{
    return now_ns > s->used_ns && now_ns - s->used_ns > t->limits.idle_ns;
}

/* Of a client's share: streams and their bytes are limited, so both count. */
static size_t cost(const struct score_streams *t, size_t bytes)
{
    return bytes + t->limits.max_bytes / t->limits.max_streams;
}

/* at: where the table points to it. */
static void drop(struct score_streams *t, struct score_stream **at)
{
    struct score_stream *s = *at;
    *at = s->next;
    t->n--;
    t->bytes -= s->bytes;
    holdings_sub(&t->holdings, s->client, cost(t, s->bytes));
    free_stream(s);
}

static void sweep(struct score_streams *t, uint64_t now_ns)
{
    for (uint32_t i = 0; i < SCORE_STREAM_BUCKETS; i++)
        for (struct score_stream **at = &t->buckets[i]; *at;)
            if (score_streams_is_over(t, *at, now_ns))
                drop(t, at);
            else
                at = &(*at)->next;
    t->swept_ns = now_ns;
}

static bool is_full(const struct score_streams *t, size_t bytes)
{
    return t->n >= t->limits.max_streams || bytes > t->limits.max_bytes - t->bytes;
}

/* For a client that has less than another, also with one more: the other's least used streams go.
 */
static void make_room(struct score_streams *t, uint64_t client, size_t bytes)
{
    while (is_full(t, bytes)) {
        const uint64_t most = holdings_most(&t->holdings, client);
        struct score_stream **old = NULL;
        if (holdings_held(&t->holdings, client) + cost(t, bytes) >=
            holdings_held(&t->holdings, most))
            return;
        for (uint32_t i = 0; i < SCORE_STREAM_BUCKETS; i++)
            for (struct score_stream **at = &t->buckets[i]; *at; at = &(*at)->next)
                if ((*at)->client == most && (!old || (*at)->used_ns < (*old)->used_ns))
                    old = at;
        drop(t, old);
    }
}

void score_streams_remove(struct score_streams *t, uint64_t client, const char *name)
{
    struct score_stream **at = bucket_of(t, client, name);
    while (*at && ((*at)->client != client || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    if (*at)
        drop(t, at);
}

int score_streams_add(struct score_streams *t, uint64_t client, const char *name,
                      uint32_t n_columns, struct score_stream **out, struct err *e)
{
    size_t state = scorer_state_bytes(t->scorer, n_columns);
    size_t waiting = (size_t)score_streams_needed(t) * n_columns * sizeof(double);
    size_t bytes = sizeof(struct score_stream) + strlen(name) + 1 + state + waiting;
    *out = NULL;
    make_room(t, client, bytes);
    if (is_full(t, bytes))
        return err_set(e, SHOAL_EBUSY,
                       "%u streams are open, which is the limit; reuse one, or wait until an "
                       "unused one ends",
                       t->n);
    struct score_stream *s = mem_zalloc(sizeof(*s));
    if (s) {
        s->name = mem_strdup(name);
        s->state = state ? mem_aligned(state) : NULL;
        s->waiting = mem_zalloc(waiting);
    }
    if (!s || !s->name || !s->waiting || (state && !s->state) ||
        !holdings_add(&t->holdings, client, cost(t, bytes))) {
        free_stream(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a stream");
    }
    if (state)
        memset(s->state, 0, state);
    scorer_reset(t->scorer, s->state, n_columns);
    s->client = client;
    s->n_columns = n_columns;
    s->state_bytes = state;
    s->bytes = bytes;
    struct score_stream **at = bucket_of(t, client, name);
    s->next = *at;
    *at = s;
    t->n++;
    t->bytes += bytes;
    *out = s;
    return 0;
}

int score_streams_create(struct score_streams **out, const struct scorer *s,
                         const struct score_streams_opts *o, struct err *e)
{
    struct score_streams *t = *out = mem_zalloc(sizeof(*t));
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for streams");
    t->scorer = s;
    t->info = scorer_info(s);
    t->limits = o ? *o : (struct score_streams_opts){0};
    t->limits.max_streams = t->limits.max_streams ? t->limits.max_streams : MAX_STREAMS;
    t->limits.max_bytes = t->limits.max_bytes ? t->limits.max_bytes : MAX_BYTES;
    t->limits.idle_ns = t->limits.idle_ns ? t->limits.idle_ns : IDLE_NS;
    return 0;
}

void score_streams_destroy(struct score_streams *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < SCORE_STREAM_BUCKETS; i++)
        while (t->buckets[i]) {
            struct score_stream *s = t->buckets[i];
            t->buckets[i] = s->next;
            free_stream(s);
        }
    holdings_fini(&t->holdings);
    mem_free(t);
}

uint32_t score_streams_count(const struct score_streams *t)
{
    return t->n;
}

size_t score_streams_bytes(const struct score_streams *t)
{
    return t->bytes;
}

bool score_streams_remember(const struct score_streams *t)
{
    return t->info.stateful || score_streams_needed(t) > 1;
}

/* ---- rows ---- */

size_t score_streams_room(const struct score_streams *t, size_t n_rows)
{
    return n_rows / t->info.hop + 1;
}

/* The waiting rows fill a step: scores it. */
static void step(struct score_streams *t, struct score_stream *s, double *out, void *scratch)
{
    uint32_t hop = t->info.hop, kept = score_streams_needed(t) - hop;
    if (t->info.stateful)
        scorer_step(t->scorer, s->state, s->waiting, out, scratch);
    else
        scorer_run(t->scorer, s->waiting, t->info.window, s->n_columns, out, s->state, scratch);
    memmove(s->waiting, s->waiting + (size_t)hop * s->n_columns,
            (size_t)kept * s->n_columns * sizeof(double));
    s->n_waiting = kept;
}

int64_t score_streams_feed(struct score_streams *t, const struct score_stream_rows *r, double *out,
                           void *scratch, struct err *e)
{
    struct score_stream *s = find(t, r->client, r->name);
    int64_t n = 0;
    if (s && score_streams_is_over(t, s, r->now_ns)) {
        sweep(t, r->now_ns);
        s = NULL;
    }
    if (!s) {
        if (t->n >= t->limits.max_streams || r->now_ns - t->swept_ns > t->limits.idle_ns)
            sweep(t, r->now_ns);
        int rc = score_streams_add(t, r->client, r->name, r->n_columns, &s, e);
        if (rc < 0)
            return rc;
    }
    if (s->n_columns != r->n_columns)
        return err_set(
            e, SHOAL_EINVAL,
            "the rows have %u values, but those before in the stream had %u; use another "
            "stream",
            r->n_columns, s->n_columns);
    s->used_ns = r->now_ns;
    s->n_rows += r->n_rows;
    s->changed = true;
    for (size_t i = 0; i < r->n_rows; i++) {
        memcpy(s->waiting + (size_t)s->n_waiting++ * s->n_columns, r->values + i * s->n_columns,
               s->n_columns * sizeof(double));
        if (s->n_waiting == score_streams_needed(t))
            step(t, s, out + (size_t)n++ * t->info.n_outputs, scratch);
    }
    return n;
}
