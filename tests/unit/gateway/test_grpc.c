/* test_grpc.c - gRPC messages: frames, gzip, codec, status details, reflection; and calls
 * through the gateway under failing allocations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <google/rpc/error_details.pb-c.h>
#include <google/rpc/status.pb-c.h>
#include <grpc/reflection/v1/reflection.pb-c.h>
#include <openssl/evp.h>
#include <shoal/v1/shoal.pb-c.h>

#include "base/log.h"
#include "base/mem.h"
#include "gateway/grpc/grpc_answer.h"
#include "net/grpc_frame.h"
#include "gateway/grpc/grpc_read.h"
#include "gateway/grpc/grpc_status.h"
#include "gateway/grpc/reflection.h"
#include "support/gw_site.h"

/* Runs op with every allocation failing in turn: an error each time, and no leak. */
static void fail_each(int (*op)(struct buf *out))
{
    for (uint64_t n = 1; n < 500; n++) {
        struct buf out;
        uint64_t before = mem_calls();
        buf_init(&out, 1 << 24);
        mem_fail_at(n);
        int rc = op(&out);
        mem_fail_at(0);
        bool failed = mem_calls() - before >= n;
        buf_fini(&out);
        if (!failed) {
            assert_int_equal(rc, 0);
            return;
        }
        if (rc >= 0)
            fail_msg("allocation %u failed and nobody said so", (unsigned)n);
    }
    fail_msg("more allocations than expected");
}

/* ---- frames ---- */

static void test_frames_are_found_when_they_are_whole(void **state)
{
    static const uint8_t two[] = {0, 0, 0, 0, 3, 'a', 'b', 'c', 1, 0, 0, 0, 0};
    struct grpc_frame f;
    (void)state;
    for (size_t n = 0; n < 8; n++)
        assert_int_equal(grpc_frame_next(&f, two, n, 100), 0);
    assert_int_equal(grpc_frame_next(&f, two, sizeof(two), 100), 1);
    assert_int_equal(f.bytes, 8);
    assert_memory_equal(f.p, "abc", f.n);
    assert_false(f.packed);
    assert_int_equal(grpc_frame_next(&f, two + 8, 5, 100), 1);
    assert_true(f.packed);
    assert_int_equal(f.n, 0);
    assert_int_equal(grpc_frame_next(&f, two, 5, 2), SHOAL_ELIMIT); /* before it has arrived */
    assert_int_equal(grpc_frame_next(&f, (const uint8_t *)"\2", 1, 100), SHOAL_EFORMAT);
    assert_true(grpc_accepts_gzip("identity,deflate, GZIP"));
    assert_false(grpc_accepts_gzip("identity,gzipper,x-gzip"));
    assert_false(grpc_accepts_gzip(NULL));
}

static void test_gzip_is_bounded_and_only_where_it_helps(void **state)
{
    static uint8_t zeros[1 << 20], noise[60000];
    struct buf packed, plain;
    (void)state;
    buf_init(&packed, sizeof(zeros));
    buf_init(&plain, 2 * sizeof(zeros));
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof(noise); i++) {
        x = x * 1664525 + 1013904223;
        noise[i] = (uint8_t)(x >> 24);
    }
    assert_false(grpc_zip(&packed, noise, sizeof(noise)));
    assert_false(grpc_zip(&packed, noise, 2000));
    assert_false(grpc_zip(&packed, zeros, 1000)); /* small enough already */
    assert_int_equal(packed.len, 0);
    assert_true(grpc_zip(&packed, zeros, sizeof(zeros)));
    assert_true(packed.len < 10000);
    const struct grpc_frame zipped = {(const uint8_t *)packed.data, packed.len, 0, true};
    struct grpc_frame f = zipped;
    assert_int_equal(grpc_frame_unpack(&f, &plain, sizeof(zeros)), 0);
    assert_int_equal(f.n, sizeof(zeros));
    assert_memory_equal(f.p, zeros, f.n);
    f = zipped;
    buf_clear(&plain);
    assert_int_equal(grpc_frame_unpack(&f, &plain, 5000), SHOAL_ELIMIT);
    assert_true(plain.len < 25000); /* it stopped early */
    f = zipped;
    f.n--;
    buf_clear(&plain);
    assert_int_equal(grpc_frame_unpack(&f, &plain, sizeof(zeros)), SHOAL_EFORMAT);
    f = zipped;
    buf_putc(&packed, 'x');
    f.n++;
    buf_clear(&plain);
    assert_int_equal(grpc_frame_unpack(&f, &plain, sizeof(zeros)), SHOAL_EFORMAT);
    buf_fini(&packed);
    buf_fini(&plain);
}

static int zip_and_unpack(struct buf *out)
{
    static const char text[4000] = "x";
    struct buf packed;
    buf_init(&packed, sizeof(text));
    int rc = grpc_zip(&packed, text, sizeof(text)) ? 0 : SHOAL_ENOMEM;
    struct grpc_frame f = {(const uint8_t *)packed.data, packed.len, 0, true};
    if (rc == 0)
        rc = grpc_frame_unpack(&f, out, sizeof(text));
    buf_fini(&packed);
    return rc;
}

/* ---- codec ---- */

