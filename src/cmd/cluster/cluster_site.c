/* cluster_site.c - see cluster_site.h. */
#include "cmd/cluster/cluster_site.h"

#include <stdio.h>

#include "base/clock.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"
#include "cmd/cluster/cluster_opts.h"
#include "cmd/cmd.h"

#define MS_NS 1000000u
#define LEAST_RETRY_MS 15000u /* for a change that others' changes hold up */
#define MAX_WAIT_MS 4000u     /* a request to a server that has died is never answered */
#define LISTEN_MS 3000u       /* longer than the pause between two heartbeats */

static void on_heartbeat(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct cluster_site *s = ctx;
    enum controller_news news;
    struct node_state state;
    struct arena a;
    struct err e = {0};
    (void)subject;
    /* the controller reports damaged heartbeats */
    if (s->view)
        (void)!controller_view_hear(s->view, bytes, n, clock_ns(), &news, NULL, &e);
    arena_init(&a, NODE_STATE_MAX_BYTES * 8);
    if (node_state_read(&state, &a, bytes, n, &e) == 0) {
        const struct desired_heard h = {.version = state.desired,
                                        .writer = state.desired_fence,
                                        .fence = state.fence,
                                        .known_fence = state.known_fence};
        desired_store_heard(s->store, &h);
    }
    arena_fini(&a);
}

static void listen_for(struct cluster_site *s, uint32_t ms)
{
    for (uint64_t now = clock_ns(), end = now + (uint64_t)ms * MS_NS; now < end; now = clock_ns())
        executor_queue_turn(&s->queue, (int)((end - now) / MS_NS) + 1);
}

uint32_t cluster_site_wait_ms(const struct opts *o)
{
    const uint32_t timeout_ms = opts_u32(o, "timeout") * 1000;
    return timeout_ms < MAX_WAIT_MS ? timeout_ms : MAX_WAIT_MS;
}

/* A new shoal, or has NATS lost what its members know? */
static void ask_members(void *ctx)
{
    listen_for(ctx, LISTEN_MS);
}

int cluster_site_open(struct cluster_site *s, const struct opts *o, bool hears)
{
    struct err e = {0};
    *s = (struct cluster_site){.o = o};
    if (executor_queue_init(&s->queue, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    s->queued = true;
    int rc = cluster_opts_connect(&s->bus, o, &s->queue.executor);
    if (rc != CMD_OK)
        return rc;
    const uint32_t timeout_ms = opts_u32(o, "timeout") * 1000;
    const uint32_t wait_ms = cluster_site_wait_ms(o);
    const uint32_t retry_ms = timeout_ms > LEAST_RETRY_MS ? timeout_ms : LEAST_RETRY_MS;
    const struct desired_store_opts so = {.bus = s->bus,
                                          .wait_ms = wait_ms,
                                          .retry_ms = retry_ms,
                                          .listen = ask_members,
                                          .listen_ctx = s};
    if (desired_store_open(&s->store, &so, NULL, NULL, NULL, &e) < 0 ||
        (hears && controller_view_create(&s->view, &e) < 0) ||
        bus_subscribe(s->bus, "hb.*", on_heartbeat, s, NULL, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return CMD_OK;
}

void cluster_site_close(struct cluster_site *s)
{
    desired_store_close(s->store);
    bus_close(s->bus);
    while (s->queued && executor_queue_run(&s->queue))
        ;
    if (s->queued)
        executor_queue_fini(&s->queue);
    controller_view_destroy(s->view);
}

int cluster_site_change(struct cluster_site *s, desired_update_fn fn, void *ctx,
                        struct desired **out)
{
    struct err e = {0};
    if (desired_store_update(s->store, 0, fn, ctx, out, &e) < 0)
        return cmd_fail(s->o->page, "%s", e.msg);
    return CMD_OK;
}

int cluster_site_read(struct desired_store *s, const struct opts *o, struct desired **out,
                      struct err *e)
{
    struct err unsure = {0};
    int rc = desired_store_load(s, out, &unsure, e);
    if (rc == 0 && unsure.code)
        fprintf(stderr, "shoal %s: this state may be old, nobody could confirm it: %s\n",
                o->page->command, unsure.msg);
    return rc;
}

int cluster_site_load(struct cluster_site *s, struct desired **out)
{
    struct err e = {0};
    int rc = cluster_site_read(s->store, s->o, out, &e);
    if (rc == SHOAL_ENOTFOUND)
        rc = desired_create(out, &e);
    return rc < 0 ? cmd_fail(s->o->page, "%s", e.msg) : CMD_OK;
}

int cluster_site_look(struct cluster_site *s, uint32_t ms, const struct desired *d,
                      struct controller_snapshot **out)
{
    uint64_t silent = (uint64_t)d->policy.heartbeat_ms * d->policy.silent_beats * MS_NS;
    struct err e = {0};
    listen_for(s, ms);
    uint64_t now = clock_ns();
    while (now > silent && controller_view_expire(s->view, now - silent))
        ;
    if (controller_view_take(s->view, out, &e) < 0 || controller_snapshot_read(*out, &e) < 0) {
        controller_snapshot_free(*out);
        *out = NULL;
        return cmd_fail(s->o->page, "%s", e.msg);
    }
    return CMD_OK;
}
