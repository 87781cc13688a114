/* test_agent.c - cluster/agent/: a node does what is assigned to it, with a real registry and a
 * small model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "cluster/agent/agent.h"
#include "cluster/agent/agent_plan.h"
#include "cluster/agent/shelf.h"
#include "cluster/control/desired.h"
#include "cluster/messages/node_state.h"
#include "host/registry.h"

#define SOURCE SHOAL_TEST_DATA "/refs/qwen3.gguf"
#define ME "n1"

static struct {
    char dir[64], path[96];
    uint8_t sum[SHA256_BYTES];
    struct registry *registry;
    struct executor_queue queue;
    struct agent *agent;
    struct desired *d;
    enum agent_found found; /* the source's answer */
    uint32_t n_events[16], n_released, n_doubted;
    char text[512]; /* of the last refusal */
} site;

static const uint8_t other[SHA256_BYTES] = {9};

static enum agent_found find(void *ctx, const struct desired_model *model,
                             const uint8_t sha256[SHA256_BYTES], char *path, size_t cap,
                             uint32_t *progress, struct err *e)
{
    (void)ctx;
    (void)sha256;
    *progress = 500;
    snprintf(path, cap, "%s", site.path);
    if (site.found == AGENT_NOWHERE)
        err_set(e, SHOAL_ENOTFOUND, "nobody has '%s'", model->name);
    return site.found;
}

static bool doubt(void *ctx, const uint8_t sha256[SHA256_BYTES])
{
    (void)ctx;
    (void)sha256;
    site.n_doubted++;
    return true;
}

static void release(void *ctx, const uint8_t sha256[SHA256_BYTES])
{
    (void)ctx;
    (void)sha256;
    site.n_released++;
}

static void on_event(void *ctx, const struct event_log_entry *entry)
{
    (void)ctx;
    site.n_events[entry->kind]++;
    if (entry->kind == EVENT_LOG_REFUSED)
        snprintf(site.text, sizeof(site.text), "%s", entry->text);
}

static void make_file(void)
{
    static char bytes[1 << 22];
    struct sha256 h;
    FILE *in = fopen(SOURCE, "rb"), *out = fopen(site.path, "wb");
    assert_true(in && out);
    size_t n = fread(bytes, 1, sizeof(bytes), in);
    assert_in_range(n, 1, sizeof(bytes) - 1);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    sha256_begin(&h);
    sha256_add(&h, bytes, n);
    assert_true(sha256_end(&h, site.sum));
}

static void create_agent(uint32_t retry_ms)
{
    const struct agent_opts ao = {.name = ME,
                                  .registry = site.registry,
                                  .executor = &site.queue.executor,
                                  .source = {.find = find, .doubt = doubt, .release = release},
                                  .grace_ms = 1,
                                  .retry_ms = retry_ms,
                                  .event = on_event};
    struct err e = {0};
    assert_int_equal(agent_create(&site.agent, &ao, &e), 0);
}

static int setup(void **state)
{
    const struct registry_opts ro = {.cache_dir = ""};
    struct err e = {0};
    (void)state;
    memset(&site, 0, sizeof(site));
    snprintf(site.dir, sizeof(site.dir), "/tmp/shoal-agent-XXXXXX");
    assert_non_null(mkdtemp(site.dir));
    snprintf(site.path, sizeof(site.path), "%s/m.gguf", site.dir);
    make_file();
    assert_int_equal(registry_create(&site.registry, &ro, &e), 0);
    assert_int_equal(executor_queue_init(&site.queue, &e), 0);
    create_agent(0);
    assert_int_equal(desired_create(&site.d, &e), 0);
    struct desired_model m = {
        .name = "reply", .source = "", .apart = "", .memory_bytes = 1, .replicas_max = 1};
    memcpy(m.sha256, site.sum, SHA256_BYTES);
    assert_int_equal(desired_put_model(site.d, &m), 0);
    site.d->version = site.d->fence = 5;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    agent_destroy(site.agent);
    executor_queue_fini(&site.queue);
    registry_destroy(site.registry);
    desired_destroy(site.d);
    unlink(site.path);
    rmdir(site.dir);
    return 0;
}

static void assign(const char *node, const uint8_t *sum, enum desired_duty duty)
{
    struct desired_assignment a = {.node = node, .model = "reply", .duty = duty};
    memcpy(a.sha256, sum, SHA256_BYTES);
    assert_int_equal(desired_put_assignment(site.d, &a), 0);
    site.d->version++;
}