static const uint8_t generate_bytes[] = "\x0a\1m\x1a\2hi\x20\5\x29\0\0\0\0\0\0\0\0\x40\7J\1x\x50"
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x58\1"
                                        "\x62\7\x08\5\x15\0\0\x80\x3f\x62\2\x08\x07";

static int read_one(const char *method, const void *p, size_t n, struct request *r,
                    struct fields_error *e)
{
    uint32_t top = 0;
    return grpc_read(r, &top, grpc_method(method), p, n, 5000, e);
}

/* Parses the message into a request; out is not used. */
static int read_generate(struct buf *out)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = request_create();
    (void)out;
    int rc =
        r ? read_one("Generate", generate_bytes, sizeof(generate_bytes) - 1, r, &e) : SHOAL_ENOMEM;
    request_destroy(r);
    return rc;
}

static void test_messages_become_requests(void **state)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = request_create();
    (void)state;
    assert_int_equal(read_one("Generate", generate_bytes, sizeof(generate_bytes) - 1, r, &e), 0);
    const struct request_generate *g = &r->generate;
    assert_int_equal(r->kind, REQUEST_GENERATE);
    assert_string_equal(r->model, "m");
    assert_int_equal(r->priority, -1);
    assert_string_equal(g->prompts[0].text, "hi");
    assert_int_equal(g->max_tokens, 5);
    assert_true(g->has_seed && g->ignore_end);
    assert_int_equal(g->sampling.seed, 7);
    assert_true(g->sampling.temperature == 0);
    assert_int_equal(g->n_stop, 1);
    assert_string_equal(g->stop[0], "x");
    assert_int_equal(g->sampling.n_bias, 2);
    assert_int_equal(g->sampling.bias[0].token, 5);
    assert_true(g->sampling.bias[0].bias == 1.0f);
    request_reset(r);
    assert_int_equal(read_one("Score", "\x12\x0a\x0a\x08\0\0\0\0\0\0\xf8\x7f\x18\1", 14, r, &e), 0);
    assert_int_equal(r->kind, REQUEST_INFER);
    assert_int_equal(r->infer.n_inputs, 1);
    assert_true(isnan(r->infer.inputs[0].values[0]));
    assert_true(r->infer.raw);
    request_destroy(r);
}

static void test_messages_say_what_is_wrong(void **state)
{
    static const struct {
        const char *method, *message;
        size_t n;
        int rc;
        const char *param, *msg;
    } cases[] = {
        {"Generate", "\xff", 1, SHOAL_EFORMAT, "", ""},
        {"Generate", "\x29\0\0\0\0\0\0\x14\x40", 9, SHOAL_EINVAL, "temperature",
         "'temperature' is 5, it must be from 0 to 2"},
        {"Generate", "\x4a\0", 2, SHOAL_EINVAL, "stop", "'stop' has an empty text"},
        {"Generate", "\x12\x03\x0a\1x", 5, SHOAL_EINVAL, "messages[0].role",
         "'messages[0].role' must be system, developer, user, assistant or tool"},
        {"Generate", "\x12\x06\x0a\4user\x1a\1p", 11, SHOAL_EINVAL, "prompt",
         "unknown field 'prompt'"},
        {"Generate", "\x62\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 13, SHOAL_EINVAL,
         "logit_bias",
         "'logit_bias' has \"-1\": expected a token id and a number from -100 to 100"},
        {"Classify", "", 0, SHOAL_EINVAL, "input", "'input' is missing"},
        {"Classify", "\x12\1x\x20\xd0\x86\3", 7, SHOAL_EINVAL, "top",
         "'top' is 50000, it must be from 1 to 10000"},
        {"Generate", "\x1a\3a\0b", 5, SHOAL_EINVAL, "prompt",
         "'prompt' contains NUL (\\0), which is not allowed in a request"},
        {"Generate", "\x12\x06\x0a\4user\x12\x0b\x0a\4user\x12\3a\0b", 21, SHOAL_EINVAL,
         "messages[1].content",
         "'messages[1].content' contains NUL (\\0), which is not allowed in a request"},
        {"Embed", "\x12\1x\x12\1\0", 6, SHOAL_EINVAL, "input[1]",
         "'input[1]' contains NUL (\\0), which is not allowed in a request"},
        {"Embed", "\x12\0", 2, SHOAL_EINVAL, "input", "'input' has an empty text"},
        {"Score", "\x12\0", 2, SHOAL_EINVAL, "input",
         "'input' must be a row of numbers, or a list of rows"},
    };
    struct request *r = request_create();
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fields_error e = {{0}, {0}, NULL};
        request_reset(r);
        assert_int_equal(read_one(cases[i].method, cases[i].message, cases[i].n, r, &e),
                         cases[i].rc);
        assert_string_equal(e.param, cases[i].param);
        assert_string_equal(e.msg, cases[i].msg);
    }
    request_destroy(r);
}

/* As read_one, of a message that is written first. */
static int read_message(const char *method, const ProtobufCMessage *m, struct request *r,
                        struct fields_error *e)
{
    static uint8_t bytes[4096];
    const size_t n = protobuf_c_message_get_packed_size(m);
    assert_true(n <= sizeof(bytes));
    protobuf_c_message_pack(m, bytes);
    request_reset(r);
    *e = (struct fields_error){{0}, {0}, NULL};
    return read_one(method, bytes, n, r, e);
}

