/* test_registry_apart.c - models in processes of their own, with a simulated process: who gets
 * them, and when a crashed one is restarted. */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/registry.h"
#include "support/watchdog.h"

#define PATH SHOAL_TEST_DATA "/refs/qwen3.gguf"

struct process {                               /* of the model */
    _Atomic int n_opened, n_closed, n_crashes; /* crashes: of the next opens */
    _Atomic uint64_t serial, opened_ns[16];
    _Atomic bool hold;       /* an open waits */
    _Atomic bool until_stop; /* until the registry is closed: then it is cancelled */
    _Atomic bool waits;
};

static int open_process(void *ctx, const struct registry_slot *s, const char *name, size_t memory,
                        const char *cache_dir, const _Atomic bool *stop,
                        struct registry_apart_info *out, struct err *e)
{
    struct process *p = ctx;
    (void)memory;
    (void)cache_dir;
    assert(strcmp(name, "m") == 0 && strcmp(s->path, PATH) == 0);
    if (p->until_stop) {
        p->waits = true;
        WAIT_UNTIL(*stop);
        return err_set(e, SHOAL_ECANCELLED, "loading was cancelled");
    }
    WAIT_UNTIL(!p->hold);
    p->serial = s->serial;
    p->opened_ns[p->n_opened % 16] = clock_ns();
    p->n_opened++;
    *out = (struct registry_apart_info){.kinds = SHOAL_KIND_GENERATE, .n_ctx = 128, .bytes = 1000};
    if (p->n_crashes == 0)
        return 0;
    p->n_crashes--;
    out->crashed = true;
    return err_set(e, SHOAL_EIO, "ended by signal 11");
}

static void close_process(void *ctx, uint64_t serial)
{
    struct process *p = ctx;
    p->n_closed += serial == p->serial;
}

static struct registry *open_registry(struct process *p, struct registry_apart *apart)
{
    struct registry *r = NULL;
    *apart = (struct registry_apart){p, open_process, close_process};
    const struct registry_opts o = {.cache_dir = "", .apart = apart};
    assert_int_equal(registry_create(&r, &o, NULL), 0);
    const struct registry_spec spec = {.name = "m", .path = PATH, .apart = true, .pinned = true};
    assert_int_equal(registry_add(r, &spec, NULL), 0);
    return r;
}

static bool is_in(struct registry *r, enum registry_state want)
{
    enum registry_state s;
    return registry_state(r, "m", &s) && s == want;
}

struct figures {
    uint64_t n_restarts;
    size_t bytes;
    char error[320];
};

static void look(void *ctx, const struct registry_model *m)
{
    struct figures *f = ctx;
    f->n_restarts = m->slot->n_restarts;
    f->bytes = m->slot->bytes;
    snprintf(f->error, sizeof(f->error), "%s", m->slot->error);
}

static struct figures figures_of(struct registry *r)
{
    struct figures f = {0};
    registry_each(r, look, &f);
    return f;
}

static void test_only_those_who_can_get_one(void **state)
{
    (void)state;
    struct process p = {0};
    struct registry_apart apart;
    struct registry *r = open_registry(&p, &apart);
    struct registry_model *m = NULL;
    struct err e = {0};
    WAIT_UNTIL(is_in(r, REGISTRY_READY));
    assert_true(registry_is_apart(r, "m", SHOAL_KIND_GENERATE));
    assert_false(registry_is_apart(r, "other", SHOAL_KIND_GENERATE));
    assert_int_equal(registry_get(r, "m", SHOAL_KIND_GENERATE, &m, NULL, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "process of its own"));
    assert_int_equal(registry_get_any(r, "m", SHOAL_KIND_EMBED, &m, NULL, &e), SHOAL_EINVAL);
    assert_int_equal(registry_get_any(r, "m", SHOAL_KIND_GENERATE, &m, NULL, &e), 0);
    assert_null(registry_engine(m));
    assert_int_equal(figures_of(r).bytes, 1000);
    registry_put(m);
    const struct registry_spec here = {.name = "here", .path = PATH};
    assert_int_equal(registry_add(r, &here, &e), SHOAL_EINVAL); /* here or apart, not both */
    assert_int_equal(registry_unload(r, "m", &e), 0);
    WAIT_UNTIL(is_in(r, REGISTRY_UNLOADED));
    assert_int_equal(p.n_closed, 1);
    assert_int_equal(figures_of(r).bytes, 0);
    registry_destroy(r);
    assert_int_equal(p.n_closed, 1);
}

