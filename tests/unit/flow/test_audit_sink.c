/* test_audit_sink.c - what the audit log says of a request: by whom, with what, how it ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "base/file/file_read.h"
#include "base/thread/executor_queue.h"
#include "flow/audit_sink.h"
#include "host/registry.h"
#include "host/sha256.h"
#include "supply/audit_log.h"
#include "support/recorder.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    char dir[64];
    struct sink *inner; /* to which the rest of the way writes */
    struct request *request;
    struct recorder to;
} site;

static void on_pass(struct flow_owner *o, struct request *r, struct sink *s)
{
    (void)o;
    site.request = r;
    site.inner = s;
}

static struct request *make(enum request_kind kind)
{
    struct request *r = flow_take_request(&site.owner);
    r->kind = kind;
    r->model = "asked";
    r->way.pass_on = on_pass;
    snprintf(r->client.name, sizeof(r->client.name), "anna");
    return r;
}

static void take(struct request *r)
{
    recorder_fini(&site.to);
    recorder_init(&site.to);
    site.inner = NULL;
    assert_true(audit_sink_take(&site.owner, r, &site.to.sink));
}

static void close_request(void)
{
    site.inner->ops->closed(site.inner);
    assert_int_equal(site.to.n_closed, 1);
    flow_give_request(&site.owner, site.request);
}

static void start(const struct sink_start *e)
{
    site.inner->ops->start(site.inner, e);
}

static void token(const char *text)
{
    const struct sink_token e = {.token = 1, .text = text, .text_bytes = strlen(text)};
    site.inner->ops->token(site.inner, &e);
}

static void done(uint32_t n_tokens, bool last)
{
    const struct sink_done e = {.generated_tokens = n_tokens, .last = last};
    site.inner->ops->done(site.inner, &e);
}

/* The last line; free it with cJSON_Delete. *n: how many of requests there are. */
static cJSON *last_line(uint32_t *n)
{
    char path[128];
    struct buf b;
    cJSON *last = NULL;
    snprintf(path, sizeof(path), "%s/audit-000001.jsonl", site.dir);
    buf_init(&b, (size_t)1 << 24);
    assert_int_equal(file_read(path, &b, NULL), 0);
    *n = 0;
    for (char *p = b.data, *end; (end = memchr(p, '\n', b.len - (size_t)(p - b.data)));
         p = end + 1) {
        cJSON *line = cJSON_ParseWithLength(p, (size_t)(end - p));
        assert_non_null(line);
        bool request = strcmp(cJSON_GetObjectItem(line, "kind")->valuestring, "request") == 0;
        *n += request;
        cJSON_Delete(request ? last : line);
        last = request ? line : last;
        if ((size_t)(end + 1 - b.data) >= b.len)
            break;
    }
    buf_fini(&b);
    return last;
}

static uint32_t count(void)
{
    uint32_t n;
    cJSON_Delete(last_line(&n));
    return n;
}

/* want NULL: it is not there. */
static void expect(const cJSON *line, const char *key, const char *want)
{
    const cJSON *v = cJSON_GetObjectItem(line, key);
    if (!want != !v)
        fail_msg("%s is %s", key, v ? v->valuestring : "missing");
    if (want)
        assert_string_equal(v->valuestring, want);
}

