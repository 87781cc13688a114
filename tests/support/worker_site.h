/* worker_site.h - a server's side of worker processes in a test: workers, a registry, and one loop
 * that the test drives.  The test program is also the worker: started as `shoal worker`, it must
 * play one.
 *
 * Include it after cmocka.h. */
#ifndef SHOAL_TESTS_WORKER_SITE_H
#define SHOAL_TESTS_WORKER_SITE_H

#include <stdio.h>
#include <string.h>

#include "cluster/replica.h"
#include "cluster/worker/worker_links.h"
#include "cluster/worker/workers.h"
#include "flow/dispatch.h"
#include "flow/flow.h"
#include "host/registry.h"
#include "net/loop.h"
#include "support/recorder.h"

static struct {
    struct loop *loop;
    struct workers *workers;
    struct registry *registry;
    struct worker_links *links;
    struct flow flow;
    struct flow_owner owner;
    struct replica_counts counts;
} worker_site;

/* cache_dir: NULL: none.  ring_bytes: 0: as usual. */
static inline void worker_site_open(const char *cache_dir, size_t ring_bytes)
{
    const struct workers_opts o = {.silent_ms = 60000, .ring_bytes = ring_bytes};
    struct err e = {0};
    memset(&worker_site, 0, sizeof(worker_site));
    assert_int_equal(loop_create(&worker_site.loop, &e), 0);
    assert_int_equal(workers_create(&worker_site.workers, &o, &e), 0);
    const struct registry_opts ro = {.cache_dir = cache_dir ? cache_dir : "",
                                     .apart = workers_apart(worker_site.workers)};
    assert_int_equal(registry_create(&worker_site.registry, &ro, &e), 0);
    workers_set_registry(worker_site.workers, worker_site.registry);
    worker_site.flow.registry = worker_site.registry;
    flow_owner_init(&worker_site.owner, &worker_site.flow, loop_executor(worker_site.loop));
    worker_site.owner.load_wait_ms = 60000;
    assert_int_equal(worker_links_create(&worker_site.links, worker_site.loop, worker_site.workers,
                                         worker_site.registry, 60000, &worker_site.counts, &e),
                     0);
    worker_site.owner.apart = worker_links_dispatch(worker_site.links);
}

/* Ends everything but the workers themselves. */
static inline void worker_site_stop(void)
{
    workers_release(worker_site.workers);
    worker_links_destroy(worker_site.links);
    registry_destroy(worker_site.registry);
    worker_site.links = NULL;
    worker_site.registry = NULL;
}

static inline void worker_site_close(void)
{
    worker_site_stop();
    workers_destroy(worker_site.workers);
    assert_int_equal(worker_site.owner.n_jobs, 0);
    flow_owner_fini(&worker_site.owner);
    loop_destroy(worker_site.loop);
}

static inline void worker_site_add(const struct registry_spec *spec)
{
    struct err e = {0};
    if (registry_add(worker_site.registry, spec, &e) < 0)
        fail_msg("%s", e.msg);
}

struct worker_site_seen { /* of a model */
    const char *name;
    uint64_t n_restarts, requests, errors, cancelled, prompt_tokens, generated_tokens;
    uint32_t in_flight, n_ctx;
    double prefill_ns;
    char error[320];
};

static inline void worker_site_look(void *ctx, const struct registry_model *m)
{
    struct worker_site_seen *s = ctx;
    if (strcmp(m->name, s->name) != 0)
        return;
    s->n_restarts = m->slot->n_restarts;
    s->requests = m->stats.requests;
    s->errors = m->stats.errors;
    s->cancelled = m->stats.cancelled;
    s->prompt_tokens = m->stats.prompt_tokens;
    s->generated_tokens = m->stats.generated_tokens;
    s->in_flight = m->stats.in_flight;
    s->n_ctx = m->slot->n_ctx;
    s->prefill_ns = m->slot->prefill_ns;
    snprintf(s->error, sizeof(s->error), "%s", m->slot->error);
}

static inline struct worker_site_seen worker_site_seen(const char *name)
{
    struct worker_site_seen s = {.name = name};
    registry_each(worker_site.registry, worker_site_look, &s);
    return s;
}

static inline bool worker_site_is_ready(const char *name)
{
    enum registry_state s;
    return registry_state(worker_site.registry, name, &s) && s == REGISTRY_READY;
}

/* A request to continue "hello", or to classify two texts. */
static inline struct request *worker_site_request(const char *model, enum request_kind kind)
{
    struct request *r = flow_take_request(&worker_site.owner);
    r->kind = kind;
    r->model = model;
    if (kind == REQUEST_GENERATE) {
        struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
        *p = (struct request_prompt){.text = "hello", .text_bytes = 5};
        r->generate.prompts = p;
        r->generate.n_prompts = r->generate.n = 1;
        r->generate.max_tokens = 8;
        r->generate.ignore_end = true;
    } else if (kind == REQUEST_INFER) {
        struct request_input *in = arena_zalloc(&r->arena, 2 * sizeof(*in));
        in[0] = (struct request_input){.text = "a cat", .text_bytes = 5};
        in[1] = (struct request_input){.text = "a dog", .text_bytes = 5};
        r->infer.kind = SHOAL_KIND_CLASSIFY;
        r->infer.inputs = in;
        r->infer.n_inputs = 2;
    }
    return r;
}

/* Whether the workers take it. */
static inline bool worker_site_send(struct recorder *rec, const char *model, enum request_kind kind)
{
    struct request *r = worker_site_request(model, kind);
    struct dispatch *d = worker_site.owner.apart;
    recorder_init(rec);
    bool taken = d->ops->run(d, &worker_site.owner, r, &rec->sink);
    if (!taken)
        flow_give_request(&worker_site.owner, r);
    return taken;
}

static inline void worker_site_until_closed(struct recorder *rec)
{
    for (int i = 0; i < 60000 && rec->n_closed == 0; i++)
        loop_turn(worker_site.loop, 1);
    assert_int_equal(rec->n_closed, 1);
    assert_null(rec->sink.job);
}

#endif