static void test_constraints_of_messages(void **state)
{
    char *texts[] = {"yes", "no \"way\""};
    Shoal__V1__Choices none = SHOAL__V1__CHOICES__INIT, two = none;
    Shoal__V1__GenerateRequest m = SHOAL__V1__GENERATE_REQUEST__INIT;
    struct request *r = request_create();
    const struct request_constraint *c = &r->generate.constraint;
    struct fields_error e;
    (void)state;
    m.prompt = "x";
    assert_int_equal(read_message("Generate", &m.base, r, &e), 0);
    assert_int_equal(c->kind, SHOAL_CONSTRAINT_NONE);
    m.constraint_case = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_JSON_OBJECT;
    for (int on = 0; on < 2; on++) {
        m.json_object = on;
        assert_int_equal(read_message("Generate", &m.base, r, &e), 0);
        assert_int_equal(c->kind, on ? SHOAL_CONSTRAINT_JSON : SHOAL_CONSTRAINT_NONE);
    }
    const struct {
        Shoal__V1__GenerateRequest__ConstraintCase of;
        enum shoal_constraint want;
        char *text, **at;
    } rows[] = {
        {SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_JSON_SCHEMA, SHOAL_CONSTRAINT_SCHEMA, "{}",
         &m.json_schema},
        {SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_GRAMMAR, SHOAL_CONSTRAINT_GBNF, "root ::= \"a\"",
         &m.grammar},
        {SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_REGEX, SHOAL_CONSTRAINT_REGEX, "a+", &m.regex},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        m.constraint_case = rows[i].of;
        *rows[i].at = rows[i].text;
        assert_int_equal(read_message("Generate", &m.base, r, &e), 0);
        assert_int_equal(c->kind, rows[i].want);
        assert_string_equal(c->text, rows[i].text);
        assert_int_equal(c->text_bytes, strlen(rows[i].text));
    }
    m.constraint_case = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_CHOICE;
    m.choice = &none;
    assert_int_equal(read_message("Generate", &m.base, r, &e), SHOAL_EINVAL);
    assert_string_equal(e.param, "choice");
    two.n_texts = 2;
    two.texts = texts;
    m.choice = &two;
    assert_int_equal(read_message("Generate", &m.base, r, &e), 0);
    assert_int_equal(c->kind, SHOAL_CONSTRAINT_CHOICE);
    assert_string_equal(c->text, "[\"yes\",\"no \\\"way\\\"\"]");
    assert_int_equal(c->text_bytes, strlen(c->text));
    request_destroy(r);
}

