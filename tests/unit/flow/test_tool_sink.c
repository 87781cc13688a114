/* test_tool_sink.c - text of a model becomes tool calls: which events the client gets, with which
 * tokens and ids, for each choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "flow/tools/tool_sink.h"
#include "support/recorder.h"

#define CALL "<tool_call>{\"name\":\"lamp\",\"arguments\":{\"on\":true}}</tool_call>"

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct request *request;
    struct sink *inner;
    struct recorder to;
    struct buf seen; /* "c0.1 lamp{ " begins, "c0.1 +text ", "c0.1 } ", "t0 5:text " */
    char ids[8][32]; /* of calls in their order */
    uint32_t n_ids;
} site;

static void on_call(struct sink *s, const struct sink_call *e)
{
    (void)s;
    assert_int_equal(strncmp(e->id, "call_", 5), 0);
    assert_int_equal(strlen(e->id), 21);
    buf_printf(&site.seen, "c%u.%u ", e->choice, e->index);
    if (e->begins) {
        buf_printf(&site.seen, "%s{ ", e->name);
        snprintf(site.ids[site.n_ids++], sizeof(site.ids[0]), "%s", e->id);
    } else if (e->ends)
        buf_puts(&site.seen, "} ");
    else
        buf_printf(&site.seen, "+%.*s ", (int)e->text_bytes, e->text);
    assert_true(!(e->begins || e->ends) || e->text_bytes == 0);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    (void)s;
    buf_printf(&site.seen, "t%u %d%s%s:%.*s ", e->choice, e->token, e->echo ? "e" : "",
               e->logprobs ? "l" : "", (int)e->text_bytes, e->text);
}

static void on_pass(struct flow_owner *o, struct request *r, struct sink *s)
{
    (void)o;
    site.request = r;
    site.inner = s;
}

struct how {
    bool streams, whole_calls, one_call;
    uint32_t n;
    const char *id;
};

static void open_request(const struct how *h)
{
    static const struct chat_tool tools[] = {{.name = "lamp", .description = ""},
                                             {.name = "door", .description = ""}};
    static const struct chat_message message = {
        .role = "user", .content = "hi", .content_bytes = 2};
    static struct sink_ops ops;
    struct request *r = flow_take_request(&site.owner);
    recorder_fini(&site.to);
    recorder_init(&site.to);
    ops = *site.to.sink.ops;
    ops.call = on_call;
    ops.token = on_token;
    site.to.sink.ops = &ops;
    buf_clear(&site.seen);
    site.n_ids = 0;
    r->kind = REQUEST_GENERATE;
    r->way.pass_on = on_pass;
    r->streams = h->streams;
    r->whole_calls = h->whole_calls;
    snprintf(r->id, sizeof(r->id), "%s", h->id ? h->id : "r");
    r->generate = (struct request_generate){.chat = {.messages = &message,
                                                     .n_messages = 1,
                                                     .tools = tools,
                                                     .n_tools = 2,
                                                     .one_call = h->one_call},
                                            .n_prompts = 1,
                                            .n = h->n ? h->n : 1};
    assert_true(tool_sink_take(&site.owner, r, &site.to.sink));
    const struct sink_start e = {.model = "m", .version = "", .tools = TOOL_FORMAT_HERMES};
    site.inner->ops->start(site.inner, &e);
}

static void say(uint32_t choice, int32_t token, const char *text, bool echo, bool logs)
{
    static const struct sink_logprob log = {5, -1, "x", 1};
    const struct sink_token e = {.choice = choice,
                                 .token = token,
                                 .text = text,
                                 .text_bytes = strlen(text),
                                 .echo = echo,
                                 .logprobs = logs ? &log : NULL,
                                 .n_logprobs = logs};
    site.inner->ops->token(site.inner, &e);
}

static uint32_t finish(uint32_t choice, bool last)
{
    const struct sink_done e = {.choice = choice, .finish = SHOAL_FINISH_STOP, .last = last};
    site.inner->ops->done(site.inner, &e);
    return site.to.done.n_calls;
}

static void close_request(void)
{
    site.inner->ops->closed(site.inner);
    assert_int_equal(site.to.n_closed, 1);
    flow_give_request(&site.owner, site.request);
}

