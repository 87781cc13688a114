/* test_knowledge_fronts.c - conversations and the semantic cache hand on what they do not change:
 * all events with all fields one way, questions and orders the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/thread/executor_queue.h"
#include "flow/dispatch.h"
#include "knowledge/sessions.h"
#include "knowledge/similar.h"
#include "router/router.h"
#include "support/front_walk.h"

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct router_table routes;
    struct sessions *sessions;
    struct similar *similar;
    char dir[64];
    struct request *request; /* what the stage passed on */
    struct sink *inner;
    uint32_t n;
} site;

static char route_name[] = "chat";
static struct router_route route = {.name = route_name, .similar = 0.9};

static void on_pass(struct flow_owner *o, struct request *r, struct sink *s)
{
    assert_ptr_equal(o, &site.owner);
    site.request = r;
    site.inner = s;
}

static struct request *make(void)
{
    static const struct chat_message message = {
        .role = "user", .content = "hello", .content_bytes = 5};
    struct request *r = flow_take_request(&site.owner);
    assert_non_null(r);
    r->kind = REQUEST_GENERATE;
    r->model = "chat";
    r->way.pass_on = on_pass;
    snprintf(r->session, sizeof(r->session), "s%u", site.n++);
    r->generate = (struct request_generate){
        .chat = {.messages = &message, .n_messages = 1}, .n_prompts = 1, .n = 1};
    return r;
}

static void end(void)
{
    flow_give_request(&site.owner, site.request);
    while (site.owner.n_jobs > 0)
        assert_true(executor_queue_run(&site.executor));
}

static struct sink *open_session(struct sink *client)
{
    struct dispatch *d = sessions_stage(site.sessions);
    site.inner = NULL;
    assert_true(d->ops->run(d, &site.owner, make(), client));
    while (!site.inner)
        assert_true(executor_queue_run(&site.executor));
    return site.inner;
}

/* The embedder is busy: there is no hit, and nothing is kept. */
static bool refuse(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    struct failure f;
    (void)d;
    failure_of(&f, SHOAL_EBUSY, "busy");
    flow_refuse(o, r, s, &f);
    return true;
}

static struct sink *open_similar(struct sink *client)
{
    struct dispatch *d = similar_stage(site.similar);
    site.inner = NULL;
    assert_true(d->ops->run(d, &site.owner, make(), client));
    assert_non_null(site.inner);
    return site.inner;
}

static void forget_question(struct sink_start *e)
{
    e->question = NULL;
}

static void test_a_conversation(void **state)
{
    (void)state;
    walk(&(struct walk_opts){.n_choices = 1,
                             .replaces = true,
                             .edit_start = forget_question,
                             .open = open_session,
                             .end = end});
}

static void test_a_question_that_is_not_in_the_cache(void **state)
{
    (void)state;
    walk(&(struct walk_opts){.n_choices = 1, .replaces = true, .open = open_similar, .end = end});
}

static int open_site(void **state)
{
    static const struct dispatch_ops ops = {.run = refuse};
    static struct dispatch nodes = {&ops};
    const struct similar_opts similar = {
        .model = "embedder", .max_bytes = 1 << 16, .ttl_ns = 1000000000};
    char place[96], keys[96];
    struct err e = {0};
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    snprintf(site.dir, sizeof(site.dir), "/tmp/test_knowledge_fronts.XXXXXX");
    assert_non_null(mkdtemp(site.dir));
    snprintf(place, sizeof(place), "sqlite:%s/s.db", site.dir);
    snprintf(keys, sizeof(keys), "%s/keys", site.dir);
    const struct sessions_opts sessions = {
        .place = place, .key_file = keys, .ttl_s = 3600, .history_tokens = 1000};
    assert_int_equal(sessions_open(&site.sessions, &sessions, &e), 0);
    assert_int_equal(similar_create(&site.similar, &similar, &e), 0);
    assert_int_equal(executor_queue_init(&site.executor, &e), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.routes = (struct router_table){.routes = &route, .n_routes = 1};
    site.owner.routes = &site.routes;
    site.owner.dispatch = &nodes;
    return 0;
}

static int close_site(void **state)
{
    char command[96];
    (void)state;
    sessions_close(site.sessions);
    similar_destroy(site.similar);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    snprintf(command, sizeof(command), "rm -rf %s", site.dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_conversation),
                                       cmocka_unit_test(test_a_question_that_is_not_in_the_cache)};
    return cmocka_run_group_tests(tests, open_site, close_site);
}