static void test_tools_of_messages(void **state)
{
    Shoal__V1__Tool f = SHOAL__V1__TOOL__INIT, g = f;
    Shoal__V1__Tool *tools[] = {&f, &g};
    Shoal__V1__ToolCall call = SHOAL__V1__TOOL_CALL__INIT, *calls[] = {&call};
    Shoal__V1__Message said = SHOAL__V1__MESSAGE__INIT, result = said;
    Shoal__V1__Message *messages[] = {&said, &result};
    Shoal__V1__GenerateRequest m = SHOAL__V1__GENERATE_REQUEST__INIT;
    struct request *r = request_create();
    const struct chat *c = &r->generate.chat;
    struct fields_error e;
    (void)state;
    f.name = "f";
    f.description = "does";
    f.parameters = "{\"type\":\"object\"}";
    f.strict = true;
    g.name = "g";
    call.id = "1";
    call.name = "f";
    said.role = "assistant";
    said.n_tool_calls = 1;
    said.tool_calls = calls;
    result.role = "tool";
    result.content = "done";
    result.tool_call_id = "1";
    m.n_messages = m.n_tools = 2;
    m.messages = messages;
    m.tools = tools;
    m.single_tool_call = true;
    assert_int_equal(read_message("Generate", &m.base, r, &e), 0);
    assert_int_equal(c->n_tools, 2);
    assert_string_equal(c->tools[0].name, "f");
    assert_string_equal(c->tools[0].description, "does");
    assert_true(c->tools[0].strict && !c->tools[1].strict && c->one_call);
    assert_int_equal(c->messages[0].n_calls, 1);
    assert_string_equal(c->messages[0].calls[0].id, "1");
    assert_string_equal(c->messages[0].calls[0].name, "f");
    assert_string_equal(c->messages[0].calls[0].arguments, "{}"); /* there are none */
    assert_string_equal(c->messages[1].call_id, "1");
    assert_null(c->messages[0].call_id);
    /* contents, descriptions, parameters and arguments count */
    assert_int_equal(r->input_bytes, strlen("done") + strlen("does") + strlen(f.parameters) + 2);
    call.arguments = "{\"a\": 1}";
    assert_int_equal(read_message("Generate", &m.base, r, &e), 0);
    assert_string_equal(c->messages[0].calls[0].arguments, call.arguments);
    assert_int_equal(c->messages[0].calls[0].arguments_bytes, strlen(call.arguments));
    const struct {
        char *choice;
        int rc;
        enum chat_tool_choice want;
        uint32_t tool;
    } rows[] = {
        {"auto", 0, CHAT_TOOLS_AUTO, 0},      {"none", 0, CHAT_TOOLS_NONE, 0},
        {"required", 0, CHAT_TOOLS_REQUIRED, 0},  {"function:g", 0, CHAT_TOOLS_ONE, 1},
        {"function:f", 0, CHAT_TOOLS_ONE, 0}, {"function:h", SHOAL_EINVAL, 0, 0},
        {"function", SHOAL_EINVAL, 0, 0},     {"maybe", SHOAL_EINVAL, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        m.tool_choice = rows[i].choice;
        assert_int_equal(read_message("Generate", &m.base, r, &e), rows[i].rc);
        if (rows[i].rc < 0) {
            assert_string_equal(e.param, "tool_choice");
            continue;
        }
        assert_int_equal(c->tool_choice, rows[i].want);
        assert_int_equal(c->tool, rows[i].tool);
    }
    m.tool_choice = "";
    call.arguments = "[1]";
    assert_int_equal(read_message("Generate", &m.base, r, &e), SHOAL_EINVAL);
    assert_string_equal(e.param, "messages");
    call.arguments = "";
    f.parameters = "{";
    assert_int_equal(read_message("Generate", &m.base, r, &e), SHOAL_EINVAL);
    assert_string_equal(e.param, "tools");
    f.parameters = "";
    g.name = "f";
    assert_int_equal(read_message("Generate", &m.base, r, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "two tools"));
    request_destroy(r);
}

/* Rows of a stream keep their order: they are one input. */
static void test_rows_of_messages(void **state)
{
    double first[] = {1, 2}, second[] = {3, 4}, inf[] = {INFINITY, -INFINITY};
    Shoal__V1__Row a = SHOAL__V1__ROW__INIT, b = a, *list[] = {&a, &b};
    Shoal__V1__ScoreRequest m = SHOAL__V1__SCORE_REQUEST__INIT;
    struct request *r = request_create();
    struct fields_error e;
    (void)state;
    a.n_values = b.n_values = 2;
    a.values = first;
    b.values = second;
    m.n_input = 2;
    m.input = list;
    assert_int_equal(read_message("Score", &m.base, r, &e), 0);
    assert_int_equal(r->infer.n_inputs, 2);
    assert_int_equal(r->infer.n_columns, 0);
    assert_null(r->infer.stream);
    assert_true(r->infer.inputs[1].values[1] == 4);
    assert_int_equal(r->input_bytes, 4 * sizeof(double));
    m.stream = "s";
    assert_int_equal(read_message("Score", &m.base, r, &e), 0);
    assert_int_equal(r->infer.n_inputs, 1);
    assert_int_equal(r->infer.n_columns, 2);
    assert_int_equal(r->infer.inputs[0].n_values, 4);
    assert_string_equal(r->infer.stream, "s");
    for (int i = 0; i < 4; i++)
        assert_true(r->infer.inputs[0].values[i] == i + 1);
    b.n_values = 1;
    assert_int_equal(read_message("Score", &m.base, r, &e), SHOAL_EINVAL);
    assert_string_equal(e.msg, "the rows of 'input' differ in length");
    m.stream = "";
    assert_int_equal(read_message("Score", &m.base, r, &e), 0); /* each is judged for itself */
    a.values = inf;
    assert_int_equal(read_message("Score", &m.base, r, &e), 0);
    assert_true(isnan(r->infer.inputs[0].values[0]) && isnan(r->infer.inputs[0].values[1]));
    request_destroy(r);
}

/* A message of many small fields would take far more memory than its bytes. */
static void test_fields_of_a_message_are_bounded(void **state)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = request_create();
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 4999; i++)
        buf_put(&b, i % 2 ? "\x12\1x" : "\x7a\1x", 3); /* inputs, and unknown fields */
    assert_int_equal(read_one("Embed", b.data, b.len, r, &e), SHOAL_EINVAL); /* too many inputs */
    assert_string_equal(e.param, "input");
    buf_put(&b, "\x7a\1x\x7a\1x", 6);
    request_reset(r);
    assert_int_equal(read_one("Embed", b.data, b.len, r, &e), SHOAL_ELIMIT);
    buf_fini(&b);
    request_destroy(r);
}

/* A token's message is encoded by hand: the library must decode it as intended. */
static void test_a_token_is_a_message(void **state)
{
    static char text[70000], got[70001];
    static const struct {
        const char *why;
        size_t n;
    } cases[] = {{"empty", 0}, {"one byte of length", 127}, {"two", 128}, {"three", 70000}};
    struct buf out;
    (void)state;
    memset(text, 'x', sizeof(text));
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct grpc_frame f;
        buf_clear(&out);
        grpc_answer_put_text(&out, text, cases[i].n);
        assert_int_equal(grpc_frame_next(&f, (const uint8_t *)out.data, out.len, out.len), 1);
        assert_int_equal(f.bytes, out.len);
        Shoal__V1__GenerateEvent *m = shoal__v1__generate_event__unpack(NULL, f.n, f.p);
        memcpy(got, text, cases[i].n);
        got[cases[i].n] = '\0';
        assert_non_null(m);
        assert_string_equal(m->text, got);
        shoal__v1__generate_event__free_unpacked(m, NULL);
    }
    buf_clear(&out);
    grpc_answer_put_text(&out,
                         "a\xff"
                         "b",
                         3); /* invalid UTF-8: repaired */
    assert_int_equal(out.len, GRPC_HEAD_BYTES + 7);
    assert_memory_equal(out.data + GRPC_HEAD_BYTES,
                        "\x0a\x05"
                        "a\xef\xbf\xbd"
                        "b",
                        7);
    buf_fini(&out);
}

