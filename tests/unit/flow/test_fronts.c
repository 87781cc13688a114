/* test_fronts.c - every stage of flow that stands in front of a client hands on what it does not
 * change: all events with all fields one way, questions and orders the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"
#include "flow/audit_sink.h"
#include "flow/fit_sink.h"
#include "flow/late_sink.h"
#include "flow/privacy/privacy_run.h"
#include "flow/privacy/pseudonyms.h"
#include "flow/tools/tool_sink.h"
#include "privacy/pii.h"
#include "supply/audit_log.h"
#include "support/front_walk.h"

#define MAIL "anna.schmidt@example.org"

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    char dir[64];
    struct request *request; /* what the stage passed on */
    struct sink *inner;
    enum request_kind kind; /* of the next request */
} site;

static void on_pass(struct flow_owner *o, struct request *r, struct sink *s)
{
    assert_ptr_equal(o, &site.owner);
    site.request = r;
    site.inner = s;
}

/* Two turns, with personal data and a tool: something for every stage. */
static struct request *make(void)
{
    static const struct chat_tool tool = {.name = "lamp", .description = ""};
    static const struct chat_message messages[] = {
        {.role = "user", .content = "hi", .content_bytes = 2},
        {.role = "assistant", .content = "ho", .content_bytes = 2},
        {.role = "user", .content = MAIL, .content_bytes = sizeof(MAIL) - 1}};
    static const struct request_input inputs[1] = {
        {.text = "in " MAIL, .text_bytes = sizeof("in " MAIL) - 1}};
    struct request *r = flow_take_request(&site.owner);
    assert_non_null(r);
    r->kind = site.kind;
    r->way.pass_on = on_pass;
    if (r->kind == REQUEST_GENERATE)
        r->generate = (struct request_generate){
            .chat = {.messages = messages, .n_messages = 3, .tools = &tool, .n_tools = 1},
            .n_prompts = 1,
            .n = 2};
    else if (r->kind == REQUEST_INFER)
        r->infer =
            (struct request_infer){.kind = SHOAL_KIND_CLASSIFY, .inputs = inputs, .n_inputs = 1};
    else
        r->ask.text = "mail " MAIL;
    return r;
}

/* The request may be closed already: a stage that sends copies gives back its own. */
static void end(void)
{
    flow_give_request(&site.owner, site.request);
    while (site.owner.n_jobs > 0)
        assert_true(executor_queue_run(&site.executor));
    assert_int_equal(executor_queue_wait_ms(&site.executor), -1); /* no timer is left */
}

static struct sink *open_late(struct sink *client)
{
    struct request *r = make();
    r->deadline_ns = clock_ns() + UINT64_C(3600000000000);
    assert_true(late_sink_take(&site.owner, r, client));
    assert_int_not_equal(executor_queue_wait_ms(&site.executor), -1);
    return site.inner;
}

static struct sink *open_audit(struct sink *client)
{
    assert_true(audit_sink_take(&site.owner, make(), client));
    return site.inner;
}

static struct sink *open_fit(struct sink *client)
{
    struct request *r = make();
    r->truncates = true;
    assert_true(fit_sink_take(&site.owner, r, client));
    assert_ptr_not_equal(site.request, r);
    return site.inner;
}

static struct sink *open_tools(struct sink *client)
{
    assert_true(tool_sink_take(&site.owner, make(), client));
    return site.inner;
}

static struct sink *open_privacy(struct sink *client)
{
    static const struct privacy_policy p = {.action = PRIVACY_PSEUDONYM, .kinds = PII_BY_RULES};
    struct request *r = make();
    r->leaving = &p;
    assert_true(privacy_take_leaving(&site.owner, r, client));
    assert_ptr_not_equal(site.inner, client);
    return site.inner;
}

static void make_private(struct sink_start *e)
{
    e->question = NULL;
    e->private = true;
}

static void test_a_generation(void **state)
{
    static const struct walk_opts rows[] = {
        {.open = open_late, .calls = true, .replaces = true},
        {.open = open_audit, .calls = true, .replaces = true},
        {.open = open_fit, .calls = true, .replaces = true},
        {.open = open_tools},
        {.open = open_privacy, .calls = true, .edit_start = make_private}};
    (void)state;
    site.kind = REQUEST_GENERATE;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct walk_opts o = rows[i];
        o.n_choices = 2;
        o.end = end;
        walk(&o);
    }
}

static void test_specialists_and_asks(void **state)
{
    static const struct walk_opts rows[] = {{.open = open_late, .replaces = true},
                                            {.open = open_audit, .replaces = true},
                                            {.open = open_privacy, .edit_start = make_private}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct walk_opts o = rows[i];
        o.n_choices = 1;
        o.end = end;
        o.kind = WALK_ASK;
        site.kind = REQUEST_ASK;
        walk(&o);
        if (o.open == open_privacy)
            continue; /* places in the text change: test_privacy_run.c */
        o.kind = WALK_INFER;
        site.kind = REQUEST_INFER;
        walk(&o);
    }
}

