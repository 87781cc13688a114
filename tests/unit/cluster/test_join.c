/* test_join.c - a member that starts, stands still, or loses NATS: what it serves meanwhile, and
 * which nodes it finds again.  The code is that of join.c; clock, NATS and agent are not. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cluster/agent/agent.h"
#include "cluster/control/control.h"

static int test_clock(clockid_t id, struct timespec *out);
static int no_agent(struct agent **out, const struct agent_opts *o, struct err *e);
static void agent_ends(struct agent *a);
static void agent_waits(struct agent *a, bool waits);
static int no_control(struct control **out, const struct control_opts *o, struct executor *x,
                      const struct control_watch *watch, struct err *e);
static void control_ends(struct control *c);
static bool confirmed(struct control *c, uint64_t version, uint64_t since_ns);
static void looked(struct control *c);
static void told(struct control *c, const struct desired_heard *h);
static int no_beat(struct control *c, const void *bytes, size_t n, struct err *e);
#define clock_gettime test_clock
#define agent_create no_agent
#define agent_destroy agent_ends
#define agent_wait agent_waits
#define control_open no_control
#define control_close control_ends
#define control_confirmed confirmed
#define control_look looked
#define control_heard told
#define control_beat no_beat
#include "cluster/join.c" /* NOLINT: the code under test, with the names above */

#define BEAT_MS 100u
#define FORGET_MS 5000u

static struct {
    uint64_t now_ns;
    struct executor_timer *timers[4];
    bool waits;         /* the agent does */
    bool nats_confirms; /* the version in force */
    uint64_t since_ns;  /* of the last question */
    char found[256];    /* nodes that were found, and lost: "+a:1=one -a:1 " */
} w;

static int test_clock(clockid_t id, struct timespec *out)
{
    (void)id;
    *out = (struct timespec){(time_t)(w.now_ns / 1000000000u), (long)(w.now_ns % 1000000000u)};
    return 0;
}

static char something; /* what stands for the agent and for NATS */

static int no_agent(struct agent **out, const struct agent_opts *o, struct err *e)
{
    (void)o, (void)e;
    *out = (struct agent *)(void *)&something;
    return 0;
}

static void agent_ends(struct agent *a)
{
    (void)a;
}

static void agent_waits(struct agent *a, bool waits)
{
    assert_non_null(a);
    w.waits = waits;
}

static int no_control(struct control **out, const struct control_opts *o, struct executor *x,
                      const struct control_watch *watch, struct err *e)
{
    (void)o, (void)x, (void)watch, (void)e;
    *out = (struct control *)(void *)&something;
    return 0;
}

static void control_ends(struct control *c)
{
    (void)c;
}

static bool confirmed(struct control *c, uint64_t version, uint64_t since_ns)
{
    (void)c;
    w.since_ns = since_ns;
    return w.nats_confirms && version == 4;
}

static void looked(struct control *c)
{
    (void)c;
}

static void told(struct control *c, const struct desired_heard *h)
{
    (void)c, (void)h;
}

static int no_beat(struct control *c, const void *bytes, size_t n, struct err *e)
{
    (void)c, (void)bytes, (void)n, (void)e;
    return 0;
}

/* ---- the owner's thread ---- */

static void set(struct executor *x, struct executor_timer *t, uint64_t at_ns)
{
    uint32_t i = 0;
    (void)x;
    while (w.timers[i] && w.timers[i] != t)
        i++;
    w.timers[i] = t;
    t->at_ns = at_ns;
}

static void clear(struct executor *x, struct executor_timer *t)
{
    (void)x;
    for (uint32_t i = 0; i < 4; i++)
        if (w.timers[i] == t)
            w.timers[i] = NULL;
}

static const struct executor_ops ops = {.timer_set = set, .timer_clear = clear};
static struct executor x = {.ops = &ops};

/* Time passes, and all timers that are due run; still: they run only at its end. */
static void pass(uint32_t ms, bool still)
{
    const uint64_t until = w.now_ns + ms * (uint64_t)MS_NS;
    for (;;) {
        uint32_t first = 4;
        for (uint32_t i = 0; i < 4; i++)
            if (w.timers[i] && (first == 4 || w.timers[i]->at_ns < w.timers[first]->at_ns))
                first = i;
        if (still)
            w.now_ns = until;
        if (first == 4 || w.timers[first]->at_ns > until)
            break;
        struct executor_timer *t = w.timers[first];
        w.now_ns = t->at_ns > w.now_ns ? t->at_ns : w.now_ns;
        w.timers[first] = NULL;
        t->fn(t);
    }
    w.now_ns = until;
}

/* ---- a member ---- */

static char dir[64];
static struct join *j;
static struct deployed *deployed;
static struct desired *state4;

static void on_found(void *ctx, const char *address, const char *name)
{
    (void)ctx;
    snprintf(w.found + strlen(w.found), sizeof(w.found) - strlen(w.found), "+%s=%s ", address,
             name);
}

static void on_gone(void *ctx, const char *address)
{
    (void)ctx;
    snprintf(w.found + strlen(w.found), sizeof(w.found) - strlen(w.found), "-%s ", address);
}

static int no_state(void *ctx, struct buf *out)
{
    (void)ctx, (void)out;
    return SHOAL_EBUSY;
}

static void open_member(bool node)
{
    static const struct agent_source nowhere;
    struct err e = {0};
    const struct join_opts o = {.cluster = "home",
                                .name = "me",
                                .snapshot = "none",
                                .heartbeat_ms = BEAT_MS,
                                .forget_ms = FORGET_MS,
                                .state = no_state,
                                .found = node ? NULL : on_found,
                                .gone = on_gone,
                                .registry = node ? (struct registry *)(void *)&something : NULL,
                                .source = &nowhere,
                                .deployed = deployed};
    memset(w.timers, 0, sizeof(w.timers));
    w.found[0] = '\0';
    assert_int_equal(join_open(&j, &x, &o, &e), 0);
}