static void expect_hash(const cJSON *line, const char *key, const char *of)
{
    struct sha256 h;
    uint8_t sum[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    sha256_begin(&h);
    sha256_add(&h, of, strlen(of));
    assert_true(sha256_end(&h, sum));
    sha256_hex(hex, sum);
    expect(line, key, hex);
}

static void test_an_answer(void **state)
{
    static const uint8_t sum[SHA256_BYTES] = {0xab};
    static const struct chat_message messages[] = {
        {.role = "system", .content = "be brief", .content_bytes = 8},
        {.role = "user", .content = "hello", .content_bytes = 5}};
    struct request *r = make(REQUEST_GENERATE);
    uint32_t n, before = count();
    (void)state;
    r->generate.chat.messages = messages;
    r->generate.chat.n_messages = 2;
    r->received_ns = clock_ns() - 5000000000u;
    take(r);
    start(&(struct sink_start){.model = "m", .version = "", .sum = sum});
    token("good");
    token(" day");
    done(3, false);
    assert_int_equal(count(), before); /* one choice of two */
    done(4, true);
    assert_int_equal(count(), before + 1); /* before the client has it all */
    close_request();
    cJSON *line = last_line(&n);
    assert_int_equal(n, before + 1); /* closing adds none */
    expect(line, "client", "anna");
    expect(line, "model", "m");
    expect(line, "node", NULL);
    expect(line, "decision", "answered");
    expect(line, "reason", NULL);
    expect_hash(line, "prompt", "system\nbe brief\nuser\nhello\n");
    expect_hash(line, "answer", "good day");
    assert_int_equal(cJSON_GetObjectItem(line, "tokens")->valueint, 7);
    assert_true(cJSON_GetObjectItem(line, "ms")->valuedouble >= 5000);
    assert_true(strncmp(cJSON_GetObjectItem(line, "sha256")->valuestring, "ab00", 4) == 0);
    cJSON_Delete(line);
    assert_int_equal(site.to.n_tokens, 2);
    assert_int_equal(site.to.n_done, 2);
    assert_string_equal(site.to.text[0], "good day");
}

static void on_replace(struct sink *s, const struct sink_replace *e)
{
    assert_string_equal(e->why, "unsure");
    recorder_of(s)->n_flushes++;
}

/* Another node answers, then another one in its place: the log tells of the last. */
static void test_an_answer_that_is_replaced(void **state)
{
    static const struct request_prompt prompt = {.text = "once", .text_bytes = 4};
    const struct sink_start first = {.model = "m1", .version = "", .node = "n1"},
                            second = {.model = "m2", .version = "", .node = "n2"};
    struct request *r = make(REQUEST_GENERATE);
    uint32_t n;
    (void)state;
    r->generate.prompts = &prompt;
    r->generate.n_prompts = 1;
    take(r);
    struct sink_ops mine = *site.to.sink.ops;
    mine.replace = on_replace;
    site.to.sink.ops = &mine;
    start(&first);
    token("void");
    const struct sink_replace e = {.start = &second, .why = "unsure"};
    site.inner->ops->replace(site.inner, &e);
    assert_int_equal(site.to.n_flushes, 1);
    token("valid");
    done(1, true);
    close_request();
    cJSON *line = last_line(&n);
    expect(line, "model", "m2");
    expect(line, "node", "n2");
    expect_hash(line, "prompt", "once\n");
    expect_hash(line, "answer", "valid");
    expect(line, "decision", "answered");
    assert_null(cJSON_GetObjectItem(line, "ms")); /* nobody knows when it came */
    cJSON_Delete(line);
}

static void test_how_it_ended(void **state)
{
    static const struct {
        enum failure_kind kind;
        const char *decision;
    } rows[] = {
        {FAILURE_INVALID, "refused"},    {FAILURE_NOT_FOUND, "refused"},
        {FAILURE_BUSY, "refused"},       {FAILURE_CONFLICT, "refused"},
        {FAILURE_DEADLINE, "failed"},    {FAILURE_NOT_LOADED, "failed"},
        {FAILURE_UNAVAILABLE, "failed"}, {FAILURE_INTERNAL, "failed"},
    };
    uint32_t n, before = count();
    cJSON *line;
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct failure f;
        failure_set(&f, rows[i].kind, SHOAL_EINVAL, NULL, "why_so", "a text");
        take(make(REQUEST_GENERATE));
        (site.inner->ops->fail)(site.inner, &f);
        assert_int_equal(site.to.n_fails, 1);
        assert_int_equal(site.to.failure.kind, rows[i].kind);
        close_request();
        line = last_line(&n);
        assert_int_equal(n, before + 1 + i);
        expect(line, "decision", rows[i].decision);
        expect(line, "reason", "why_so");
        expect(line, "model", "asked"); /* none was found */
        cJSON_Delete(line);
    }
    take(make(REQUEST_GENERATE)); /* the client has gone */
    start(&(struct sink_start){.model = "m", .version = ""});
    token("half");
    close_request();
    line = last_line(&n);
    expect(line, "decision", "cancelled");
    expect_hash(line, "answer", "half");
    cJSON_Delete(line);
}

