/* test_privacy_run.c - personal data is removed from a request and restored in its answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread/executor_queue.h"
#include "base/mem.h"
#include "flow/privacy/privacy_run.h"
#include "flow/privacy/pseudonyms.h"
#include "privacy/pii.h"
#include "support/recorder.h"

#define MAIL "anna.schmidt@example.org"
#define PHONE "+49 171 2345678"

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct router_table routes;
} site;

/* The output of privacy_run. */
static struct {
    struct request *request;
    struct sink *sink;
    struct buf calls; /* arguments as the codec gets them, a '.' after each piece */
    const struct shoal_result *result;
} seen;

static void on_next(struct flow_owner *o, struct request *r, struct sink *s)
{
    assert_ptr_equal(o, &site.owner);
    trace_request("passed on:", r);
    seen.request = r;
    seen.sink = s;
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    (void)s;
    trace("call %u.%u %d%d %s %s '%.*s'\n", e->choice, e->index, e->begins, e->ends,
          e->id ? e->id : "-", e->name ? e->name : "-", (int)e->text_bytes, e->text);
    buf_put(&seen.calls, e->text, e->text_bytes);
    buf_puts(&seen.calls, e->begins ? "{" : e->ends ? "}" : ".");
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    seen.result = e->result;
    recorder_on_result(s, e);
}

static struct recorder *fresh(void)
{
    static struct recorder r;
    static struct sink_ops ops;
    recorder_init(&r);
    ops = *r.sink.ops;
    ops.call = on_call;
    ops.result = on_result;
    r.sink.ops = &ops;
    memset(&seen, 0, sizeof(seen));
    buf_init(&seen.calls, 1 << 16);
    return &r;
}

static struct request *chat(const char *text, const char *session)
{
    struct request *r = flow_take_request(&site.owner);
    assert_non_null(r);
    struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
    assert_non_null(m);
    *m = (struct chat_message){.role = "user",
                               .content = request_copy(r, text, strlen(text)),
                               .content_bytes = strlen(text)};
    r->kind = REQUEST_GENERATE;
    r->model = "auto";
    r->generate.chat.messages = m;
    r->generate.chat.n_messages = 1;
    r->generate.n_prompts = r->generate.n = 1;
    snprintf(r->session, sizeof(r->session), "%s", session);
    return r;
}

static struct request *run(struct request *r, struct recorder *to, enum privacy_action action)
{
    const struct privacy_policy p = {.action = action, .kinds = PII_BY_RULES};
    r->way.pass_on = on_next;
    r->leaving = &p;
    assert_true(privacy_take_leaving(&site.owner, r, &to->sink));
    return seen.request;
}

static const char *content(const struct request *r)
{
    const struct chat_message *m = &r->generate.chat.messages[0];
    assert_int_equal(strlen(m->content), m->content_bytes);
    return m->content;
}

static void start(void)
{
    static const uint8_t question[32];
    const struct sink_start e = {.model = "m", .version = "", .question = question};
    seen.sink->ops->start(seen.sink, &e);
}

static void say(const char *text, size_t n)
{
    const struct sink_token e = {.token = 7, .text = text, .text_bytes = n};
    seen.sink->ops->token(seen.sink, &e);
}

static void finish(void)
{
    const struct sink_done d = {.finish = SHOAL_FINISH_STOP, .last = true};
    struct request *r = seen.request;
    seen.sink->ops->done(seen.sink, &d);
    seen.sink->ops->closed(seen.sink);
    flow_give_request(&site.owner, r);
    buf_fini(&seen.calls);
}

static void test_masks(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    struct request *r = run(chat("write " MAIL " or call " PHONE, ""), to, PRIVACY_MASK);
    assert_string_equal(content(r), "write [email] or call [phone]");
    assert_true(r->screened);
    assert_null(privacy_policy_of(&site.owner, r));
    start();
    assert_null(to->start.question); /* the client's body is not remembered */
    assert_true(to->start.private);
    say("ok [email]", 10);
    finish();
    assert_string_equal(to->text[0], "ok [email]");
    assert_int_equal(to->n_closed, 1);
}

static void test_text_without_personal_data_is_not_touched(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    struct request *r = chat("turn on the light in room 12", "");
    const char *before = r->generate.chat.messages[0].content;
    r = run(r, to, PRIVACY_PSEUDONYM);
    assert_ptr_equal(content(r), before);
    assert_ptr_equal(seen.sink, &to->sink);
    flow_give_request(&site.owner, r);
    buf_fini(&seen.calls);
}

