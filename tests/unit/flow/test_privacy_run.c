/* test_privacy_run.c - personal data is removed from a request and restored in its answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* a member of sink_ops */

#include "base/thread/executor_queue.h"
#include "base/mem.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
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

/* ---- every text of a request ---- */

#define ID(n) "a" #n "@example.org"

/* A generation with an address in each of its texts. */
static struct request *full_request(bool chat_form)
{
    static const struct chat_call calls[] = {
        {.name = "send", .arguments = ID(1), .arguments_bytes = sizeof(ID(1)) - 1}};
    static const struct chat_message messages[] = {
        {.role = "user", .content = ID(2), .content_bytes = sizeof(ID(2)) - 1, .name = ID(3)},
        {.role = "assistant", .content = "", .calls = calls, .n_calls = 1}};
    static const struct value choices[] = {
        {.kind = VALUE_TEXT, .text = {ID(4), sizeof(ID(4)) - 1}}};
    static const struct value_member schema[] = {
        {ID(5), {.kind = VALUE_LIST, .list = {choices, 1}}}};
    static const struct chat_tool tools[] = {
        {.name = "send",
         .description = ID(6),
         .parameters = {.kind = VALUE_MAP, .map = {schema, 1}}}};
    static const struct request_piece pieces[] = {
        {.name = ID(7), .text = ID(8), .text_bytes = sizeof(ID(8)) - 1}};
    static const struct request_prompt prompts[] = {{.text = ID(2),
                                                     .text_bytes = sizeof(ID(2)) - 1,
                                                     .suffix = ID(3),
                                                     .suffix_bytes = sizeof(ID(3)) - 1,
                                                     .pieces = pieces,
                                                     .n_pieces = 1}};
    static const char *const stops[] = {"end", ID(9)};
    struct request *r = chat("x", "");
    r->generate.chat = (struct chat){.messages = chat_form ? messages : NULL,
                                     .n_messages = chat_form ? 2 : 0,
                                     .tools = tools,
                                     .n_tools = 1};
    r->generate.prompts = prompts;
    r->generate.stop = stops;
    r->generate.n_stop = 2;
    r->generate.constraint = (struct request_constraint){
        .kind = SHOAL_CONSTRAINT_REGEX, .text = ID(0), .text_bytes = sizeof(ID(0)) - 1};
    return r;
}

static void masked(const char *text, size_t n)
{
    assert_string_equal(text, "[email]");
    assert_int_equal(n, 7);
}

static void test_every_text_is_searched(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    for (int chat_form = 0; chat_form < 2; chat_form++) {
        struct recorder *to = fresh();
        struct request *was = full_request(chat_form), *r = run(was, to, PRIVACY_MASK);
        const struct request_generate *g = &r->generate;
        if (chat_form) {
            masked(g->chat.messages[0].content, g->chat.messages[0].content_bytes);
            masked(g->chat.messages[0].name, 7);
            masked(g->chat.messages[1].calls[0].arguments,
                   g->chat.messages[1].calls[0].arguments_bytes);
            assert_string_equal(g->chat.messages[1].calls[0].name, "send");
        } else {
            masked(g->prompts[0].text, g->prompts[0].text_bytes);
            masked(g->prompts[0].suffix, g->prompts[0].suffix_bytes);
            masked(g->prompts[0].pieces[0].text, g->prompts[0].pieces[0].text_bytes);
            masked(g->prompts[0].pieces[0].name, 7);
        }
        const struct value_member *m = g->chat.tools[0].parameters.map.members;
        masked(g->chat.tools[0].description, 7);
        masked(m[0].key, 7);
        masked(m[0].value.list.items[0].text.p, m[0].value.list.items[0].text.n);
        assert_string_equal(g->stop[0], "end");
        masked(g->stop[1], 7);
        masked(g->constraint.text, g->constraint.text_bytes);
        start();
        finish();
    }
}