/* ---- status ---- */

static int make_details(struct buf *out)
{
    const struct grpc_error e = {.status = GRPC_INVALID_ARGUMENT,
                                 .message = "'stop' is wrong",
                                 .reason = "invalid_value",
                                 .field = "stop",
                                 .model = "m",
                                 .retry_s = 3};
    return grpc_details(out, &e);
}

static void test_statuses_of_http(void **state)
{
    static const struct {
        int http;
        enum grpc_status want;
        const char *name;
    } rows[] = {
        {200, GRPC_OK, "OK"},
        {400, GRPC_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
        {401, GRPC_UNAUTHENTICATED, "UNAUTHENTICATED"},
        {403, GRPC_PERMISSION_DENIED, "PERMISSION_DENIED"},
        {404, GRPC_NOT_FOUND, "NOT_FOUND"},
        {409, GRPC_ABORTED, "ABORTED"},
        {413, GRPC_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
        {429, GRPC_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
        {499, GRPC_CANCELLED, "CANCELLED"},
        {500, GRPC_INTERNAL, "INTERNAL"},
        {503, GRPC_UNAVAILABLE, "UNAVAILABLE"},
        {504, GRPC_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"},
        {201, GRPC_INTERNAL, "INTERNAL"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(grpc_status_of(rows[i].http), rows[i].want);
        assert_string_equal(grpc_status_name(rows[i].want), rows[i].name);
    }
    assert_string_equal(grpc_status_name((enum grpc_status)17), "UNKNOWN");
}

static void test_details_name_the_field(void **state)
{
    struct buf out;
    uint8_t bytes[1024];
    (void)state;
    buf_init(&out, 1 << 16);
    assert_int_equal(make_details(&out), 0);
    assert_null(strchr(buf_str(&out), '='));
    size_t n = out.len * 3 / 4;
    while (out.len % 4)
        buf_putc(&out, '=');
    assert_true(EVP_DecodeBlock(bytes, (const unsigned char *)out.data, (int)out.len) >= (int)n);
    Google__Rpc__Status *s = google__rpc__status__unpack(NULL, n, bytes);
    assert_non_null(s);
    assert_int_equal(s->code, 3);
    assert_string_equal(s->message, "'stop' is wrong");
    assert_int_equal(s->n_details, 3);
    assert_string_equal(s->details[0]->type_url, "type.googleapis.com/google.rpc.ErrorInfo");
    Google__Rpc__ErrorInfo *info =
        google__rpc__error_info__unpack(NULL, s->details[0]->value.len, s->details[0]->value.data);
    assert_string_equal(info->reason, "INVALID_VALUE");
    assert_string_equal(info->domain, "shoal");
    assert_string_equal(info->metadata[0]->value, "m");
    Google__Rpc__BadRequest *bad =
        google__rpc__bad_request__unpack(NULL, s->details[2]->value.len, s->details[2]->value.data);
    assert_string_equal(bad->field_violations[0]->field, "stop");
    google__rpc__bad_request__free_unpacked(bad, NULL);
    google__rpc__error_info__free_unpacked(info, NULL);
    google__rpc__status__free_unpacked(s, NULL);
    buf_fini(&out);
    char text[32];
    grpc_message_text(text, sizeof(text), "100 % \n\xc3\xa4");
    assert_string_equal(text, "100 %25 %0A%C3%A4");
    grpc_message_text(text, 8, "\xc3\xa4\xc3\xa4\xc3\xa4"); /* truncated between bytes */
    assert_string_equal(text, "%C3%A4");
}

/* ---- reflection ---- */

static int ask_symbol(struct buf *out)
{
    static const char question[] = "\"\x11google.rpc.Status";
    return reflection_answer(out, (const uint8_t *)question, sizeof(question) - 1);
}

static void test_reflection_gives_a_file_and_its_imports(void **state)
{
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    assert_int_equal(ask_symbol(&out), 0);
    Grpc__Reflection__V1__ServerReflectionResponse *m =
        grpc__reflection__v1__server_reflection_response__unpack(NULL, out.len,
                                                                 (const uint8_t *)buf_str(&out));
    assert_non_null(m);
    assert_string_equal(m->original_request->file_containing_symbol, "google.rpc.Status");
    assert_int_equal(m->file_descriptor_response->n_file_descriptor_proto, 2);
    ProtobufCBinaryData *files = m->file_descriptor_response->file_descriptor_proto;
    assert_memory_equal(files[0].data + 2, "google/rpc/status.proto", 23);
    assert_memory_equal(files[1].data + 2, "google/protobuf/any.proto", 25);
    grpc__reflection__v1__server_reflection_response__free_unpacked(m, NULL);
    buf_fini(&out);
    assert_true(reflection_has_service("shoal.v1.Shoal"));
    assert_true(reflection_has_service("grpc.health.v1.Health"));
    assert_false(reflection_has_service("shoal.v1"));
}

/* ---- memory ---- */

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    fail_each(zip_and_unpack);
    fail_each(read_generate);
    fail_each(make_details);
    fail_each(ask_symbol);
}

/* An HTTP/2 frame. */
static void put_frame(struct buf *b, int type, int flags, const void *p, size_t n)
{
    const char head[9] = {0, (char)(n >> 8), (char)n, (char)type, (char)flags, 0, 0, 0, 1};
    buf_put(b, head, sizeof(head));
    buf_put(b, p, n);
}

/* The opening of a connection, and the head of a call. */
static void put_opening(struct buf *b, const char *path)
{
    static const char settings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    struct buf block;
    buf_init(&block, 1024);
    buf_puts(&block, "\x83\x86\x41\1x\x04"); /* POST, http, an authority, the path */
    buf_putc(&block, (char)strlen(path));
    buf_puts(&block, path);
    buf_puts(&block, "\x0f\x10\x10"
                     "application/grpc");
    buf_puts(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    buf_put(b, settings, sizeof(settings));
    put_frame(b, 1, 4, block.data, block.len);
    buf_fini(&block);
}

/* A call in HTTP/2: the message comes in two pieces, and the end after it. */
static void put_call(struct buf *b, const char *path, const void *message, size_t n)
{
    struct buf body;
    char head[GRPC_HEAD_BYTES];
    buf_init(&body, 1024);
    grpc_frame_head(head, n, false);
    buf_put(&body, head, sizeof(head));
    buf_put(&body, message, n);
    put_opening(b, path);
    put_frame(b, 0, 0, body.data, 3);
    put_frame(b, 0, 0, body.data + 3, body.len - 3);
    put_frame(b, 0, 1, "", 0);
    assert_int_equal(b->rc, 0);
    buf_fini(&body);
}

static const struct {
    const char *path, *message;
    size_t n;
    const char *want; /* in the answer; NULL: any */
} calls[] = {
    {"/shoal.v1.Shoal/Generate", (const char *)generate_bytes, sizeof(generate_bytes) - 1, NULL},
    {"/shoal.v1.Shoal/GenerateStream", "\x0a\1m\x1a\2hi\x20\3", 9, NULL},
    {"/shoal.v1.Shoal/Generate", "\x0a\1n\x1a\2hi", 7, NULL}, /* no such model */
    {"/shoal.v1.Shoal/ScoreStream", "\x0a\1n", 3, NULL},      /* as well */
    {"/grpc.health.v1.Health/Check", "", 0, NULL},
    {"/grpc.health.v1.Health/List", "", 0, "shoal.v1.Shoal"},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "\x3a\0", 2, "shoal.v1.Shoal"},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x1a\1x", 3,
     "no such file"},
};

/* The response until the server is idle. */
static size_t ask(struct gw *gw, const struct buf *b, char *got, size_t cap)
{
    struct gw_loop *gl = &gw->loops[0];
    int fd[2], idle = 0;
    size_t have = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) < 0)
        return 0;
    if (http_server_adopt(gl->http, fd[1], NULL) == 0 &&
        send(fd[0], b->data, b->len, MSG_NOSIGNAL) == (ssize_t)b->len)
        for (int i = 0; i < 60000 && idle < 4; i++) {
            loop_turn(gl->loop, i < 4 ? 0 : 1);
            ssize_t k = recv(fd[0], got + have, cap - have, 0);
            have += k > 0 ? (size_t)k : 0;
            idle = gl->n_calls == 0 && gl->flow.n_jobs == 0 && k <= 0 ? idle + 1 : 0;
        }
    close(fd[0]);
    loop_turn(gl->loop, 0);
    return have;
}

static bool has(const char *got, size_t n, const char *want)
{
    return !want || memmem(got, n, want, strlen(want)) != NULL;
}

static void open_site(struct gw *gw)
{
    static const struct registry_spec spec = {
        .name = "m", .path = SHOAL_TEST_DATA "/refs/qwen3.gguf", .n_ctx = 256, .pinned = true};
    struct err e = {0};
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (gw_site_open(gw, 0) < 0 || registry_add(gw->registry, &spec, &e) < 0)
        fail_msg("%s", e.msg);
    for (int i = 0; i < 60000 && !registry_ready(gw->registry); i++)
        loop_turn(gw->loops[0].loop, 1);
}

static void test_calls_are_answered_while_memory_fails(void **state)
{
    static struct gw gw;
    static char got[1 << 20];
    (void)state;
    open_site(&gw);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct buf b;
        buf_init(&b, 4096);
        put_call(&b, calls[i].path, calls[i].message, calls[i].n);
        /* the trailers end the stream: type 1, flags 5 */
        static const char end[] = "\1\5";
        for (uint64_t k = 0; k < 600; k++) {
            uint64_t before = mem_calls();
            mem_fail_at(k);
            size_t n = ask(&gw, &b, got, sizeof(got));
            gw_site_settle(&gw);
            mem_fail_at(0);
            assert_int_equal(gw.loops[0].flow.n_jobs, 0);
            assert_int_equal(gw.loops[0].n_calls, 0);
            bool failed = k > 0 && mem_calls() - before >= k;
            if (!failed && (!has(got, n, end) || !has(got, n, calls[i].want)))
                fail_msg("%s: %u bytes", calls[i].path, (unsigned)n);
            if (k > 0 && !failed)
                break;
            assert_true(k < 599);
        }
        buf_fini(&b);
    }
    gw_site_close(&gw);
}