/* Each token is one event, even if its text is held back; the first text takes it along. */
static void test_pieces(void **state)
{
    static const struct {
        struct how how;
        const char *text[6]; /* a token each, from 0 on; the last may be NULL */
        const char *want;
        uint32_t n_calls;
    } rows[] = {
        {{.streams = true}, {"It", " is", " on."}, "t0 0:It t0 1: is t0 2: on. ", 0},
        {{.streams = false}, {"a", CALL}, "t0 0:a c0.0 lamp{ c0.0 +{\"on\":true} c0.0 } t0 1: ", 1},
        {{.streams = true},
         {"<tool_call>{\"name\":\"lamp\",\"arguments\":", "{\"on\":", "true}", "}</tool_call>"},
         "t0 0: c0.0 lamp{ c0.0 +{\"on\": t0 1: c0.0 +true} t0 2: c0.0 } t0 3: ",
         1},
        {{.streams = true, .whole_calls = true},
         {"<tool_call>{\"name\":\"lamp\",\"arguments\":", "{\"on\":", "true}", "}</tool_call>"},
         "t0 0: t0 1: t0 2: c0.0 lamp{ c0.0 +{\"on\":true} c0.0 } t0 3: ",
         1},
        {{.streams = true},
         {CALL, "<tool_call>{\"name\":\"door\",\"arguments\":{}}</tool_call>"},
         "c0.0 lamp{ c0.0 +{\"on\":true} c0.0 } t0 0: c0.1 door{ c0.1 +{} c0.1 } t0 1: ",
         2},
        {{.streams = true, .one_call = true},
         {CALL, "<tool_call>{\"name\":\"door\",\"arguments\":{}}</tool_call>"},
         "c0.0 lamp{ c0.0 +{\"on\":true} c0.0 } t0 0: t0 1: ",
         1},
        {{.streams = true}, {"<tool", " kit>"}, "t0 0: t0 1:<tool kit> ", 0},
        {{.streams = true}, {"x<tool_c"}, "t0 0:x t0 -1:<tool_c ", 0}, /* at the end it is text */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        open_request(&rows[i].how);
        for (int32_t k = 0; k < 6 && rows[i].text[k]; k++)
            say(0, k, rows[i].text[k], false, false);
        uint32_t n_calls = finish(0, true);
        if (strcmp(buf_str(&site.seen), rows[i].want) != 0)
            print_error("row %zu\n", i);
        assert_string_equal(buf_str(&site.seen), rows[i].want);
        assert_int_equal(n_calls, rows[i].n_calls);
        close_request();
    }
}

/* The echo of a prompt is no answer; a text without a token is only sent if it says something. */
static void test_what_is_not_searched(void **state)
{
    (void)state;
    open_request(&(struct how){.streams = true});
    say(0, 3, CALL, true, false);
    say(7, 4, CALL, false, false); /* a choice that nobody asked for */
    say(0, -1, "<tool", false, false);
    assert_string_equal(buf_str(&site.seen), "t0 3e:" CALL " t7 4:" CALL " ");
    buf_clear(&site.seen);
    say(0, -1, "_c", false, true); /* its log-probabilities count */
    assert_string_equal(buf_str(&site.seen), "t0 -1l: ");
    assert_int_equal(finish(0, true), 0);
    close_request();
}

/* Choices are searched apart, and every call has its own id, also in another request. */
static void test_choices_and_ids(void **state)
{
    char first[32];
    (void)state;
    open_request(&(struct how){.n = 2, .streams = true, .id = "one"});
    say(0, 1, "<tool_call>{\"name\":\"lamp\",", false, false);
    say(1, 2, CALL, false, false);
    say(0, 3, "\"arguments\":{}}</tool_call>", false, false);
    assert_non_null(strstr(buf_str(&site.seen), "c0.0 lamp{ "));
    assert_non_null(strstr(buf_str(&site.seen), "c1.0 +{\"on\":true} "));
    assert_non_null(strstr(buf_str(&site.seen), "c0.0 +{} "));
    assert_int_equal(site.n_ids, 2);
    assert_string_not_equal(site.ids[0], site.ids[1]);
    snprintf(first, sizeof(first), "%s", site.ids[0]);
    assert_int_equal(finish(0, false), 1);
    assert_int_equal(finish(1, true), 1);
    close_request();
    open_request(&(struct how){.streams = true, .id = "two"});
    say(0, 1, CALL, false, false);
    say(0, 2, CALL, false, false);
    assert_string_not_equal(site.ids[0], first);
    assert_string_not_equal(site.ids[0], site.ids[1]);
    assert_int_equal(finish(0, true), 2);
    close_request();
}

static void test_who_is_taken(void **state)
{
    static const struct chat_tool tool = {.name = "lamp", .description = ""};
    struct request *r = flow_take_request(&site.owner);
    struct recorder to;
    (void)state;
    recorder_init(&to);
    r->kind = REQUEST_GENERATE;
    r->way.pass_on = on_pass;
    r->generate = (struct request_generate){.n_prompts = 1, .n = 1};
    assert_false(tool_sink_take(&site.owner, r, &to.sink));
    r->generate.chat.tools = &tool;
    r->generate.chat.n_tools = 1;
    r->generate.chat.tool_choice = CHAT_TOOLS_NONE;
    assert_false(tool_sink_take(&site.owner, r, &to.sink));
    r->kind = REQUEST_INFER;
    assert_false(tool_sink_take(&site.owner, r, &to.sink));
    flow_give_request(&site.owner, r);
}

static int open_site(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(executor_queue_init(&site.executor, &e), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    buf_init(&site.seen, 1 << 16);
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    buf_fini(&site.seen);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_what_is_not_searched),
        cmocka_unit_test(test_choices_and_ids),
        cmocka_unit_test(test_who_is_taken),
    };
    return cmocka_run_group_tests(tests, open_site, close_site);
}