static void test_refusals_name_kinds_and_not_values(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    assert_null(run(chat("I am " MAIL ", " PHONE, ""), to, PRIVACY_REFUSE));
    assert_int_equal(to->n_fails, 1);
    assert_int_equal(to->n_closed, 1);
    assert_int_equal(to->failure.kind, FAILURE_INVALID);
    assert_string_equal(to->reason, "personal_data");
    assert_non_null(strstr(to->failure.message, "an e-mail address, a phone number"));
    assert_null(strstr(to->failure.message, "anna"));
    assert_null(strstr(to->failure.message, "171"));
    assert_null(to->sink.job);
    buf_fini(&seen.calls);
}

static void test_token_ids_are_refused(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    static const int32_t ids[] = {1, 2, 3};
    struct recorder *to = fresh();
    struct request *r = chat("x", "");
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    assert_non_null(p);
    *p = (struct request_prompt){.ids = ids, .n_ids = 3};
    r->generate.chat.n_messages = 0;
    r->generate.prompts = p;
    assert_null(run(r, to, PRIVACY_MASK));
    assert_int_equal(to->n_fails, 1);
    assert_non_null(strstr(to->failure.message, "token ids"));
    buf_fini(&seen.calls);
}

/* The answer is cut at every position: a pseudonym is restored wherever a token ends. */
static void test_pseudonyms_come_back_however_the_answer_is_cut(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    for (size_t cut = 1; cut < 60; cut++) {
        struct recorder *to = fresh();
        struct request *r = run(chat("mail " MAIL " and " PHONE, ""), to, PRIVACY_PSEUDONYM);
        char text[256], upper[64];
        const char *mark = strchr(content(r), '[');
        assert_non_null(mark);
        assert_null(strstr(content(r), "anna"));
        assert_null(strstr(content(r), "171"));
        size_t n = strcspn(mark, "]") + 1;
        memcpy(upper, mark, n);
        upper[n] = '\0';
        upper[1] = 'E'; /* models may change the case */
        snprintf(text, sizeof(text), "[x [email %.*s%s[[ph %s[email-", (int)n, mark, upper, mark);
        start();
        for (size_t i = 0; i < strlen(text); i += cut) {
            size_t left = strlen(text) - i;
            say(text + i, left < cut ? left : cut);
        }
        uint32_t n_tokens = to->n_tokens;
        finish();
        assert_string_equal(to->text[0],
                            "[x [email " MAIL MAIL "[[ph " MAIL " and " PHONE "[email-");
        assert_true(n_tokens >= (strlen(text) + cut - 1) / cut); /* every token is counted */
    }
}

static void test_marks_of_others_stay(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    assert_non_null(run(chat("mail " MAIL, ""), to, PRIVACY_PSEUDONYM));
    start();
    say("[email-00000000] and [nothing-12345678]", 39);
    finish();
    assert_string_equal(to->text[0], "[email-00000000] and [nothing-12345678]");
}

static void test_arguments_of_calls(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    struct request *r = run(chat("mail " MAIL, ""), to, PRIVACY_PSEUDONYM);
    char text[128];
    snprintf(text, sizeof(text), "{\"to\":\"%s\"}", strchr(content(r), '['));
    start();
    struct sink_call e = {.begins = true, .id = "1", .name = "send", .text = ""};
    seen.sink->ops->call(seen.sink, &e);
    e.begins = false;
    for (size_t i = 0; i < strlen(text); i += 5) {
        e.text = text + i;
        e.text_bytes = strlen(text) - i < 5 ? strlen(text) - i : 5;
        seen.sink->ops->call(seen.sink, &e);
    }
    e = (struct sink_call){.ends = true, .id = "1", .name = "send", .text = ""};
    seen.sink->ops->call(seen.sink, &e);
    char *got = buf_take(&seen.calls, &(size_t){0});
    assert_non_null(got);
    char *end = got;
    for (char *p = got; *p; p++) /* without the separators, except those of the address */
        if (*p != '.' || strncmp(p, ".schmidt", 8) == 0 || strncmp(p, ".org", 4) == 0)
            *end++ = *p;
    *end = '\0';
    assert_string_equal(got, "{{\"to\":\"" MAIL "\"}}");
    mem_free(got);
    finish();
}

static void mark_of(char *out, size_t cap, const char *text, const char *tenant,
                    const char *session)
{
    struct recorder *to = fresh();
    struct request *r = chat(text, session);
    snprintf(r->client.name, sizeof(r->client.name), "%s", tenant);
    r = run(r, to, PRIVACY_PSEUDONYM);
    snprintf(out, cap, "%s", content(r));
    start();
    finish();
}

