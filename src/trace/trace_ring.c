/* trace_ring.c - see trace_ring.h. */
#include "trace/trace_ring.h"

#include <pthread.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "trace/trace_votes.h"

struct trace_ring {
    struct trace_keeper keeper; /* first */
    struct trace_ring_opts opts;
    pthread_mutex_t lock;
    struct trace **slots; /* [max_traces] */
    uint32_t first, n;    /* the oldest */
    size_t bytes;
    struct trace_votes *votes;
};

static struct trace *slot(const struct trace_ring *r, uint32_t i)
{
    return r->slots[(r->first + i) % r->opts.max_traces];
}

/* With the lock. */
static void drop_oldest(struct trace_ring *r)
{
    struct trace *t = slot(r, 0);
    r->bytes -= trace_bytes(t);
    r->first = (r->first + 1) % r->opts.max_traces;
    r->n--;
    trace_unref(t);
}

static void store(struct trace_ring *r, struct trace *t)
{
    const size_t bytes = trace_bytes(t);
    pthread_mutex_lock(&r->lock);
    while (r->n > 0 && (r->n == r->opts.max_traces || r->bytes + bytes > r->opts.max_bytes))
        drop_oldest(r);
    if (r->n < r->opts.max_traces && bytes <= r->opts.max_bytes) {
        r->slots[(r->first + r->n++) % r->opts.max_traces] = trace_ref(t);
        r->bytes += bytes;
    }
    pthread_mutex_unlock(&r->lock);
}

static bool passed_on(const struct trace_ring_opts *o, const struct trace_view *v)
{
    const uint64_t took = v->spans[TRACE_ROOT].end_ns - v->spans[TRACE_ROOT].start_ns;
    return v->from.sampled || v->spans[TRACE_ROOT].failed || (o->slow_ns && took >= o->slow_ns);
}

static void keep(struct trace_keeper *k, struct trace *t)
{
    struct trace_ring *r = (struct trace_ring *)(void *)k; /* its first member */
    const struct trace_view v = trace_look(t);
    store(r, t);
    if (r->opts.after && passed_on(&r->opts, &v))
        r->opts.after->keep(r->opts.after, t);
}

int trace_ring_create(struct trace_ring **out, const struct trace_ring_opts *o, struct err *e)
{
    struct trace_ring *r = mem_zalloc(sizeof(*r));
    struct trace **slots =
        r ? mem_zalloc_n(o->max_traces ? o->max_traces : 1, sizeof(struct trace *)) : NULL;
    *out = NULL;
    if (!slots) {
        mem_free(r);
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u traces", o->max_traces);
    }
    const int rc = trace_votes_create(&r->votes, o->votes_file, o->votes_bytes, e);
    if (rc < 0) {
        mem_free(slots);
        mem_free(r);
        return rc;
    }
    r->keeper = (struct trace_keeper){.keep = keep, .ratio = o->ratio};
    r->opts = *o;
    r->opts.votes_file = NULL; /* the caller's */
    r->slots = slots;
    pthread_mutex_init(&r->lock, NULL);
    *out = r;
    return 0;
}

void trace_ring_destroy(struct trace_ring *r)
{
    if (!r)
        return;
    while (r->n > 0)
        drop_oldest(r);
    trace_votes_destroy(r->votes);
    pthread_mutex_destroy(&r->lock);
    mem_free(r->slots);
    mem_free(r);
}

struct trace_votes *trace_ring_votes(const struct trace_ring *r)
{
    return r->votes;
}

struct trace_keeper *trace_ring_keeper(struct trace_ring *r)
{
    return r ? &r->keeper : NULL;
}

static bool is_of(const struct trace_view *v, const char *client)
{
    return !client || strcmp(v->client, client) == 0;
}

struct trace *trace_ring_find(struct trace_ring *r, const char *id, const char *client)
{
    struct trace *found = NULL;
    char hex[33];
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = r->n; i-- > 0 && !found;) {
        const struct trace_view v = trace_look(slot(r, i));
        trace_context_id(hex, &v.from);
        if ((strcmp(v.request, id) == 0 || strcmp(hex, id) == 0) && is_of(&v, client))
            found = trace_ref(slot(r, i));
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

uint32_t trace_ring_last(struct trace_ring *r, const char *client, struct trace **out, uint32_t max)
{
    uint32_t n = 0;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = r->n; i-- > 0 && n < max;) {
        const struct trace_view v = trace_look(slot(r, i));
        if (is_of(&v, client))
            out[n++] = trace_ref(slot(r, i));
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}