/* The node's report about one version; state REGISTRY_UNLOADED and no duty: not reported. */
static struct node_model report(const uint8_t *sum, char error[320])
{
    struct node_state s = {.n_models = 0};
    struct node_model found = {.state = REGISTRY_UNLOADED};
    struct arena a;
    arena_init(&a, 1 << 20);
    node_state_collect(&s, &a, site.registry);
    agent_fill(site.agent, &s, &a);
    for (uint32_t i = 0; i < s.n_models; i++)
        if (s.models[i].sum && memcmp(s.models[i].sum, sum, SHA256_BYTES) == 0)
            found = s.models[i];
    snprintf(error, 320, "%s", found.error ? found.error : "");
    found.name = NULL; /* freed with the arena */
    found.sum = NULL;
    found.error = NULL;
    arena_fini(&a);
    return found;
}

/* Runs the agent until it reports this. */
static struct node_model until(const uint8_t *sum, enum registry_state state, uint32_t duty)
{
    char error[320];
    struct node_model m = {.state = REGISTRY_UNLOADED};
    for (int i = 0; i < 6000; i++) {
        executor_queue_turn(&site.queue, 10);
        m = report(sum, error);
        if (m.state == state && m.duty == duty)
            return m;
    }
    fail_msg("state %d, duty %u, error %s", m.state, m.duty, error);
    return m;
}

static int get(struct registry_model **m)
{
    struct err e = {0};
    return registry_get(site.registry, "reply", SHOAL_KIND_GENERATE, m, NULL, &e);
}

/* ---- duties ---- */

static void test_serve_loads_and_answers(void **state)
{
    (void)state;
    struct registry_model *m;
    assign("n2", site.sum, DESIRED_SERVE); /* another node's */
    agent_follow(site.agent, site.d);
    assert_int_equal(get(&m), SHOAL_ENOTFOUND);
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    assert_int_equal(get(&m), 0);
    registry_put(m);
    executor_queue_turn(&site.queue, 100);
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_LOADED], 1);
}

static void test_stage_loads_and_does_not_answer(void **state)
{
    (void)state;
    struct registry_model *m;
    assign(ME, site.sum, DESIRED_STAGE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_STAGE);
    assert_true(get(&m) < 0);
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    assert_int_equal(get(&m), 0);
    registry_put(m);
    assign(ME, site.sum, DESIRED_STAGE); /* and back */
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_STAGE);
    assert_true(get(&m) < 0);
}

static void test_leave_finishes_what_runs(void **state)
{
    (void)state;
    struct registry_model *m, *none;
    char error[320];
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    assert_int_equal(get(&m), 0);
    assign(ME, site.sum, DESIRED_LEAVE);
    agent_follow(site.agent, site.d);
    for (int i = 0; i < 6000 && get(&none) == 0; i++) { /* it accepts nothing new... */
        registry_put(none);
        executor_queue_turn(&site.queue, 10);
    }
    assert_true(get(&none) < 0);
    for (int i = 0; i < 20; i++)
        executor_queue_turn(&site.queue, 10);
    assert_int_equal(report(site.sum, error).duty, DESIRED_LEAVE); /* ...and still exists */
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_UNLOADED], 0);
    registry_put(m);
    until(site.sum, REGISTRY_UNLOADED, 0);
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_UNLOADED], 1);
    assert_int_equal(site.n_released, 1);
}

/* Several replicas on one node: as many as assigned, each with an engine of its own. */
static void until_replicas(uint32_t n)
{
    char error[320];
    struct node_model m = {.replicas = 0};
    for (int i = 0; i < 6000; i++) {
        executor_queue_turn(&site.queue, 10);
        m = report(site.sum, error);
        if (m.replicas == n)
            return;
    }
    fail_msg("%u replicas, not %u", m.replicas, n);
}