/* A message of Score as it is framed; model NULL: the one of the messages before. */
static void put_score(struct buf *b, const char *model, bool raw, double x, double y)
{
    Shoal__V1__ScoreRequest m = SHOAL__V1__SCORE_REQUEST__INIT;
    Shoal__V1__Row row = SHOAL__V1__ROW__INIT, *rows[] = {&row};
    double values[] = {x, y};
    uint8_t bytes[128];
    char head[GRPC_HEAD_BYTES];
    row.values = values;
    row.n_values = 2;
    m.input = rows;
    m.n_input = 1;
    m.raw = raw;
    if (model)
        m.model = (char *)(uintptr_t)model;
    const size_t n = shoal__v1__score_request__pack(&m, bytes);
    grpc_frame_head(head, n, false);
    buf_put(b, head, sizeof(head));
    buf_put(b, bytes, n);
}

/* What the frames of an answer carry: the data, and the head or the trailers (type 1) behind. */
static void take_data(struct buf *out, const char *got, size_t n, int type)
{
    for (size_t at = 0; at + 9 <= n;) {
        const uint8_t *f = (const uint8_t *)got + at;
        const size_t len = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
        assert_true(at + 9 + len <= n);
        if (f[3] == type)
            buf_put(out, got + at + 9, len);
        at += 9 + len;
    }
}