static void test_pseudonyms_are_stable_in_a_conversation(void **state)
{
    char a[64], b[64], c[64], d[64], e[64];
    (void)state;
    trace("== %s\n", __func__);
    mark_of(a, sizeof(a), "+49 171 2345678", "shop", "s1");
    mark_of(b, sizeof(b), "+49-171-2345678", "shop", "s1"); /* the same number */
    mark_of(c, sizeof(c), "+49 171 2345678", "shop", "s2");
    mark_of(d, sizeof(d), "+49 171 2345678", "bank", "s1");
    mark_of(e, sizeof(e), "+49 171 2345679", "shop", "s1");
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_string_not_equal(a, d);
    assert_string_not_equal(a, e);
    /* a later turn can use the values of an earlier one; another conversation cannot */
    for (int own = 0; own < 2; own++) {
        struct recorder *to = fresh();
        struct request *r = chat("what is my number?", own ? "s1" : "s3");
        snprintf(r->client.name, sizeof(r->client.name), "shop");
        assert_non_null(run(r, to, PRIVACY_PSEUDONYM));
        start();
        say(a, strlen(a));
        finish();
        assert_string_equal(to->text[0], own ? "+49-171-2345678" : a);
    }
}

/* A command is searched like any other text; its actions get the values back. */
static void test_a_command_and_its_actions(void **state)
{
    static const char *const items[] = {"milk", NULL};
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    struct request *r = flow_take_request(&site.owner);
    assert_non_null(r);
    r->kind = REQUEST_ASK;
    r->ask.text = "remind me to call " PHONE;
    r = run(r, to, PRIVACY_PSEUDONYM);
    const char *mark = strchr(r->ask.text, '[');
    assert_non_null(mark);
    assert_null(strstr(r->ask.text, "171"));
    char what[64], list[64];
    snprintf(what, sizeof(what), "call %s", mark);
    snprintf(list, sizeof(list), "%s", mark);
    const char *const both[] = {items[0], list};
    const struct ask_plan_action action = {.name = "reminder_add",
                                           .fields = {{.key = "text", .text = what},
                                                      {.key = "items", .items = both, .n_items = 2},
                                                      {.key = "hours", .number = 2}},
                                           .n_fields = 3};
    const struct ask_plan_action *const actions[] = {&action};
    const struct ask_plan_entity entity = {"phone", list};
    const struct ask_plan_clause clause = {.text = r->ask.text,
                                           .intent = "",
                                           .router = "",
                                           .flow = "",
                                           .act = "command",
                                           .entities = &entity,
                                           .n_entities = 1};
    const struct ask_plan plan = {
        .actions = actions, .n_actions = 1, .clauses = &clause, .n_clauses = 1};
    start();
    seen.sink->ops->plan(seen.sink, &(struct sink_plan){.plan = &plan});
    assert_string_equal(to->plan->actions[0]->fields[0].text, "call " PHONE);
    assert_string_equal(to->plan->actions[0]->fields[1].items[0], "milk");
    assert_string_equal(to->plan->actions[0]->fields[1].items[1], PHONE);
    assert_true(to->plan->actions[0]->fields[2].number == 2);
    assert_string_equal(to->plan->clauses[0].text, "remind me to call " PHONE);
    assert_string_equal(to->plan->clauses[0].entities[0].text, PHONE);
    const struct sink_token reply = {.token = -1, .text = what, .text_bytes = strlen(what)};
    seen.sink->ops->token(seen.sink, &reply);
    finish();
    assert_string_equal(to->text[0], "call " PHONE);
    assert_non_null(strstr(buf_str(&to->json), PHONE));
    buf_fini(&to->json);
}

/* A flow's extra inputs are searched too, and the codec's tree is unchanged. */
static void test_the_input_of_a_flow(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    struct request *r = chat("x", "");
    const struct value list[] = {value_text(MAIL, strlen(MAIL)),
                                 {.kind = VALUE_NUMBER, .number = 3}};
    const struct value_member members[] = {{"to", {.kind = VALUE_LIST, .list = {list, 2}}},
                                           {"note", value_text("by " PHONE, strlen("by " PHONE))},
                                           {"now", value_bool(true)}};
    const struct value input = {.kind = VALUE_MAP, .map = {members, 3}};
    r->input = &input;
    r = run(r, to, PRIVACY_MASK);
    assert_ptr_not_equal(r->input, &input);
    assert_string_equal(r->input->map.members[0].value.list.items[0].text.p, "[email]");
    assert_int_equal(r->input->map.members[0].value.list.items[0].text.n, 7);
    assert_true(r->input->map.members[0].value.list.items[1].number == 3);
    assert_string_equal(r->input->map.members[1].value.text.p, "by [phone]");
    assert_true(r->input->map.members[2].value.boolean);
    assert_string_equal(list[0].text.p, MAIL);
    start();
    finish();
}