/* Of n results, which are all the same; returns the hash of the answer. */
static void answer_results(uint32_t n, char out[65])
{
    const struct request_input input = {.text = "a text", .text_bytes = 6};
    const struct shoal_result result = {
        .kind = SHOAL_KIND_CLASSIFY, .label = "yes", .confidence = 0.5f};
    struct request *r = make(REQUEST_INFER);
    uint32_t all, before = count();
    r->infer.query = "a query";
    r->infer.inputs = &input;
    r->infer.n_inputs = 1;
    take(r);
    start(&(struct sink_start){.model = "m", .version = ""});
    for (uint32_t i = 0; i < n; i++) {
        const struct sink_result e = {.index = i, .result = &result, .last = i + 1 == n};
        assert_int_equal(count(), before);
        site.inner->ops->result(site.inner, &e);
    }
    assert_int_equal(site.to.n_results, n);
    close_request();
    cJSON *line = last_line(&all);
    assert_int_equal(all, before + 1);
    expect(line, "decision", "answered");
    expect_hash(line, "prompt", "a query\na text\n");
    snprintf(out, 65, "%s", cJSON_GetObjectItem(line, "answer")->valuestring);
    cJSON_Delete(line);
}

static void test_results(void **state)
{
    char one[65], two[65], again[65];
    (void)state;
    answer_results(1, one);
    answer_results(2, two);
    answer_results(2, again);
    assert_string_not_equal(one, two);
    assert_string_equal(two, again);
}

static void on_call(struct sink *s, const struct sink_call *e)
{
    (void)e;
    recorder_of(s)->n_flushes++;
}

static void test_tool_calls(void **state)
{
    uint32_t n;
    (void)state;
    take(make(REQUEST_GENERATE));
    struct sink_ops mine = *site.to.sink.ops;
    mine.call = on_call;
    site.to.sink.ops = &mine;
    start(&(struct sink_start){.model = "m", .version = ""});
    site.inner->ops->call(
        site.inner,
        &(struct sink_call){
            .begins = true, .id = "1", .name = "lamp", .text = "{\"on", .text_bytes = 4});
    site.inner->ops->call(
        site.inner, &(struct sink_call){
                        .ends = true, .id = "1", .name = "lamp", .text = "\":1}", .text_bytes = 4});
    assert_int_equal(site.to.n_flushes, 2);
    done(1, true);
    close_request();
    cJSON *line = last_line(&n);
    expect_hash(line, "answer", "lamp\n{\"on\":1}");
    cJSON_Delete(line);
}

/* Whatever the model reads is in the hash, and parts keep their borders. */
static void prompt_hash(struct request *r, char out[65])
{
    uint32_t n;
    take(r);
    close_request();
    cJSON *line = last_line(&n);
    snprintf(out, 65, "%s", cJSON_GetObjectItem(line, "prompt")->valuestring);
    cJSON_Delete(line);
}