/* A stream of readings answers each message as a call of Score does that has the model and the
 * options of the first one, or its own, until one cannot be answered. */
static void test_a_stream_of_readings(void **state)
{
    static const struct registry_spec spec = {
        .name = "s", .path = SHOAL_TEST_DATA "/../../models/anomaly", .pinned = true};
    static const double rows[][2] = {{1, 2}, {9, -4}, {0, 0}};
    static struct gw gw;
    static char got[1 << 20];
    struct buf b, want, data, ends;
    struct err e = {0};
    size_t plain = 0;
    (void)state;
    open_site(&gw);
    assert_int_equal(registry_add(gw.registry, &spec, &e), 0);
    for (int i = 0; i < 60000 && !registry_ready(gw.registry); i++)
        loop_turn(gw.loops[0].loop, 1);
    for (int raw = 0; raw < 2; raw++) {
        buf_init(&want, 1 << 16);
        for (size_t i = 0; i < 3; i++) { /* one by one */
            struct buf one;
            buf_init(&one, 1024);
            buf_init(&b, 4096);
            put_score(&one, "s", raw || i == 1, rows[i][0], rows[i][1]);
            put_opening(&b, "/shoal.v1.Shoal/Score");
            put_frame(&b, 0, 1, one.data, one.len);
            take_data(&want, got, ask(&gw, &b, got, sizeof(got)), 0);
            buf_fini(&one);
            buf_fini(&b);
        }
        assert_true(want.len > 3 * GRPC_HEAD_BYTES);
        for (int cut = 0; cut < 3; cut++) { /* all in one; a frame each; bad at the end */
            struct buf all;
            buf_init(&all, 4096);
            buf_init(&b, 8192);
            buf_init(&data, 1 << 16);
            buf_init(&ends, 1 << 16);
            put_opening(&b, "/shoal.v1.Shoal/ScoreStream");
            for (size_t i = 0; i < 3; i++) {
                put_score(&all, i ? NULL : "s", i == 1 || (i == 0 && raw), rows[i][0], rows[i][1]);
                if (cut == 1) {
                    put_frame(&b, 0, 0, all.data, all.len);
                    buf_clear(&all);
                }
            }
            if (cut == 2)
                put_score(&all, "nosuch", false, 1, 1);
            put_frame(&b, 0, 1, all.data, all.len);
            const size_t n = ask(&gw, &b, got, sizeof(got));
            take_data(&data, got, n, 0);
            take_data(&ends, got, n, 1);
            assert_int_equal(data.len, want.len);
            assert_memory_equal(data.data, want.data, want.len);
            plain = cut == 0 ? ends.len : plain;
            assert_int_equal(ends.len > plain + 20, cut == 2); /* says why, in Huffman's code */
            buf_fini(&all);
            buf_fini(&b);
            buf_fini(&data);
            buf_fini(&ends);
        }
        buf_fini(&want);
    }
    gw_site_close(&gw);
}

/* A connection that collects responses in got. */
struct peer {
    int fd;
    size_t have;
    char got[8192];
};

/* Runs the loop until got has these bytes after `from`, or patience runs out. */
static bool hears(struct gw *gw, struct peer *p, size_t from, const char *want, size_t n)
{
    for (int i = 0; i < 60000; i++) {
        if (p->have >= from && memmem(p->got + from, p->have - from, want, n))
            return true;
        loop_turn(gw->loops[0].loop, 1);
        ssize_t k = recv(p->fd, p->got + p->have, sizeof(p->got) - p->have, 0);
        p->have += k > 0 ? (size_t)k : 0;
        if (k == 0)
            return false;
    }
    return false;
}

static void open_peer(struct gw *gw, struct peer *p, const struct buf *b)
{
    int fd[2];
    p->have = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    p->fd = fd[0];
    if (http_server_adopt(gw->loops[0].http, fd[1], NULL) == 0)
        assert_int_equal(send(fd[0], b->data, b->len, MSG_NOSIGNAL), (ssize_t)b->len);
}