static void test_places_of_spans_are_those_of_the_clients_text(void **state)
{
    static const char text[] = "M\xc3\xbcller " MAIL " lives in Rome";
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    struct request *r = flow_take_request(&site.owner);
    assert_non_null(r);
    struct request_input *in = arena_zalloc(&r->arena, sizeof(*in));
    assert_non_null(in);
    *in = (struct request_input){.text = text, .text_bytes = strlen(text)};
    r->kind = REQUEST_INFER;
    r->infer = (struct request_infer){.kind = SHOAL_KIND_TAG, .inputs = in, .n_inputs = 1};
    r = run(r, to, PRIVACY_MASK);
    assert_ptr_equal(in->text, text); /* the codec's own */
    const char *masked = r->infer.inputs[0].text;
    assert_string_equal(masked, "M\xc3\xbcller [email] lives in Rome");
    uint32_t rome = (uint32_t)(strstr(masked, "Rome") - masked);
    uint32_t mail = (uint32_t)(strchr(masked, '[') - masked);
    const struct shoal_span spans[] = {{.label = "p", .start = rome, .end = rome + 4},
                                       {.label = "m", .start = mail + 1, .end = mail + 3}};
    struct shoal_result result = {.label = "", .spans = spans, .n_spans = 2};
    const struct sink_result e = {.result = &result, .last = true};
    start();
    seen.sink->ops->result(seen.sink, &e);
    assert_non_null(seen.result);
    const struct shoal_span *got = seen.result->spans;
    size_t at = (size_t)(strstr(text, "Rome") - text);
    assert_int_equal(got[0].start, at);
    assert_int_equal(got[0].end, at + 4);
    assert_int_equal(got[0].start_char, at - 1);
    assert_int_equal(got[0].end_char, at + 3);
    assert_int_equal(got[1].start, strlen("M\xc3\xbcller "));
    assert_int_equal(got[1].end, strlen("M\xc3\xbcller " MAIL));
    seen.sink->ops->closed(seen.sink);
    flow_give_request(&site.owner, r);
    buf_fini(&seen.calls);
}

/* Whether the first stage takes the request; if so, it was passed on without personal data. */
static bool taken(struct request *r)
{
    struct recorder *to = fresh();
    r->way.pass_on = on_next;
    bool yes = privacy_take(&site.owner, r, &to->sink);
    assert_int_equal(yes, seen.request == r);
    buf_fini(&seen.calls);
    return yes;
}

static void test_who_wants_it(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    char name[] = "support";
    struct router_route route = {.name = name,
                                 .privacy = {.action = PRIVACY_REFUSE, .zone = PRIVACY_NODES}};
    struct request *r = chat("x", "");
    site.routes = (struct router_table){.private = true, .routes = &route, .n_routes = 1};
    assert_false(taken(r)); /* auto */
    r->model = "support";
    site.routes.privacy.action = PRIVACY_MASK;
    assert_false(taken(r)); /* only where it leaves this server */
    assert_ptr_equal(privacy_policy_of(&site.owner, r), &route.privacy);
    route.privacy.action = PRIVACY_NONE;
    assert_null(privacy_policy_of(&site.owner, r));
    route.privacy.action = PRIVACY_DEFAULT;
    assert_ptr_equal(privacy_policy_of(&site.owner, r), &site.routes.privacy);
    assert_true(taken(r));
    assert_true(r->screened);
    assert_null(privacy_policy_of(&site.owner, r));
    assert_false(taken(r)); /* once is enough */
    r->leaving = NULL;
    assert_false(privacy_take_leaving(&site.owner, r, &fresh()->sink));
    buf_fini(&seen.calls);
    flow_give_request(&site.owner, r);
    site.routes = (struct router_table){.private = false};
}

static int open_site(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(executor_queue_init(&site.executor, &e), 0);
    assert_int_equal(pseudonyms_create(&site.flow.pseudonyms, NULL, &e), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.owner.routes = &site.routes;
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    flow_owner_fini(&site.owner);
    pseudonyms_destroy(site.flow.pseudonyms);
    executor_queue_fini(&site.executor);
    return 0;
}

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("privacy_run");
}

int main(void)
{
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_text_without_personal_data_is_not_touched),
        cmocka_unit_test(test_refusals_name_kinds_and_not_values),
        cmocka_unit_test(test_token_ids_are_refused),
        cmocka_unit_test(test_pseudonyms_come_back_however_the_answer_is_cut),
        cmocka_unit_test(test_marks_of_others_stay),
        cmocka_unit_test(test_arguments_of_calls),
        cmocka_unit_test(test_pseudonyms_are_stable_in_a_conversation),
        cmocka_unit_test(test_a_command_and_its_actions),
        cmocka_unit_test(test_the_input_of_a_flow),
        cmocka_unit_test(test_places_of_spans_are_those_of_the_clients_text),
        cmocka_unit_test(test_who_wants_it),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, open_site, close_site);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