static void test_what_a_prompt_is(void **state)
{
    static const int32_t ids[] = {1, 2, 3};
    static const double values[] = {1, 2};
    static const int16_t samples[] = {1, 2};
    static const struct request_piece ab_c[] = {{.text = "ab", .text_bytes = 2},
                                                {.text = "c", .text_bytes = 1}},
                                      a_bc[] = {{.text = "a", .text_bytes = 1},
                                                {.text = "bc", .text_bytes = 2}},
                                      of_ids[] = {{.ids = ids, .n_ids = 2}};
    static const struct request_prompt prompts[] = {
        {.text = "abc", .text_bytes = 3},
        {.text = "abd", .text_bytes = 3},
        {.text = "abc", .text_bytes = 3, .suffix = "x", .suffix_bytes = 1},
        {.text = "abc", .text_bytes = 3, .suffix = "y", .suffix_bytes = 1},
        {.ids = ids, .n_ids = 2},
        {.ids = ids, .n_ids = 3},
        {.pieces = ab_c, .n_pieces = 2},
        {.pieces = a_bc, .n_pieces = 2},
        {.pieces = ab_c, .n_pieces = 1},
        {.pieces = of_ids, .n_pieces = 1},
    };
    static const struct request_input inputs[] = {
        {.text = "t", .text_bytes = 1},          {.ids = ids, .n_ids = 1},
        {.values = values, .n_values = 2},       {.values = values, .n_values = 1},
        {.samples = samples, .n_samples = 2},    {.samples = samples, .n_samples = 1},
        {.image = "\xff\xd8", .image_bytes = 2}, {.image = "\xff\xd9", .image_bytes = 2},
    };
    static char hashes[64][65];
    size_t n = 0;
    struct request *r;
    (void)state;
    for (size_t i = 0; i < N(prompts); i++) {
        r = make(REQUEST_GENERATE);
        r->generate.prompts = &prompts[i];
        r->generate.n_prompts = 1;
        prompt_hash(r, hashes[n++]);
    }
    r = make(REQUEST_GENERATE);
    r->generate.prompts = prompts;
    r->generate.n_prompts = 2;
    prompt_hash(r, hashes[n++]);
    for (size_t i = 0; i < N(inputs); i++) {
        r = make(REQUEST_INFER);
        r->infer.inputs = &inputs[i];
        r->infer.n_inputs = 1;
        prompt_hash(r, hashes[n++]);
    }
    r = make(REQUEST_INFER);
    r->infer.inputs = inputs;
    r->infer.n_inputs = 2;
    prompt_hash(r, hashes[n++]);
    r = make(REQUEST_ASK);
    r->ask.text = "lights on";
    prompt_hash(r, hashes[n++]);
    r = make(REQUEST_TOKENS);
    r->tokens.text = "words";
    r->tokens.text_bytes = 5;
    prompt_hash(r, hashes[n++]);
    r = make(REQUEST_TOKENS);
    r->tokens.ids = ids + 1; /* the same tokens would be the same text */
    r->tokens.n_ids = 2;
    prompt_hash(r, hashes[n++]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(hashes[i], hashes[k]) == 0)
                fail_msg("prompts %zu and %zu have one hash", k, i);
    r = make(REQUEST_ASK); /* nothing: nothing is read */
    prompt_hash(r, hashes[n]);
    r = make(REQUEST_TOKENS);
    prompt_hash(r, hashes[n + 1]);
    assert_string_equal(hashes[n], hashes[n + 1]);
}

static void test_no_log(void **state)
{
    struct audit_log *was = site.flow.audit;
    struct request *r = make(REQUEST_ASK);
    (void)state;
    site.flow.audit = NULL;
    site.inner = NULL;
    assert_false(audit_sink_take(&site.owner, r, &site.to.sink));
    assert_null(site.inner);
    flow_give_request(&site.owner, r);
    site.flow.audit = was;
}

static int open_site(void **state)
{
    const struct registry_opts ro = {.lent_only = true};
    struct err e = {0};
    (void)state;
    snprintf(site.dir, sizeof(site.dir), "/tmp/test_audit_sink.XXXXXX");
    assert_non_null(mkdtemp(site.dir));
    assert_int_equal(
        audit_log_open(&site.flow.audit, &(struct audit_log_opts){.dir = site.dir}, &e), 0);
    assert_int_equal(executor_queue_init(&site.executor, &e), 0);
    assert_int_equal(registry_create(&site.flow.registry, &ro, &e), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    return 0;
}

static int close_site(void **state)
{
    char line[128];
    (void)state;
    recorder_fini(&site.to);
    audit_log_close(site.flow.audit);
    registry_destroy(site.flow.registry);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    snprintf(line, sizeof(line), "rm -rf '%s'", site.dir);
    return system(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer),    cmocka_unit_test(test_an_answer_that_is_replaced),
        cmocka_unit_test(test_how_it_ended), cmocka_unit_test(test_results),
        cmocka_unit_test(test_tool_calls),   cmocka_unit_test(test_what_a_prompt_is),
        cmocka_unit_test(test_no_log),
    };
    return cmocka_run_group_tests(tests, open_site, close_site);
}