static void test_copies_come_and_go(void **state)
{
    (void)state;
    struct registry_model *m[3];
    char error[320];
    assign(ME, site.sum, DESIRED_SERVE);
    desired_find_assignment(site.d, ME, "reply", site.sum)->copies = 3;
    agent_follow(site.agent, site.d);
    until_replicas(3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(get(&m[i]), 0);
    assert_int_equal(m[0]->copy + m[1]->copy + m[2]->copy, 3); /* one each */
    desired_find_assignment(site.d, ME, "reply", site.sum)->copies = 0;
    site.d->version++;
    agent_follow(site.agent, site.d);
    until_replicas(1); /* those that leave finish what they have */
    for (int i = 0; i < 3; i++)
        registry_put(m[i]);
    desired_find_assignment(site.d, ME, "reply", site.sum)->copies = 2;
    site.d->version++;
    agent_follow(site.agent, site.d);
    until_replicas(2);
    assign(ME, site.sum, DESIRED_LEAVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_UNLOADED, 0);
    assert_int_equal(report(site.sum, error).replicas, 0);
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_UNLOADED], 1);
}

/* Damaged on disk: nothing new begins with these bytes, and it is loaded anew when they are free.
 */
static void test_a_damaged_model_is_loaded_anew(void **state)
{
    (void)state;
    struct registry_model *m, *none;
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    assert_int_equal(get(&m), 0);
    agent_damaged(site.agent, other); /* another model */
    assert_int_equal(site.n_doubted, 0);
    agent_damaged(site.agent, site.sum);
    assert_int_equal(site.n_doubted, 1);
    assert_true(get(&none) < 0);
    const struct registry_want any = {
        .name = "reply", .kind = SHOAL_KIND_GENERATE, .may_be_old = true};
    struct err e = {0};
    assert_true(registry_get_wanted(site.registry, &any, &none, NULL, &e) < 0);
    for (int i = 0; i < 20; i++)
        executor_queue_turn(&site.queue, 10);
    until(site.sum, REGISTRY_READY, DESIRED_STAGE); /* a request still runs on it */
    registry_put(m);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    assert_int_equal(get(&m), 0);
    registry_put(m);
    executor_queue_turn(&site.queue, 100);
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_LOADED], 2);
}

/* A node that may have missed an update loads, but answers nothing until it knows. */
static void test_who_waits_answers_nothing(void **state)
{
    (void)state;
    struct registry_model *m, *none;
    const struct registry_want any = {
        .name = "reply", .kind = SHOAL_KIND_GENERATE, .may_be_old = true};
    struct err e = {0};
    agent_wait(site.agent, true);
    assign(ME, site.sum, DESIRED_STAGE); /* waits or not, it is not to answer */
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_STAGE);
    assert_true(registry_get_wanted(site.registry, &any, &m, NULL, &e) < 0);
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_STAGE);
    assert_true(get(&m) < 0);
    assert_int_equal(registry_get_wanted(site.registry, &any, &m, NULL, &e), 0);
    registry_put(m); /* a request that has waited for too long */
    agent_wait(site.agent, false);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    assert_int_equal(get(&m), 0);
    agent_wait(site.agent, true); /* what runs goes on, nothing new begins */
    assert_true(get(&none) < 0);
    assign(ME, site.sum, DESIRED_LEAVE);
    agent_follow(site.agent, site.d);
    agent_wait(site.agent, false); /* it has to leave: at once, without a time of grace */
    assert_true(get(&none) < 0);
    registry_put(m);
    until(site.sum, REGISTRY_UNLOADED, 0);
}

static void test_who_leaves_may_be_wanted_again(void **state)
{
    (void)state;
    struct registry_model *m;
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    assert_int_equal(get(&m), 0); /* so that it cannot leave at once */
    desired_remove_assignment(site.d, &site.d->assignments[0]); /* the same as LEAVE */
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_LEAVE);
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    registry_put(m);
    assert_int_equal(get(&m), 0);
    registry_put(m);
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_UNLOADED], 0);
}

/* ---- which controller it follows ---- */

static void test_the_state_of_an_older_controller_is_refused(void **state)
{
    (void)state;
    struct registry_model *m;
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
    desired_remove_assignment(site.d, &site.d->assignments[0]);
    site.d->fence = 4;
    agent_follow(site.agent, site.d);
    agent_follow(site.agent, site.d);
    for (int i = 0; i < 20; i++)
        executor_queue_turn(&site.queue, 10);
    assert_int_equal(get(&m), 0); /* it continues */
    registry_put(m);
    assert_int_equal(site.n_events[EVENT_LOG_REFUSED], 1); /* logged once */
    assert_non_null(strstr(site.text, "fence is 4"));
    site.d->fence = 6;
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_UNLOADED, 0);
}

