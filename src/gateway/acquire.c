/* acquire.c - see acquire.h. */
#include "gateway/acquire.h"

#include <stdio.h>

#define MAX_HELD_TASKS 16u /* more are not kept waiting for the turn to end */

void acquire_wake(struct loop_task *t)
{
    struct gw_loop *gl = LOOP_OF(t, struct gw_loop, wake_engines);
    for (uint32_t i = 0; i < gl->n_to_wake; i++) {
        shoal_engine_wake(registry_engine(gl->to_wake[i]));
        registry_put(gl->to_wake[i]);
    }
    gl->n_to_wake = gl->n_held_tasks = 0;
}

void acquire_wake_later(struct gw_loop *gl, struct registry_model *m)
{
    uint32_t i = 0;
    while (i < gl->n_to_wake && gl->to_wake[i] != m)
        i++;
    if (i == GW_MAX_WAKES) {
        shoal_engine_wake(registry_engine(m));
        return;
    }
    if (i == gl->n_to_wake) {
        registry_hold(m); /* its task may be done before */
        gl->to_wake[gl->n_to_wake++] = m;
    }
    if (++gl->n_held_tasks >= MAX_HELD_TASKS)
        acquire_wake(&gl->wake_engines);
    else
        loop_later(gl->loop, &gl->wake_engines);
}

static void refuse(struct call *c, int rc, const char *msg)
{
    if (!c->req)
        return;
    if (rc == SHOAL_ENOTFOUND)
        call_fail(c, 404, NULL, "model", "model_not_found", "%s", msg);
    else if (rc == SHOAL_EINVAL)
        call_fail(c, 400, NULL, "model", "invalid_value", "%s", msg);
    else
        call_fail(c, 503, NULL, NULL, "model_failed", "%s", msg);
}

static void give(struct acquire *a, struct registry_model *m)
{
    struct err e = {0};
    if (m && a->call->req && registry_check(m, a->kind, &e) < 0)
        refuse(a->call, SHOAL_EINVAL, e.msg);
    if (m && !a->call->req) { /* the client is gone, or was refused */
        registry_put(m);
        m = NULL;
    }
    if (m)
        a->call->model_name = m->name;
    a->ready(a, m);
}

static void on_loaded(struct loop_task *t)
{
    struct acquire *a = LOOP_OF(t, struct acquire, loaded);
    loop_timer_clear(a->call->gl->loop, &a->timer);
    if (a->rc < 0)
        refuse(a->call, a->rc == SHOAL_EINVAL ? SHOAL_EIO : a->rc, a->text);
    give(a, a->rc < 0 ? NULL : a->model);
}

/* On the registry's thread. */
static void on_waited(struct registry_wait *w, struct registry_model *m, int rc)
{
    struct acquire *a = LOOP_OF(w, struct acquire, wait);
    a->rc = rc;
    a->model = m;
    if (rc < 0)
        snprintf(a->text, sizeof(a->text), "the model could not be loaded: %.280s", m->slot->error);
    loop_post(a->call->gl->loop, &a->loaded);
}

/* The model takes longer to load than a client should wait. */
static void on_timer(struct loop_timer *t)
{
    struct acquire *a = LOOP_OF(t, struct acquire, timer);
    if (a->call->req)
        call_refuse(a->call, GW_REFUSED_NOT_LOADED, 503, 2, "%s", a->wait_text);
}

void acquire_model(struct acquire *a, struct call *c, const char *name, enum shoal_kind kind,
                   void (*ready)(struct acquire *a, struct registry_model *m))
{
    struct err e = {0};
    struct registry_model *m = NULL;
    a->call = c;
    a->ready = ready;
    a->kind = kind;
    a->wait.fn = on_waited;
    a->loaded.fn = on_loaded;
    a->timer.fn = on_timer;
    int rc = registry_get(c->gl->gw->registry, name, kind, &m, &a->wait, &e);
    if (rc == SHOAL_EBUSY) { /* on_loaded runs on this thread: not before we return */
        snprintf(a->wait_text, sizeof(a->wait_text), "%s", e.msg);
        uint32_t ms = c->gl->config->load_wait_ms;
        if (ms > 0)
            loop_timer_set(c->gl->loop, &a->timer, loop_now(c->gl->loop) + (uint64_t)ms * 1000000u);
        else
            on_timer(&a->timer); /* however soon it is there: nobody waits */
        return;
    }
    if (rc < 0)
        refuse(c, rc, e.msg);
    give(a, m);
}
