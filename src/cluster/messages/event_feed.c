/* event_feed.c - see event_feed.h. */
#include "cluster/messages/event_feed.h"

#include "cluster/messages/event_pb.h"

#define SCRATCH_KEPT ((size_t)16 << 10)
#define SCRATCH_BYTES ((size_t)256 << 20)
#define KEEP_BYTES ((size_t)256 << 20)

void event_feed_init(struct event_feed *f, struct sink *s)
{
    *f = (struct event_feed){.sink = s};
    arena_init(&f->scratch, SCRATCH_BYTES);
    arena_init(&f->keep, KEEP_BYTES);
}

void event_feed_fini(struct event_feed *f)
{
    arena_fini(&f->scratch);
    arena_fini(&f->keep);
}

void event_feed_fail(struct event_feed *f, const struct failure *why)
{
    if (f->quiet)
        return;
    f->quiet = true;
    f->sink->ops->fail(f->sink, why);
}

static void deliver(struct event_feed *f, const struct event_pb *e)
{
    struct sink *s = f->sink;
    f->n_pieces +=
        e->kind != EVENT_PB_START && e->kind != EVENT_PB_PROMPT && e->kind != EVENT_PB_FAILURE;
    switch (e->kind) {
    case EVENT_PB_START:
        s->ops->start(s, &e->start);
        break;
    case EVENT_PB_PLAN:
        if (s->ops->plan)
            s->ops->plan(s, &e->plan);
        break;
    case EVENT_PB_PROMPT:
        sink_tell_prompt(s, &e->prompt);
        break;
    case EVENT_PB_TOKEN:
        s->ops->token(s, &e->token);
        break;
    case EVENT_PB_RESULT:
        f->quiet |= e->result.last;
        s->ops->result(s, &e->result);
        break;
    case EVENT_PB_DONE:
        f->quiet |= e->done.last;
        s->ops->done(s, &e->done);
        break;
    case EVENT_PB_FAILURE:
        f->broke = e->failure.kind == FAILURE_INTERNAL || e->failure.kind == FAILURE_UNAVAILABLE;
        event_feed_fail(f, &e->failure);
        break;
    }
}

int event_feed_put(struct event_feed *f, const uint8_t *p, size_t n)
{
    struct event_pb_list list;
    struct event_pb e;
    arena_reset(&f->scratch, SCRATCH_KEPT);
    int rc = event_pb_open(&list, p, n, &f->scratch, &f->keep);
    for (size_t i = 0; rc == 0 && i < list.n && !f->quiet; i++) {
        rc = event_pb_get(&e, &list, i);
        if (rc == 0)
            deliver(f, &e);
    }
    return rc;
}

bool event_feed_full(const struct event_feed *f)
{
    return !f->quiet && sink_is_full(f->sink);
}

void event_feed_flush(struct event_feed *f)
{
    if (!f->quiet)
        sink_flush(f->sink);
}