/* ---- too little memory ---- */

/* Sees how a request ends. */
static struct {
    uint32_t n_fails, n_last, n_closed;
    struct failure why;
} ending;

static void end_start(struct sink *s, const struct sink_start *e)
{
    (void)s, (void)e;
}

static void end_done(struct sink *s, const struct sink_done *e)
{
    (void)s;
    ending.n_last += e->last;
}

static void end_fail(struct sink *s, const struct failure *f)
{
    (void)s;
    ending.n_fails++;
    ending.why = *f;
}

static void end_closed(struct sink *s)
{
    (void)s;
    ending.n_closed++;
}

/* A request with this many bytes for all that stages add: it is answered, or it fails as it should;
 * it is never lost.  True: it was passed on. */
static bool run_with_room(bool (*take)(struct flow_owner *, struct request *, struct sink *),
                          enum request_kind kind, size_t room)
{
    static const struct privacy_policy p = {.action = PRIVACY_PSEUDONYM, .kinds = PII_BY_RULES};
    static const struct sink_ops ops = {
        .start = end_start, .done = end_done, .fail = end_fail, .closed = end_closed};
    struct sink client = {.ops = &ops};
    memset(&ending, 0, sizeof(ending));
    site.kind = kind;
    struct request *r = make();
    r->truncates = true;
    r->leaving = &p;
    r->deadline_ns = clock_ns() + UINT64_C(3600000000000);
    while (arena_bytes(&r->arena, 64)) /* the chunks that it has already */
        if ((size_t)(r->arena.end - r->arena.cur) < 64)
            break;
    r->arena.max_bytes = r->arena.used_bytes + room;
    site.inner = NULL;
    assert_true(take(&site.owner, r, &client));
    const bool passed = site.inner != NULL;
    if (passed) {
        const struct sink_start start = {.model = "m", .version = ""};
        const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true};
        site.inner->ops->start(site.inner, &start);
        site.inner->ops->done(site.inner, &done);
        site.inner->ops->closed(site.inner);
        end();
    }
    assert_int_equal(ending.n_closed, 1);
    assert_int_equal(ending.n_last, passed);
    assert_int_equal(ending.n_fails, !passed);
    assert_true(passed || ending.why.code == SHOAL_ENOMEM || ending.why.code == SHOAL_ELIMIT);
    assert_null(client.job);
    assert_int_equal(site.owner.n_jobs, 0);
    return passed;
}

static void test_too_little_memory(void **state)
{
    static const struct {
        bool (*take)(struct flow_owner *, struct request *, struct sink *);
        enum request_kind kind;
    } rows[] = {{late_sink_take, REQUEST_GENERATE},       {audit_sink_take, REQUEST_GENERATE},
                {fit_sink_take, REQUEST_GENERATE},        {tool_sink_take, REQUEST_GENERATE},
                {privacy_take_leaving, REQUEST_GENERATE}, {privacy_take_leaving, REQUEST_INFER},
                {privacy_take_leaving, REQUEST_ASK}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t n_failed = 0, n_passed = 0;
        for (size_t room = 0; room < 40000 && n_passed < 3; room += 256)
            if (run_with_room(rows[i].take, rows[i].kind, room))
                n_passed++;
            else
                n_failed++;
        assert_int_equal(n_passed, 3);
        assert_true(n_failed > 0);
    }
}

static int open_site(void **state)
{
    struct err e = {0};
    (void)state;
    snprintf(site.dir, sizeof(site.dir), "/tmp/test_fronts.XXXXXX");
    assert_non_null(mkdtemp(site.dir));
    assert_int_equal(
        audit_log_open(&site.flow.audit, &(struct audit_log_opts){.dir = site.dir}, &e), 0);
    assert_int_equal(pseudonyms_create(&site.flow.pseudonyms, NULL, &e), 0);
    assert_int_equal(executor_queue_init(&site.executor, &e), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    return 0;
}

static int close_site(void **state)
{
    char command[96];
    (void)state;
    flow_owner_fini(&site.owner);
    audit_log_close(site.flow.audit);
    pseudonyms_destroy(site.flow.pseudonyms);
    executor_queue_fini(&site.executor);
    snprintf(command, sizeof(command), "rm -rf %s", site.dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_generation),
                                       cmocka_unit_test(test_specialists_and_asks),
                                       cmocka_unit_test(test_too_little_memory)};
    return cmocka_run_group_tests(tests, open_site, close_site);
}