static void link_to_nats(bool up)
{
    const struct bus_status s = {.link = up ? BUS_UP : BUS_AWAY};
    on_link(j, &s);
}

static int set_up(void **state)
{
    struct err e = {0};
    (void)state;
    memset(&w, 0, sizeof(w));
    w.now_ns = UINT64_C(1000000000000);
    snprintf(dir, sizeof(dir), "/tmp/shoal-join-XXXXXX");
    if (!mkdtemp(dir) || setenv("XDG_STATE_HOME", dir, 1) < 0 ||
        deployed_create(&deployed, &e) < 0 || desired_create(&state4, &e) < 0)
        return -1;
    state4->version = 4;
    return 0;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    join_close(j);
    j = NULL;
    deployed_destroy(deployed);
    desired_destroy(state4);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static void open_node(void)
{
    open_member(true);
    j->desired = state4; /* from its disk; on_desired would tell the agent */
}

/* A node that starts serves nothing that is deployed until NATS has confirmed its version. */
static void test_a_node_that_starts_asks_first(void **state)
{
    (void)state;
    open_node();
    link_to_nats(true);
    pass(2000, false);
    assert_true(w.waits);
    assert_false(join_is_isolated(j, false));
    assert_true(join_is_isolated(j, true)); /* an answer to a request that may have any version */
    w.nats_confirms = true;
    pass(50, false);
    assert_false(w.waits);
    assert_false(join_is_isolated(j, true));
}

/* NATS does not answer: it serves what it knows, and says so, until NATS has confirmed it. */
static void test_a_node_without_nats_is_isolated(void **state)
{
    (void)state;
    open_node();
    const uint64_t began = w.now_ns;
    pass(2900, false);
    assert_true(w.waits);
    assert_false(join_is_isolated(j, false));
    pass(200, false);
    assert_false(w.waits);
    assert_true(join_is_isolated(j, false));
    link_to_nats(true);
    pass(1000, false);
    assert_true(join_is_isolated(j, false)); /* the connection alone proves nothing */
    w.nats_confirms = true;
    pass(200, false);
    assert_int_equal(w.since_ns, began);
    assert_false(join_is_isolated(j, false));
}

/* One that stood still may have missed an update. */
static void test_a_pause_is_noticed(void **state)
{
    (void)state;
    open_node();
    link_to_nats(true);
    w.nats_confirms = true;
    pass(1000, false);
    assert_false(w.waits);
    w.nats_confirms = false;
    pass(900, true); /* as on a busy machine */
    assert_false(w.waits);
    pass(1300, true);
    assert_true(w.waits);
    w.nats_confirms = true;
    pass(50, false);
    assert_false(w.waits);
    assert_false(join_is_isolated(j, false));
}

/* One that runs and loses NATS cannot know whether others still update. */
static void test_a_node_that_loses_nats(void **state)
{
    (void)state;
    open_node();
    link_to_nats(true);
    w.nats_confirms = true;
    pass(1000, false);
    w.nats_confirms = false;
    link_to_nats(false);
    pass(2500, false);
    assert_false(join_is_isolated(j, false));
    pass(1000, false);
    assert_true(join_is_isolated(j, false));
    assert_false(w.waits); /* it goes on */
    w.nats_confirms = true;
    link_to_nats(true);
    pass(200, false);
    assert_false(join_is_isolated(j, false));
}

static void hear_node(const char *name, const char *address)
{
    struct node_state s = {.name = name, .address = address};
    hear(j, &s);
}

/* A gateway that starts while NATS is away finds the nodes that it knew, not itself, and not those
 * that had left. */
static void test_nodes_are_found_again(void **state)
{
    (void)state;
    open_member(false);
    link_to_nats(true);
    pass(100, false);
    hear_node("one", "a:1");
    hear_node("two", "a:2");
    hear_node("me", "a:3");
    hear_node("one", "a:1");
    assert_string_equal(w.found, "+a:1=one +a:2=two ");
    join_close(j); /* what is to be written is written */
    open_member(false);
    pass(100, false);
    assert_string_equal(w.found, "+a:1=one +a:2=two ");
    pass(10 * FORGET_MS, false);
    assert_string_equal(w.found, "+a:1=one +a:2=two "); /* nobody can be heard without NATS */
    link_to_nats(true);
    pass(FORGET_MS - 200, false);
    hear_node("two", "a:2");
    pass(400, false);
    assert_string_equal(w.found, "+a:1=one +a:2=two -a:1 ");
    join_close(j);
    open_member(false);
    pass(100, false);
    assert_string_equal(w.found, "+a:2=two ");
}

/* That no node has a model is known only after all of them had the time to be heard. */
static void test_who_has_just_started_knows_little(void **state)
{
    (void)state;
    open_member(false);
    pass(60000, false);
    assert_false(deployed_settled(deployed)); /* without NATS, never */
    link_to_nats(true);
    pass(4 * BEAT_MS, false);
    assert_false(deployed_settled(deployed));
    pass(2 * BEAT_MS, false);
    assert_true(deployed_settled(deployed));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_node_that_starts_asks_first),
        TEST(test_a_node_without_nats_is_isolated),
        TEST(test_a_pause_is_noticed),
        TEST(test_a_node_that_loses_nats),
        TEST(test_nodes_are_found_again),
        TEST(test_who_has_just_started_knows_little),
    };
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
