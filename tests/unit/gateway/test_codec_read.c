/* test_codec_read.c - headers, the ranges of numbers and the words of refusals, in all APIs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/codec_read.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

#define CHAT "/v1/chat/completions"
#define COMPLETIONS "/v1/completions"
#define RESPONSES "/v1/responses"
#define MESSAGES "/v1/messages"
#define OPENAI "temp=1 top_p=1 "

/* ---- headers ---- */

static void test_headers(void **state)
{
    static const struct {
        const char *header, *body, *want;
    } rows[] = {
        {"x-latency-budget-ms: 5000", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' within=5000 bytes=2"},
        {"x-latency-budget-ms: 0.5", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' within=0.5 bytes=2"},
        {"x-latency-budget-ms: 86400000", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' within=8.64e+07 bytes=2"},
        {"x-latency-budget-ms: 86400001", "{'prompt':'hi'}",
         "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: 0", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: -1", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: 5s", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: x", "{'prompt':'hi'}", "400 x-latency-budget-ms invalid_value"},
        {"x-latency-budget-ms: 5000", "{'prompt':'hi','latency_budget_ms':3000}",
         "max=16 " OPENAI "parse 'hi' within=3000 bytes=2"},
        {"x-latency-budget-ms: 5000", "{'prompt':'hi','latency_budget_ms':7000}",
         "max=16 " OPENAI "parse 'hi' within=5000 bytes=2"},
        {"x-session-id: sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss",
         "{'prompt':'hi'}",
         "max=16 " OPENAI
         "parse 'hi' session='sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss' "
         "bytes=2"},
        {"x-session-id: ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss",
         "{'prompt':'hi'}", "400 x-session-id invalid_value"},
        {"x-shoal-session: a.b", "{'prompt':'hi'}", "400 session_id sessions_off"},
        {"x-shoal-session: a b", "{'prompt':'hi'}", "400 session_id invalid_value"},
        {"x-shoal-explain: 1", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' explain bytes=2"},
        {"x-shoal-explain: 0", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {"content-language: de-DE", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' language='de' bytes=2"},
        {"content-language: en, de", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' language='en' bytes=2"},
        {"content-language: fr", "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' language='fr' bytes=2"},
        {"content-language: "
         "ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
         "dddddddddddddddddddddddddddddddddddddd",
         "{'prompt':'hi'}",
         "max=16 " OPENAI "parse 'hi' "
         "language='"
         "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
         "ddddddddddddddddddddddddddddddddddddddddddddddddddddddd' bytes=2"},
        {"content-language: "
         "ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
         "ddddddddddddddddddddddddddddddddddddddd",
         "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' bytes=2"},
        {"idempotency-key: k", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' once bytes=2"},
        {"x-idempotency-key: k", "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' once bytes=2"},
        {"idempotency-key: "
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
         "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
         "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' once bytes=2"},
        {"x-shoal-version: abc", "{'prompt':'hi'}", "400 x-shoal-version invalid_value"},
        {"x-shoal-version: 0000000000000000000000000000000000000000000000000000000000000000",
         "{'prompt':'hi'}", "max=16 " OPENAI "parse 'hi' version bytes=2"},
        {"x-shoal-version: gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg",
         "{'prompt':'hi'}", "400 x-shoal-version invalid_value"},
        {"x-shoal-lenient: 1", "{'prompt':'hi','odd':1,'mirostat':1}",
         "max=16 " OPENAI "parse 'hi' bytes=2"},
        {"x-shoal-lenient: 0", "{'prompt':'hi','odd':1}", "400 odd unknown_parameter"},
        {"x-shoal-lenient: 1", "{'prompt':'hi','temperature':3}", "400 temperature invalid_value"},
        {"x-none: 1", "{'prompt':'hi'",
         "400 invalid_json the body is not valid JSON (near byte 13)"},
        {"x-none: 1", "[]", "400 invalid_type the body must be a JSON object"},
        {"x-none: 1", "", "400 the body is empty: send a JSON object"},
    };
    static struct gw gw;
    size_t n_wrong = 0;
    (void)state;
    codec_read_open_site(&gw);
    for (size_t i = 0; i < N(rows); i++) {
        struct buf out;
        buf_init(&out, 1 << 16);
        codec_read_ask_quoted(&gw, "/v1/completions", rows[i].header, rows[i].body, &out);
        const char *got = buf_str(&out);
        got += *got == ' ';
        if (strcmp(got, rows[i].want) != 0) {
            print_error("/H %s %s\n  got  %s\n  want %s\n", rows[i].header, rows[i].body, got,
                        rows[i].want);
            n_wrong++;
        }
        buf_fini(&out);
    }
    codec_read_close_site(&gw);
    assert_int_equal(n_wrong, 0);
}

/* ---- ranges ---- */

struct range {
    const char *path, *field; /* of the body, or of its member after a dot */
    double min, max;
};

/* Whether the field is taken with this value. */
static bool takes(struct gw *gw, const struct range *x, double v)
{
    static const struct {
        const char *path, *body;
    } bodies[] = {{"/v1/chat", "'messages':[{'role':'user','content':'a'}],'logprobs':true"},
                  {"/v1/completions", "'prompt':'a'"},
                  {"/v1/responses", "'input':'a'"},
                  {"/v1/messages", "'messages':[{'role':'user','content':'a'}]"},
                  {"/completion", "'prompt':'a'"},
                  {"/generate", "'inputs':'a'"},
                  {"/v1/rerank", "'query':'q','documents':['a']"},
                  {"/v1/process", "'text':'a'"},
                  {"/api/chat", "'messages':[{'role':'user','content':'a'}],'logprobs':true"},
                  {"/v1/", "'input':'a'"}};
    char body[512];
    size_t i = 0;
    while (strncmp(x->path, bodies[i].path, strlen(bodies[i].path)) != 0)
        i++;
    const char *dot = strchr(x->field, '.'), *name = dot ? dot + 1 : x->field;
    const bool more = strcmp(x->path, "/v1/messages") == 0 && strcmp(name, "max_tokens") != 0;
    snprintf(body, sizeof(body), dot ? "{%s%s,'%.*s':{'%s':%.17g}}" : "{%s%s,%.*s'%s':%.17g}",
             bodies[i].body, more ? ",'max_tokens':1" : "", dot ? (int)(dot - x->field) : 0,
             x->field, name, v);
    struct buf out;
    buf_init(&out, 1 << 16);
    codec_read_ask_quoted(gw, x->path, NULL, body, &out);
    const bool refused = strncmp(buf_str(&out), " 400", 4) == 0;
    if (refused && strncmp(x->path, "/api", 4) != 0)
        assert_non_null(strstr(buf_str(&out), name)); /* the refusal names the field */
    buf_fini(&out);
    return !refused;
}

/* Both ends are taken, and nothing outside of them. */
static void test_ranges(void **state)
{
    static const struct range ranges[] = {
        {CHAT, "max_tokens", -1, 16777216},
        {CHAT, "temperature", 0, 2},
        {CHAT, "top_p", 0, 1},
        {CHAT, "n", 1, 16},
        {CHAT, "presence_penalty", -2, 2},
        {CHAT, "frequency_penalty", -2, 2},
        {CHAT, "top_k", 0, 2147483647},
        {CHAT, "min_p", 0, 1},
        {CHAT, "repeat_penalty", 0, 10},
        {CHAT, "priority", -100, 0},
        {CHAT, "latency_budget_ms", 1, 86400000},
        {CHAT, "max_completion_tokens", 1, 16777216},
        {CHAT, "top_logprobs", 0, 20},
        {COMPLETIONS, "max_tokens", -1, 16777216},
        {COMPLETIONS, "temperature", 0, 2},
        {COMPLETIONS, "top_p", 0, 1},
        {COMPLETIONS, "n", 1, 16},
        {COMPLETIONS, "presence_penalty", -2, 2},
        {COMPLETIONS, "frequency_penalty", -2, 2},
        {COMPLETIONS, "top_k", 0, 2147483647},
        {COMPLETIONS, "min_p", 0, 1},
        {COMPLETIONS, "repeat_penalty", 0, 10},
        {COMPLETIONS, "priority", -100, 0},
        {COMPLETIONS, "latency_budget_ms", 1, 86400000},
        {COMPLETIONS, "best_of", 1, 16},
        {COMPLETIONS, "n_predict", -1, 16777216},
        {COMPLETIONS, "logprobs", 0, 20},
        {RESPONSES, "max_output_tokens", 1, 16777216},
        {RESPONSES, "temperature", 0, 2},
        {RESPONSES, "top_p", 0, 1},
        {RESPONSES, "top_logprobs", 0, 20},
        {RESPONSES, "priority", -100, 0},
        {RESPONSES, "latency_budget_ms", 1, 86400000},
        {MESSAGES, "max_tokens", 1, 16777216},
        {MESSAGES, "temperature", 0, 2},
        {MESSAGES, "top_p", 0, 1},
        {MESSAGES, "top_k", 0, 2147483647},
        {"/completion", "n_predict", -2, 16777216},
        {"/completion", "max_tokens", -1, 16777216},
        {"/completion", "temperature", -100, 100},
        {"/completion", "top_k", -1, 1000000000},
        {"/completion", "top_p", 0, 1000000000},
        {"/completion", "min_p", -1, 1},
        {"/completion", "repeat_penalty", 0, 10},
        {"/completion", "repeat_last_n", -1, 1048576},
        {"/completion", "presence_penalty", -10, 10},
        {"/completion", "frequency_penalty", -10, 10},
        {"/completion", "n_probs", 0, 256},
        {"/completion", "n_keep", -1, 1 << 24},
        {"/completion", "priority", -100, 0},
        {"/completion", "latency_budget_ms", 1, 86400000},
        {"/generate", "parameters.max_new_tokens", 1, 16777216},
        {"/generate", "parameters.temperature", 0, 100},
        {"/generate", "parameters.top_k", 0, 1000000000},
        {"/generate", "parameters.top_p", 0, 1},
        {"/generate", "parameters.repetition_penalty", 0, 10},
        {"/generate", "parameters.frequency_penalty", -2, 2},
        {"/generate", "parameters.top_n_tokens", 0, 5},
        {"/api/chat", "top_logprobs", 0, 20},
        {"/v1/embeddings", "dimensions", 1, 65536},
        {"/v1/embeddings", "priority", -100, 0},
        {"/v1/embeddings", "latency_budget_ms", 1, 86400000},
        {"/v1/classify", "top", 1, 10000},
        {"/v1/rerank", "top_n", 1, 2048},
        {"/v1/summarize", "max_sentences", 1, 1000},
        {"/v1/summarize", "max_tokens", 1, 65536},
        {"/v1/summarize", "beams", 1, 16},
        {"/v1/process", "priority", -100, 0},
        {"/v1/process", "latency_budget_ms", 1, 86400000},
    };
    static struct gw gw;
    (void)state;
    codec_read_open_site(&gw);
    for (size_t i = 0; i < N(ranges); i++) {
        const struct range *x = &ranges[i];
        const double step = x->max - x->min < 3 ? 0.25 : 1;
        const bool whole = step == 1;
        if (!takes(&gw, x, x->min) || !takes(&gw, x, x->max) || takes(&gw, x, x->min - step) ||
            takes(&gw, x, x->max + step) || (whole && !takes(&gw, x, x->min + 1)))
            fail_msg("%s: %s is not from %.15g to %.15g", x->path, x->field, x->min, x->max);
    }
    codec_read_close_site(&gw);
}

/* ---- messages ---- */

/* What a refusal says: the field, what is wrong with it, and what would be right. */
static void test_messages(void **state)
{
    static const struct {
        const char *body, *want;
    } rows[] = {
        {"{'temperature':'a'}", "'temperature' must be a number"},
        {"{'max_tokens':1.5}", "'max_tokens' must be a whole number"},
        {"{'stream':1}", "'stream' must be true or false"},
        {"{'model':1}", "'model' must be a string"},
        {"{'temperature':2.5}", "'temperature' is 2.5, it must be from 0 to 2"},
        {"{'n':17}", "'n' is 17, it must be from 1 to 16"},
        {"{'odd':1}", "unknown field 'odd'"},
        {"{'n':1,'n':2}", "'n' is given twice"},
        {"{'mirostat':1}", "'mirostat' is not supported yet; leave it out, or send "
                           "'x-shoal-lenient: 1' to ignore it"},
        {"{'best_of':2,'n':3,'prompt':'a'}", "'best_of' must be at least 'n'"},
        {"{'prompt':'a','grammar':'x','guided_regex':'y'}",
         "'guided_regex' is given beside another constraint: give only one"},
    };
    static struct gw gw;
    (void)state;
    codec_read_open_site(&gw);
    for (size_t i = 0; i < N(rows); i++) {
        struct gw_client x;
        char body[512];
        snprintf(body, sizeof(body), "%s", rows[i].body);
        for (char *p = body; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        gw_client_init(&x, &gw, "POST", COMPLETIONS, "host: localhost\n", body, strlen(body));
        gw_client_send(&x, &gw);
        assert_int_equal(x.status, 400);
        cJSON *json = cJSON_Parse(buf_str(&x.body));
        const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error");
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "message")),
                            rows[i].want);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "type")),
                            "invalid_request_error");
        cJSON_Delete(json);
        gw_client_fini(&x);
    }
    codec_read_close_site(&gw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
