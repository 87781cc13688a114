/* acquire.c - see acquire.h. */
#include "flow/acquire.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static void fail(struct acquire *a, const struct failure *f)
{
    if (a->over)
        return;
    a->over = true;
    a->failed(a, f);
}

static void refuse(struct acquire *a, int rc, const char *msg)
{
    struct failure f;
    if (rc == SHOAL_ENOTFOUND)
        failure_set(&f, FAILURE_NOT_FOUND, rc, "model", "model_not_found", "%s", msg);
    else if (rc == SHOAL_ECHANGED) /* an update is under way; another node may have it */
        failure_set(&f, FAILURE_UNAVAILABLE, rc, "model", ACQUIRE_NOT_SERVED, "%s", msg);
    else if (rc == SHOAL_EINVAL)
        failure_set(&f, FAILURE_INVALID, rc, "model", "invalid_value", "%s", msg);
    else
        failure_set(&f, FAILURE_UNAVAILABLE, rc, NULL, "model_failed", "%s", msg);
    fail(a, &f);
}

/* The request continues with the same bytes that another node started it with, or not at all. */
static void check_version(struct acquire *a, const struct registry_model *m)
{
    const uint8_t *sum = registry_sum(m);
    struct failure f;
    if (!a->version || (sum && memcmp(sum, a->version, SHA256_BYTES) == 0))
        return;
    if (sum)
        failure_set(&f, FAILURE_NOT_FOUND, SHOAL_ENOTFOUND, "model", ACQUIRE_NO_VERSION,
                    "the model '%s' has another version here", m->name);
    else
        failure_set(&f, FAILURE_NOT_LOADED, SHOAL_EBUSY, "model", "model_loading",
                    "the version of the model '%s' is not known yet", m->name);
    fail(a, &f);
}

static void give(struct acquire *a, struct registry_model *m)
{
    struct err e = {0};
    if (m)
        check_version(a, m);
    if (m && !a->over && registry_check(m, a->kind, &e) < 0)
        refuse(a, SHOAL_EINVAL, e.msg);
    if (m && a->over) {
        registry_put(m);
        m = NULL;
    }
    a->ready(a, m);
}

static void on_loaded(struct executor_task *t)
{
    struct acquire *a = EXECUTOR_OF(t, struct acquire, loaded);
    executor_timer_clear(a->owner->executor, &a->timer);
    if (a->rc < 0) /* the file is bad, not the request */
        refuse(a, a->rc == SHOAL_EINVAL ? SHOAL_EIO : a->rc, a->text);
    give(a, a->rc < 0 ? NULL : a->model);
}

/* On the registry's thread. */
static void on_waited(struct registry_wait *w, struct registry_model *m, int rc)
{
    struct acquire *a = EXECUTOR_OF(w, struct acquire, wait);
    a->rc = rc;
    a->model = m;
    if (rc < 0)
        snprintf(a->text, sizeof(a->text), "the model could not be loaded: %.280s", m->slot->error);
    executor_post(a->owner->executor, &a->loaded);
}

/* The model takes longer to load than a client should wait. */
static void on_timer(struct executor_timer *t)
{
    struct acquire *a = EXECUTOR_OF(t, struct acquire, timer);
    struct failure f;
    failure_set(&f, FAILURE_NOT_LOADED, SHOAL_EBUSY, NULL, "model_loading", "%s", a->wait_text);
    f.retry_after_s = 2;
    fail(a, &f);
}

void acquire_model(struct acquire *a, const char *name, enum shoal_kind kind)
{
    struct err e = {0};
    struct registry_model *m = NULL;
    a->kind = kind;
    a->wait.fn = on_waited;
    a->loaded.fn = on_loaded;
    a->timer.fn = on_timer;
    struct registry *all = a->owner->flow->registry;
    const struct registry_want want = {.name = name,
                                       .kind = kind,
                                       .version = a->version,
                                       .epoch = a->epoch,
                                       .may_be_old = a->may_be_old,
                                       .key = a->key,
                                       .beginnings = a->beginnings,
                                       .n_beginnings = a->n_beginnings,
                                       .any = a->any};
    int rc = registry_get_wanted(all, &want, &m, &a->wait, &e);
    if (rc == SHOAL_EBUSY) { /* on_loaded runs on this thread: not before we return */
        uint32_t ms = a->owner->load_wait_ms;
        snprintf(a->wait_text, sizeof(a->wait_text), "%s", e.msg);
        if (ms > 0)
            executor_timer_set(a->owner->executor, &a->timer, clock_ns() + (uint64_t)ms * 1000000u);
        else
            on_timer(&a->timer); /* requests do not wait here, however fast it loads */
        return;
    }
    if (rc < 0)
        refuse(a, rc, e.msg);
    give(a, m);
}

void acquire_cancel(struct acquire *a)
{
    a->over = true;
}