static bool reports_draining(void)
{
    struct node_state s = {.n_models = 0};
    struct arena a;
    arena_init(&a, 1 << 20);
    agent_fill(site.agent, &s, &a);
    arena_fini(&a);
    return s.draining;
}

static void test_a_drained_node_steps_aside_when_it_has_nothing_to_serve(void **state)
{
    (void)state;
    assign(ME, site.sum, DESIRED_SERVE);
    assert_int_equal(desired_set_drained(site.d, ME, true), 0);
    agent_follow(site.agent, site.d);
    assert_false(reports_draining());
    assign(ME, site.sum, DESIRED_LEAVE);
    agent_follow(site.agent, site.d);
    assert_true(reports_draining());
    assert_int_equal(desired_set_drained(site.d, ME, false), 0);
    agent_follow(site.agent, site.d);
    assert_false(reports_draining());
}

/* ---- failures ---- */

static void test_bytes_that_nobody_has(void **state)
{
    (void)state;
    char error[320];
    site.found = AGENT_COMING;
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    assert_int_equal(until(site.sum, REGISTRY_LOADING, DESIRED_SERVE).progress, 500);
    site.found = AGENT_NOWHERE;
    until(site.sum, REGISTRY_FAILED, DESIRED_SERVE);
    report(site.sum, error);
    assert_string_equal(error, "nobody has 'reply'");
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_FAILED], 1);
    /* After it is withdrawn and assigned again, it is retried. */
    desired_remove_assignment(site.d, &site.d->assignments[0]);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_UNLOADED, 0);
    site.found = AGENT_HERE;
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
}

static void test_a_load_that_failed_is_tried_again(void **state)
{
    (void)state;
    agent_destroy(site.agent);
    create_agent(1);
    site.found = AGENT_NOWHERE;
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    for (int i = 0; i < 6000 && site.n_events[EVENT_LOG_MODEL_FAILED] < 3; i++)
        executor_queue_turn(&site.queue, 10);
    assert_true(site.n_events[EVENT_LOG_MODEL_FAILED] >= 3);
    site.found = AGENT_HERE;
    until(site.sum, REGISTRY_READY, DESIRED_SERVE);
}

static void test_other_bytes_are_not_loaded(void **state)
{
    (void)state;
    char error[320];
    struct registry_model *m;
    assign(ME, other, DESIRED_SERVE); /* the source gives a file with another hash */
    agent_follow(site.agent, site.d);
    for (int i = 0; i < 6000 && site.n_events[EVENT_LOG_MODEL_FAILED] == 0; i++)
        executor_queue_turn(&site.queue, 10);
    assert_int_equal(report(other, error).state, REGISTRY_FAILED);
    assert_non_null(strstr(error, "SHA-256"));
    assert_int_equal(get(&m), SHOAL_ENOTFOUND);
}

/* ---- models of the configuration ---- */