/* The refusal names the first field that has personal data. */
static void test_where_it_was_found(void **state)
{
    static const int32_t one_id = 1;
    static const struct request_piece ids[] = {{.ids = &one_id, .n_ids = 1}};
    static const struct request_input inputs[] = {{.text = "x", .text_bytes = 1},
                                                  {.ids = &one_id, .n_ids = 1}};
    (void)state;
    trace("== %s\n", __func__);
    static const char *const fields[] = {"messages",        "messages", "tool_calls", "tools",
                                         "response_format", "stop",     "query",      "title"};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct recorder *to = fresh();
        struct request *r = chat("x", "");
        struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
        *m = (struct chat_message){.role = "user", .content = "x", .content_bytes = 1};
        const struct chat_call call = {.name = "f", .arguments = MAIL, .arguments_bytes = 24};
        const struct chat_tool tool = {.name = "f", .description = MAIL};
        const char *const stop = MAIL;
        r->generate.chat.messages = m;
        if (i == 0)
            *m = (struct chat_message){.role = "user", .content = MAIL, .content_bytes = 24};
        m->name = i == 1 ? MAIL : NULL;
        m->calls = &call;
        m->n_calls = i == 2;
        r->generate.chat.tools = &tool;
        r->generate.chat.n_tools = i == 3;
        if (i == 4)
            r->generate.constraint = (struct request_constraint){
                .kind = SHOAL_CONSTRAINT_REGEX, .text = MAIL, .text_bytes = 24};
        r->generate.stop = &stop;
        r->generate.n_stop = i == 5;
        if (i > 5) {
            r->kind = REQUEST_INFER;
            r->infer = (struct request_infer){.kind = SHOAL_KIND_RERANK,
                                              .inputs = inputs,
                                              .n_inputs = 1,
                                              .query = i == 6 ? MAIL : "x",
                                              .title = i == 7 ? MAIL : NULL};
        }
        assert_null(run(r, to, PRIVACY_REFUSE));
        assert_int_equal(to->n_fails, 1);
        assert_string_equal(to->failure.param, fields[i]);
        assert_int_equal(to->failure.code, SHOAL_EINVAL);
        buf_fini(&seen.calls);
    }
    for (int i = 0; i < 3; i++) { /* token ids could hide anything */
        struct recorder *to = fresh();
        struct request *r = chat("x", "");
        const struct request_prompt prompt = {.pieces = ids, .n_pieces = 1};
        r->generate.chat.n_messages = 0;
        r->generate.prompts = &prompt;
        if (i == 1) {
            r->kind = REQUEST_INFER;
            r->infer =
                (struct request_infer){.kind = SHOAL_KIND_EMBED, .inputs = inputs, .n_inputs = 2};
        } else if (i == 2) {
            r->kind = REQUEST_TOKENS;
            r->tokens = (struct request_tokens){.decode = true, .ids = ids[0].ids, .n_ids = 1};
        }
        assert_null(run(r, to, PRIVACY_MASK));
        assert_int_equal(to->n_fails, 1);
        assert_string_equal(to->reason, "personal_data");
        assert_non_null(strstr(to->failure.message, "token ids"));
        buf_fini(&seen.calls);
    }
}

/* Tokens are those of the text that a model would read; nothing is put back. */
static void test_a_tokenizer(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    struct request *r = flow_take_request(&site.owner);
    r->kind = REQUEST_TOKENS;
    r->tokens = (struct request_tokens){.text = "by " MAIL, .text_bytes = strlen("by " MAIL)};
    r = run(r, to, PRIVACY_PSEUDONYM);
    assert_int_equal(strncmp(r->tokens.text, "by [email-", 10), 0);
    assert_int_equal(r->tokens.text_bytes, strlen(r->tokens.text));
    assert_ptr_equal(seen.sink, &to->sink);
    assert_null(to->sink.job);
    flow_give_request(&site.owner, r);
    buf_fini(&seen.calls);
}

/* ---- names, from a model ---- */

static struct {
    uint32_t n_inputs;
    char texts[512];         /* "text|" of each input */
    enum failure_kind fails; /* with `broken` */
    bool broken, waits;
    struct flow_job job;
    struct request *request;
    struct sink *sink;
} tagger;

static void on_tagger_cancel(struct flow_job *j)
{
    (void)j;
    tagger.sink->job = NULL;
    tagger.sink->ops->closed(tagger.sink);
    flow_give_request(&site.owner, tagger.request);
}

/* Every "Anna" is a person, every "Bern" a place, every "bob" perhaps one. */
static void tag_text(struct sink *s, const struct request_input *in, uint32_t i, bool last)
{
    static const struct {
        const char *word, *label;
        float score;
    } words[] = {{"Anna", "person", 0.9f}, {"Bern", "place", 0.8f}, {"bob", "person", 0.5f}};
    struct shoal_span spans[8];
    uint32_t n = 0;
    for (size_t k = 0; k < 3; k++)
        for (const char *p = in->text; (p = strstr(p, words[k].word)) && n < 8; p++)
            spans[n++] = (struct shoal_span){
                .label = words[k].label,
                .start = (uint32_t)(p - in->text),
                .end = (uint32_t)((size_t)(p - in->text) + strlen(words[k].word)),
                .score = words[k].score};
    const struct shoal_result one = {
        .kind = SHOAL_KIND_TAG, .label = "", .spans = spans, .n_spans = n};
    const struct sink_result e = {.index = i, .result = &one, .last = last};
    s->ops->result(s, &e);
}