static void test_a_crash_is_followed_by_a_restart(void **state)
{
    (void)state;
    struct process p = {0};
    struct registry_apart apart;
    struct registry *r = open_registry(&p, &apart);
    struct registry_model *m = NULL;
    WAIT_UNTIL(is_in(r, REGISTRY_READY));
    assert_int_equal(registry_get_any(r, "m", SHOAL_KIND_GENERATE, &m, NULL, NULL), 0);
    for (int i = 1; i <= 3; i++) { /* in use or not */
        uint64_t began = clock_ns();
        p.hold = true; /* until we have looked */
        registry_apart_lost(r, p.serial, "it was ended by signal 9");
        assert_false(is_in(r, REGISTRY_READY));
        assert_non_null(strstr(figures_of(r).error, "signal 9"));
        p.hold = false;
        WAIT_UNTIL(is_in(r, REGISTRY_READY));
        assert_int_equal(p.n_opened, 1 + i);
        /* not too early: 100 ms, doubled with every consecutive crash */
        assert_true(p.opened_ns[i] - began >= 100000000u << (i - 1));
        assert_int_equal(figures_of(r).n_restarts, i);
        assert_int_equal(figures_of(r).bytes, 1000);
        assert_string_equal(figures_of(r).error, "");
    }
    registry_apart_lost(r, p.serial + 1, "somebody else");
    assert_true(is_in(r, REGISTRY_READY));
    registry_put(m);
    registry_destroy(r);
    assert_int_equal(p.n_closed, 1);
}

struct waiter {
    struct registry_wait wait;
    _Atomic int rc;
    _Atomic bool called;
};

static void on_loaded(struct registry_wait *w, struct registry_model *m, int rc)
{
    struct waiter *x = (struct waiter *)(void *)w;
    x->rc = rc;
    x->called = true;
    if (rc == 0)
        registry_put(m);
}

static void test_crashes_at_load_are_given_up(void **state)
{
    (void)state;
    struct process p = {.n_crashes = 100};
    struct waiter w = {.wait = {.fn = on_loaded}};
    struct registry_apart apart;
    struct registry *r = open_registry(&p, &apart);
    struct registry_model *m = NULL;
    assert_int_equal(registry_get_any(r, "m", SHOAL_KIND_GENERATE, &m, &w.wait, NULL), SHOAL_EBUSY);
    WAIT_UNTIL(w.called); /* requests wait through the restarts, but no longer */
    assert_int_equal(w.rc, SHOAL_EIO);
    assert_true(is_in(r, REGISTRY_FAILED));
    assert_int_equal(p.n_opened, 4);
    assert_non_null(strstr(figures_of(r).error, "signal 11"));
    assert_true(registry_ready(r)); /* the others are not delayed */
    p.n_crashes = 2;                /* reloading it resets the attempts */
    assert_int_equal(registry_load(r, "m", NULL), 0);
    WAIT_UNTIL(is_in(r, REGISTRY_READY));
    assert_int_equal(p.n_opened, 7);
    registry_destroy(r);
}

/* Stopping a server while it loads is not an error, and none is logged. */
static void test_a_cancelled_load_is_no_error(void **state)
{
    (void)state;
    struct process p = {.until_stop = true};
    struct registry_apart apart;
    char text[4096];
    enum log_level level;
    enum log_format format;
    FILE *log = tmpfile();
    int stderr_was = dup(STDERR_FILENO);
    assert_non_null(log);
    log_settings(&level, &format);
    log_setup(LOG_LEVEL_INFO, format);
    struct registry *r = open_registry(&p, &apart);
    WAIT_UNTIL(p.waits);
    fflush(stderr);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    registry_destroy(r);
    assert_true(dup2(stderr_was, STDERR_FILENO) >= 0);
    close(stderr_was);
    log_setup(level, format);
    ssize_t n = pread(fileno(log), text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    fclose(log);
    assert_non_null(strstr(text, "loading was cancelled"));
    assert_null(strstr(text, "lvl=error"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_those_who_can_get_one),
        cmocka_unit_test(test_a_crash_is_followed_by_a_restart),
        cmocka_unit_test(test_crashes_at_load_are_given_up),
        cmocka_unit_test(test_a_cancelled_load_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