static void configure(void)
{
    const struct registry_spec spec = {.name = "reply", .path = site.path, .pinned = true};
    struct registry_model *m;
    struct err e = {0};
    assert_int_equal(registry_add(site.registry, &spec, &e), 0);
    for (int i = 0; i < 6000; i++) { /* loaded, and its hash is known */
        bool known = get(&m) == 0 && registry_sum(m);
        if (m)
            registry_put(m);
        if (known)
            return;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    fail_msg("the model is not identified");
}

static void test_a_configured_model_answers_and_stays(void **state)
{
    (void)state;
    struct registry_model *m;
    configure();
    site.found = AGENT_NOWHERE; /* must not be called */
    assign(ME, site.sum, DESIRED_SERVE);
    agent_follow(site.agent, site.d);
    until(site.sum, REGISTRY_READY, 0);
    desired_remove_assignment(site.d, &site.d->assignments[0]);
    agent_follow(site.agent, site.d);
    for (int i = 0; i < 20; i++)
        executor_queue_turn(&site.queue, 10);
    assert_int_equal(get(&m), 0);
    registry_put(m);
    assert_int_equal(site.n_events[EVENT_LOG_MODEL_FAILED], 0);
}

static void test_a_configured_model_with_other_bytes_answers_nothing(void **state)
{
    (void)state;
    struct registry_model *m;
    configure();
    memcpy(site.d->models[0].sha256, other, SHA256_BYTES); /* the shoal serves other bytes */
    agent_follow(site.agent, site.d);
    assert_true(get(&m) < 0);
    desired_remove_model(site.d, "reply"); /* the shoal stops serving it */
    agent_follow(site.agent, site.d);
    assert_int_equal(get(&m), 0);
    registry_put(m);
}

/* ---- the plan ---- */

static void test_items_follow_their_duties(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        enum agent_phase phase;
        uint32_t duty;
        enum agent_action want;
    } cases[] = {
        {"still assigned", AGENT_READY, DESIRED_SERVE, AGENT_STAY},
        {"staged again", AGENT_READY, DESIRED_STAGE, AGENT_STAY},
        {"still on its way", AGENT_FINDING, DESIRED_SERVE, AGENT_STAY},
        {"has to leave", AGENT_READY, DESIRED_LEAVE, AGENT_LEAVE},
        {"not assigned any more", AGENT_LOADING, 0, AGENT_LEAVE},
        {"failed and not assigned any more", AGENT_FAILED, 0, AGENT_LEAVE},
        {"leaves already", AGENT_LEAVING, DESIRED_LEAVE, AGENT_GOES},
        {"leaves already, taken out", AGENT_LEAVING, 0, AGENT_GOES},
        {"wanted again", AGENT_LEAVING, DESIRED_SERVE, AGENT_RETURN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct agent_item item = {.phase = cases[i].phase};
        if (agent_plan_item(&item, cases[i].duty) != cases[i].want)
            fail_msg("%s", cases[i].why);
    }
}

/* ---- the shelf ---- */

static enum shelf_found find_on(struct shelf *s, const uint8_t *sum, char *path)
{
    enum shelf_found f = SHELF_LOOKING;
    for (int i = 0; i < 6000 && f == SHELF_LOOKING; i++) {
        f = shelf_find(s, sum, path, 256);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return f;
}

static void test_a_shelf_finds_models_by_their_hash(void **state)
{
    (void)state;
    const char *places[] = {site.dir, "/nowhere"};
    const struct shelf_opts o = {.places = places, .n_places = 2, .cache_dir = ""};
    struct shelf *s;
    struct err e = {0};
    char path[256], moved[128];
    assert_int_equal(shelf_open(&s, &o, &e), 0);
    assert_int_equal(find_on(s, site.sum, path), SHELF_HERE);
    assert_string_equal(path, site.path);
    assert_int_equal(find_on(s, other, path), SHELF_NOWHERE);
    /* A file that arrives later is found too: the folders are scanned again. */
    shelf_close(s);
    snprintf(moved, sizeof(moved), "%s/later", site.dir);
    assert_int_equal(rename(site.path, moved), 0);
    assert_int_equal(shelf_open(&s, &o, &e), 0);
    assert_int_equal(find_on(s, site.sum, path), SHELF_NOWHERE); /* not the name of a model */
    assert_int_equal(rename(moved, site.path), 0);
    enum shelf_found f = SHELF_NOWHERE;
    for (int i = 0; i < 600 && f != SHELF_HERE; i++) {
        nanosleep(&(struct timespec){0, 100000000}, NULL);
        f = find_on(s, site.sum, path);
    }
    assert_int_equal(f, SHELF_HERE);
    shelf_close(s);
}

int main(void)
{
#define ON_SITE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        ON_SITE(test_serve_loads_and_answers),
        ON_SITE(test_stage_loads_and_does_not_answer),
        ON_SITE(test_leave_finishes_what_runs),
        ON_SITE(test_copies_come_and_go),
        ON_SITE(test_a_damaged_model_is_loaded_anew),
        ON_SITE(test_who_waits_answers_nothing),
        ON_SITE(test_who_leaves_may_be_wanted_again),
        ON_SITE(test_the_state_of_an_older_controller_is_refused),
        ON_SITE(test_a_drained_node_steps_aside_when_it_has_nothing_to_serve),
        ON_SITE(test_bytes_that_nobody_has),
        ON_SITE(test_a_load_that_failed_is_tried_again),
        ON_SITE(test_other_bytes_are_not_loaded),
        ON_SITE(test_a_configured_model_answers_and_stays),
        ON_SITE(test_a_configured_model_with_other_bytes_answers_nothing),
        cmocka_unit_test(test_items_follow_their_duties),
        ON_SITE(test_a_shelf_finds_models_by_their_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