static bool run_tagger(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_tagger_cancel, on_tagger_cancel};
    const struct sink_start e = {.model = "names", .version = ""};
    struct failure f;
    (void)d;
    assert_string_equal(r->model, "names");
    assert_int_equal(r->infer.kind, SHOAL_KIND_TAG);
    assert_string_equal(r->client.name, "shop");
    assert_int_equal(r->priority, -2);
    assert_int_equal(r->deadline_ns, 5);
    assert_int_equal(r->received_ns, 4);
    assert_true(r->here && r->screened);
    tagger.n_inputs = r->infer.n_inputs;
    size_t bytes = 0;
    for (uint32_t i = 0; i < r->infer.n_inputs; i++) {
        size_t n = strlen(tagger.texts);
        bytes += r->infer.inputs[i].text_bytes;
        snprintf(tagger.texts + n, sizeof(tagger.texts) - n, "%.*s|",
                 (int)r->infer.inputs[i].text_bytes, r->infer.inputs[i].text);
    }
    assert_int_equal(r->input_bytes, bytes);
    if (tagger.waits) {
        tagger.job.ops = &job_ops;
        tagger.request = r;
        tagger.sink = s;
        s->job = &tagger.job;
        return true;
    }
    if (tagger.broken) {
        failure_set(&f, tagger.fails, SHOAL_EBUSY, NULL, "x", "no room");
        f.retry_after_s = tagger.fails == FAILURE_BUSY ? 9 : 0;
        s->ops->fail(s, &f);
    } else {
        s->ops->start(s, &e);
        for (uint32_t i = 0; i < r->infer.n_inputs; i++)
            tag_text(s, &r->infer.inputs[i], i, i + 1 == r->infer.n_inputs);
    }
    s->ops->closed(s);
    flow_give_request(o, r);
    return true;
}

static struct request *run_with_names(struct request *r, struct recorder *to, unsigned kinds)
{
    static const struct dispatch_ops dispatch_ops = {.run = run_tagger};
    static struct dispatch dispatch = {&dispatch_ops};
    char name[] = "names"; /* the configuration may be replaced meanwhile */
    const struct privacy_policy p = {.action = PRIVACY_MASK, .kinds = kinds, .tagger = name};
    tagger.texts[0] = '\0';
    tagger.n_inputs = 0;
    site.owner.apart = &dispatch;
    r->way.pass_on = on_next;
    r->leaving = &p;
    r->priority = -2;
    r->deadline_ns = 5;
    r->received_ns = 4;
    snprintf(r->client.name, sizeof(r->client.name), "shop");
    assert_true(privacy_take_leaving(&site.owner, r, &to->sink));
    memset(name, 'x', sizeof(name) - 1);
    return seen.request;
}

static void test_names_come_from_a_model(void **state)
{
    static const struct {
        const char *text, *want;
        unsigned kinds;
    } rows[] = {
        {"Anna lives in Bern.", "[person] lives in [place].", PII_BY_MODEL},
        {"Anna lives in Bern.", "[person] lives in Bern.", PII_BIT(PII_PERSON)},
        {"Anna lives in Bern.", "Anna lives in [place].", PII_BIT(PII_PLACE)},
        {"bob is here", "bob is here", PII_BY_MODEL}, /* not sure enough */
        {"Bern: Anna, " MAIL, "[place]: [person], [email]", PII_BY_MODEL | PII_BY_RULES},
        {"mail Anna@example.org to Anna", "mail [email] to [person]",
         PII_BY_MODEL | PII_BY_RULES}, /* what rules found stays whole */
    };
    (void)state;
    trace("== %s\n", __func__);
    memset(&tagger, 0, sizeof(tagger));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct recorder *to = fresh();
        struct request *r = run_with_names(chat(rows[i].text, ""), to, rows[i].kinds);
        assert_string_equal(content(r), rows[i].want);
        assert_int_equal(tagger.n_inputs, 1);
        start();
        finish();
    }
    /* a long text is read in pieces, and places are those of the whole */
    char text[4000] = "";
    for (int i = 0; i < 60; i++)
        strncat(text, "There is nothing to see in this long sentence. ", 48);
    strncat(text, "Anna in Bern.", 20);
    struct recorder *to = fresh();
    struct request *r = run_with_names(chat(text, ""), to, PII_BY_MODEL);
    assert_true(tagger.n_inputs > 1);
    assert_int_equal(strncmp(content(r), text, 60 * 47), 0);
    assert_string_equal(content(r) + 60 * 47, "[person] in [place].");
    start();
    finish();
    /* stops are no prose: there is nothing to read */
    const char *const stop = "Anna";
    to = fresh();
    r = chat("", "");
    r->generate.stop = &stop;
    r->generate.n_stop = 1;
    r = run_with_names(r, to, PII_BY_MODEL);
    assert_int_equal(tagger.n_inputs, 0);
    assert_string_equal(r->generate.stop[0], "Anna");
    flow_give_request(&site.owner, r);
    buf_fini(&seen.calls);
}