/* Statuses as on the wire. */
#define SERVING "\0\0\0\0\2\x08\1", 7
#define NOT_SERVING "\0\0\0\0\2\x08\2", 7
#define UNKNOWN "\0\0\0\0\2\x08\3", 7

static void test_watchers_hear_of_every_change(void **state)
{
    static struct gw gw;
    static struct peer model, server, none;
    struct peer *all[] = {&model, &server, &none};
    const char *const names[] = {"\x0a\1m", "", "\x0a\1n"};
    struct gw_loop *gl = &gw.loops[0];
    struct err e = {0};
    (void)state;
    open_site(&gw);
    for (size_t i = 0; i < 3; i++) {
        struct buf b;
        buf_init(&b, 4096);
        put_call(&b, "/grpc.health.v1.Health/Watch", names[i], strlen(names[i]));
        open_peer(&gw, all[i], &b);
        buf_fini(&b);
    }
    assert_true(hears(&gw, &model, 0, SERVING));
    assert_true(hears(&gw, &server, 0, SERVING));
    assert_true(hears(&gw, &none, 0, UNKNOWN));
    assert_int_equal(gl->n_watchers, 3);
    size_t before = model.have;
    assert_int_equal(registry_unload(gw.registry, "m", &e), 0);
    assert_true(hears(&gw, &model, before, NOT_SERVING));
    before = model.have;
    assert_int_equal(registry_load(gw.registry, "m", &e), 0);
    assert_true(hears(&gw, &model, before, SERVING));
    const struct registry_spec spec = {.name = "n", .path = "/no such file", .pinned = true};
    before = none.have;
    assert_int_equal(registry_add(gw.registry, &spec, &e), 0);
    assert_true(hears(&gw, &none, before, NOT_SERVING));
    enum registry_state s = REGISTRY_LOADING;
    for (int i = 0; i < 60000 && s != REGISTRY_FAILED; i++) {
        loop_turn(gl->loop, 1);
        assert_true(registry_state(gw.registry, "n", &s));
    }
    before = none.have;
    assert_int_equal(registry_remove(gw.registry, "n", &e), 0);
    assert_true(hears(&gw, &none, before, UNKNOWN));
    close(none.fd); /* one watcher leaves */
    for (int i = 0; i < 60000 && gl->n_watchers > 2; i++)
        loop_turn(gl->loop, 1);
    assert_int_equal(gl->n_watchers, 2);
    before = model.have;
    gw.draining = true;
    health_tell(gl);
    assert_true(hears(&gw, &model, before, NOT_SERVING));
    health_end(gl); /* trailers: type 1, flags 5 */
    assert_true(hears(&gw, &model, before, "\1\5", 2));
    assert_true(hears(&gw, &server, 0, "\1\5", 2));
    assert_int_equal(gl->n_watchers, 0);
    assert_int_equal(gl->n_calls, 0);
    close(model.fd);
    close(server.fd);
    gw_site_close(&gw);
}

/* Whichever allocation fails: the watch starts or is refused. */
static void test_watchers_while_memory_fails(void **state)
{
    static struct gw gw;
    static struct peer p;
    struct gw_loop *gl = &gw.loops[0];
    struct buf b;
    (void)state;
    open_site(&gw);
    buf_init(&b, 4096);
    put_call(&b, "/grpc.health.v1.Health/Watch", "\x0a\1m", 3);
    for (uint64_t k = 1; k < 300; k++) {
        uint64_t before = mem_calls();
        mem_fail_at(k);
        open_peer(&gw, &p, &b);
        for (int i = 0; i < 12; i++) {
            loop_turn(gl->loop, 0);
            ssize_t n = recv(p.fd, p.got + p.have, sizeof(p.got) - p.have, 0);
            p.have += n > 0 ? (size_t)n : 0;
        }
        mem_fail_at(0);
        bool failed = mem_calls() - before >= k;
        if (!failed)
            assert_true(hears(&gw, &p, 0, SERVING));
        assert_int_equal(gl->n_watchers, gl->n_calls);
        close(p.fd);
        for (int i = 0; i < 4; i++)
            loop_turn(gl->loop, 0);
        assert_int_equal(gl->n_watchers, 0);
        assert_int_equal(gl->n_calls, 0);
        if (!failed)
            break;
        assert_true(k < 299);
    }
    buf_fini(&b);
    gw_site_close(&gw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_are_found_when_they_are_whole),
        cmocka_unit_test(test_gzip_is_bounded_and_only_where_it_helps),
        cmocka_unit_test(test_messages_become_requests),
        cmocka_unit_test(test_messages_say_what_is_wrong),
        cmocka_unit_test(test_constraints_of_messages),
        cmocka_unit_test(test_tools_of_messages),
        cmocka_unit_test(test_rows_of_messages),
        cmocka_unit_test(test_fields_of_a_message_are_bounded),
        cmocka_unit_test(test_a_token_is_a_message),
        cmocka_unit_test(test_statuses_of_http),
        cmocka_unit_test(test_details_name_the_field),
        cmocka_unit_test(test_reflection_gives_a_file_and_its_imports),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_calls_are_answered_while_memory_fails),
        cmocka_unit_test(test_a_stream_of_readings),
        cmocka_unit_test(test_watchers_hear_of_every_change),
        cmocka_unit_test(test_watchers_while_memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