/* Without the model names would pass: the request is refused, and may be sent again. */
static void test_a_tagger_that_fails(void **state)
{
    static const struct {
        enum failure_kind fails, want;
        uint32_t retry;
    } rows[] = {{FAILURE_BUSY, FAILURE_BUSY, 9},
                {FAILURE_DEADLINE, FAILURE_DEADLINE, 2},
                {FAILURE_NOT_FOUND, FAILURE_UNAVAILABLE, 2}};
    (void)state;
    trace("== %s\n", __func__);
    memset(&tagger, 0, sizeof(tagger));
    tagger.broken = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct recorder *to = fresh();
        tagger.fails = rows[i].fails;
        assert_null(run_with_names(chat("Anna", ""), to, PII_BY_MODEL));
        assert_int_equal(to->n_fails, 1);
        assert_int_equal(to->n_closed, 1);
        assert_int_equal(to->failure.kind, rows[i].want);
        assert_int_equal(to->failure.retry_after_s, rows[i].retry);
        assert_string_equal(to->failure.message, "the model that finds names failed: no room");
        buf_fini(&seen.calls);
    }
    tagger.broken = false;
    tagger.waits = true;
    struct recorder *to = fresh();
    assert_null(run_with_names(chat("Anna", ""), to, PII_BY_MODEL));
    flow_resume(&to->sink); /* there is nothing to send */
    assert_int_equal(to->n_closed, 0);
    flow_cancel(&to->sink);
    assert_int_equal(to->n_closed, 1);
    assert_int_equal(to->n_fails, 0);
    assert_null(to->sink.job);
    buf_fini(&seen.calls);
    site.owner.apart = NULL;
}

/* Text that comes with the end of a call is sent before it; other choices pass. */
static void test_pieces_of_calls(void **state)
{
    static const struct {
        uint32_t choice;
        bool begins, ends;
        const char *text, *want;
    } rows[] = {{0, true, false, "", "{"},          {0, false, false, "ab", "ab."},
                {0, false, false, "[ema", ""},      {0, false, true, "", "[ema.}"},
                {0, false, true, "x[", "x[.}"},     {0, false, false, "", ""},
                {7, false, false, "[ema", "[ema."}, {0, false, true, "", "}"}};
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = fresh();
    assert_non_null(run(chat("mail " MAIL, ""), to, PRIVACY_PSEUDONYM));
    start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct sink_call e = {.choice = rows[i].choice,
                                    .begins = rows[i].begins,
                                    .ends = rows[i].ends,
                                    .id = "1",
                                    .name = "f",
                                    .text = rows[i].text,
                                    .text_bytes = strlen(rows[i].text)};
        buf_clear(&seen.calls);
        seen.sink->ops->call(seen.sink, &e);
        assert_string_equal(buf_str(&seen.calls), rows[i].want);
    }
    finish();
}

/* A summary of a masked text gets the values back. */
static void test_the_text_of_a_result(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    for (int edits = 0; edits < 2; edits++) {
        struct recorder *to = fresh();
        struct request *r = flow_take_request(&site.owner);
        struct request_input *in = arena_zalloc_n(&r->arena, 2, sizeof(*in));
        in[0] = (struct request_input){.text = edits ? MAIL : "x", .text_bytes = edits ? 24 : 1};
        in[1] = (struct request_input){.text = PHONE, .text_bytes = strlen(PHONE)};
        r->kind = REQUEST_INFER;
        r->infer =
            (struct request_infer){.kind = SHOAL_KIND_SUMMARIZE, .inputs = in, .n_inputs = 2};
        r = run(r, to, PRIVACY_PSEUDONYM);
        char text[64];
        snprintf(text, sizeof(text), "<%s>", r->infer.inputs[0].text);
        const struct shoal_result result = {.label = "", .text = text, .text_bytes = strlen(text)};
        const struct sink_result e = {.result = &result};
        start();
        seen.sink->ops->result(seen.sink, &e);
        assert_string_equal(seen.result->text, edits ? "<" MAIL ">" : "<x>");
        assert_int_equal(seen.result->text_bytes, strlen(seen.result->text));
        assert_int_equal(seen.result == &result, !edits);
        seen.sink->ops->closed(seen.sink);
        flow_give_request(&site.owner, r);
        buf_fini(&seen.calls);
    }
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
        cmocka_unit_test(test_every_text_is_searched),
        cmocka_unit_test(test_where_it_was_found),
        cmocka_unit_test(test_a_tokenizer),
        cmocka_unit_test(test_names_come_from_a_model),
        cmocka_unit_test(test_a_tagger_that_fails),
        cmocka_unit_test(test_pieces_of_calls),
        cmocka_unit_test(test_the_text_of_a_result),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, open_site, close_site);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
