/* test_answer.c - what every dialect writes for the same events, byte for byte.
 *
 * Each row is a request to a path; it goes through the door and its handler, and stops where flow
 * would send it elsewhere.  From there on the test is the model: each script sends events to the
 * sink of the call.  tests/data/answers/golden.txt holds what the client then gets; run the test
 * with SHOAL_GOLDEN=FILE to write a new one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <shoal/v1/shoal.pb-c.h>

#include "base/log.h"
#include "base/mem.h"
#include "flow/ask_plan.h"
#include "flow/dispatch.h"
#include "flow/routing.h"
#include "gateway/call/answer.h"
#include "net/grpc_frame.h"
#include "support/gw_site.h"

#define GOLDEN SHOAL_TEST_DATA "/answers/golden.txt"
#define FULL_BYTES ((size_t)1 << 20)

#define ASK "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define TOOL                                                                                       \
    "{\"type\":\"function\",\"function\":{\"name\":\"lamp\",\"parameters\":{\"type\":"             \
    "\"object\"}}}"

/* ---- the client: an exchange that writes down what it is sent ---- */

struct drive {
    struct http_req req; /* first */
    struct buf *wire;
    size_t queued; /* bytes that the client has not read */
    bool over;
    struct gw_loop *gl;
    struct call *call; /* held */
    struct sink *sink; /* of the call */
    /* where flow would send it */
    struct request *request;
    struct sink *front;
};

static struct drive *drive_of(struct http_req *r)
{
    return (struct drive *)(void *)r; /* its first member */
}

static void on_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                     int64_t body_bytes)
{
    struct buf *w = drive_of(r)->wire;
    buf_printf(w, "(%d", status);
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, "x-request-id") != 0)
            buf_printf(w, " %s: %s;", headers[i].name, headers[i].value);
    buf_puts(w, body_bytes < 0 ? " stream)" : ")");
}

static void on_write(struct http_req *r, const void *p, size_t n)
{
    const char *text = p;
    struct buf *w = drive_of(r)->wire;
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n')
            buf_puts(w, "\n  ");
        else if (text[i] == '\\' || (uint8_t)text[i] < 0x20 || (uint8_t)text[i] > 0x7e)
            buf_printf(w, "\\%02x", (uint8_t)text[i]);
        else
            buf_putc(w, text[i]);
}

static void on_end(struct http_req *r, const struct http_header *trailers, size_t n)
{
    struct drive *d = drive_of(r);
    buf_puts(d->wire, "(end");
    for (size_t i = 0; i < n; i++)
        buf_printf(d->wire, " %s: %s;", trailers[i].name, trailers[i].value);
    buf_putc(d->wire, ')');
    d->over = true;
}

static size_t on_queued(const struct http_req *r)
{
    return ((const struct drive *)(const void *)r)->queued;
}

/* ---- flow: takes every request and does nothing with it ---- */

static struct drive *driven;

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    (void)d;
    (void)o;
    driven->request = r;
    driven->front = s;
    return true;
}

static uint32_t n_cancelled;

static void on_cancel(struct flow_job *j)
{
    (void)j;
    n_cancelled++;
}

static void on_resume(struct flow_job *j)
{
    (void)j;
}

static const struct flow_job_ops job_ops = {on_cancel, on_resume};
static struct flow_job job = {&job_ops};

/* ---- events ---- */

static const struct routing_choice choice = {.route = "auto", .model = "big", .rule = -1};

static void start(struct drive *d)
{
    const struct sink_start e = {
        .model = "m", .version = "v1", .cache = SINK_CACHE_MISS, .tools = TOOL_FORMAT_NONE};
    d->sink->ops->start(d->sink, &e);
}

static void prompt(struct drive *d)
{
    const struct sink_prompt e = {.tokens = 9, .cached = 4, .computed = 9};
    if (d->sink->ops->prompt)
        d->sink->ops->prompt(d->sink, &e);
}

static void flush(struct drive *d)
{
    if (d->sink->ops->flush)
        d->sink->ops->flush(d->sink);
    buf_puts(d->wire, "|");
}

/* id -1: text only.  n_logprobs: with the token itself. */
static void token_with(struct drive *d, uint32_t of, int32_t id, const char *text,
                       uint32_t n_logprobs, bool echo)
{
    char own[32] = "", others[] = "\xff"
                                  "b"; /* borrowed for the event: overwritten after it */
    const size_t n = strlen(text);
    memcpy(own, text, n);
    const struct sink_logprob list[] = {{id, echo ? NAN : -0.25f, own, n},
                                        {id + 1, -1.5f, others, 1},
                                        {id + 2, -INFINITY, others + 1, 1}};
    const struct sink_token e = {.choice = of,
                                 .token = id,
                                 .echo = echo,
                                 .text = own,
                                 .text_bytes = n,
                                 .logprobs = n_logprobs ? list : NULL,
                                 .n_logprobs = n_logprobs};
    d->sink->ops->token(d->sink, &e);
    memset(own, '?', sizeof(own));
    memset(others, '?', sizeof(others));
}

static void token(struct drive *d, int32_t id, const char *text)
{
    token_with(d, 0, id, text, 0, false);
}

static void call_piece(struct drive *d, uint32_t index, bool begins, bool ends, const char *text)
{
    char id[8];
    snprintf(id, sizeof(id), "call_%u", index % 10);
    const struct sink_call e = {.index = index,
                                .begins = begins,
                                .ends = ends,
                                .id = id,
                                .name = "lamp",
                                .text = text,
                                .text_bytes = strlen(text)};
    if (d->sink->ops->call)
        d->sink->ops->call(d->sink, &e);
}

static void call_tool(struct drive *d, uint32_t index)
{
    call_piece(d, index, true, false, "");
    call_piece(d, index, false, false, "{\"on\":");
    call_piece(d, index, false, false, "");
    flush(d);
    call_piece(d, index, false, false, "true}");
    call_piece(d, index, false, true, "");
}

static struct sink_done done_of(uint32_t of, bool last)
{
    return (struct sink_done){.choice = of,
                              .finish = SHOAL_FINISH_STOP,
                              .prompt_tokens = 9,
                              .cached_tokens = 4,
                              .generated_tokens = 3,
                              .queue_ns = 1000000,
                              .first_token_ns = 3000000,
                              .total_ns = 7000000,
                              .last = last,
                              .usage = {9, 4, 3}};
}

static void done(struct drive *d, const struct sink_done *e)
{
    d->sink->ops->done(d->sink, e);
    flush(d);
}

static void finish(struct drive *d)
{
    const struct sink_done e = done_of(0, true);
    done(d, &e);
}

static void break_off(struct drive *d)
{
    struct failure f;
    failure_set(&f, FAILURE_UNAVAILABLE, SHOAL_EIO, NULL, "node_lost", "the node went \"away\"");
    f.retry_after_s = 2;
    (d->sink->ops->fail)(d->sink, &f); /* cmocka has a macro of this name */
}

/* ---- scripts ---- */

static void script_text(struct drive *d)
{
    start(d);
    prompt(d);
    token(d, 5, "Hel");
    flush(d);
    token(d, 6, ""); /* held back: an incomplete character */
    token(d, -1, "lo \"w\xc3\xb6rld\"\n");
    token(d, 7, "\xff.");
    token(d, 8, "!");
    flush(d);
    finish(d);
}

static void script_empty(struct drive *d)
{
    start(d);
    flush(d);
    finish(d);
}

static void script_length(struct drive *d)
{
    struct sink_done e = done_of(0, true);
    e.finish = SHOAL_FINISH_LENGTH;
    start(d);
    token(d, 5, "Hel");
    done(d, &e);
}

static void script_stop(struct drive *d)
{
    struct sink_done e = done_of(0, true);
    e.stopped_by_text = true;
    start(d);
    token(d, 5, "Hel");
    done(d, &e);
}

static void script_choices(struct drive *d)
{
    struct sink_done e = done_of(1, false);
    start(d);
    token_with(d, 1, 5, "one", 0, false);
    token_with(d, 0, 6, "zero", 0, false);
    token_with(d, 1, 7, " 1", 0, false);
    done(d, &e);
    e = done_of(0, true);
    e.finish = SHOAL_FINISH_LENGTH;
    done(d, &e);
}

static void script_eleven(struct drive *d)
{
    const struct sink_done e = done_of(10, true);
    start(d);
    token_with(d, 9, 5, "ten", 0, false);
    token_with(d, 10, 6, "eleven", 0, false);
    done(d, &e);
}

static void script_logprobs(struct drive *d)
{
    start(d);
    if (d->request->generate.echo)
        token_with(d, 0, 4, "P", 1, true);
    token_with(d, 0, 5, "Hel", 3, false);
    token_with(d, 0, 6, "", 1, false);
    token(d, -1, "lo");
    token_with(d, 0, 7, "!", 3, false);
    finish(d);
}

static void script_best(struct drive *d)
{
    struct sink_done e = done_of(0, false);
    start(d);
    token_with(d, 0, 5, "worse", 1, false);
    token_with(d, 1, -20, "better", 0, false);
    done(d, &e);
    e = done_of(1, true);
    done(d, &e);
}

static void script_calls(struct drive *d)
{
    struct sink_done e = done_of(0, true);
    e.n_calls = 2;
    start(d);
    prompt(d);
    token(d, 5, "Sure. ");
    call_tool(d, 0);
    flush(d);
    token(d, 6, "And:");
    call_tool(d, 1);
    done(d, &e);
}

static void script_only_call(struct drive *d)
{
    struct sink_done e = done_of(0, true);
    e.n_calls = 1;
    start(d);
    token_with(d, 0, 5, "", 1, false); /* belongs to the call */
    call_tool(d, 0);
    done(d, &e);
}

static void script_sure_calls(struct drive *d)
{
    struct sink_done e = done_of(0, true);
    e.n_calls = 2;
    start(d);
    token_with(d, 0, 4, "", 2, false);
    token_with(d, 0, 5, "Sure.", 2, false);
    token_with(d, 0, 6, "", 2, false);
    call_tool(d, 0);
    token_with(d, 0, 7, "", 2, false); /* belongs to the call */
    token_with(d, 0, 8, "And", 2, false);
    call_tool(d, 1);
    done(d, &e);
}

static void script_fail_first(struct drive *d)
{
    start(d);
    break_off(d);
}

static void script_fail_later(struct drive *d)
{
    start(d);
    token(d, 5, "Hel");
    token(d, 6, "lo");
    flush(d);
    break_off(d);
}

/* Sends the replacement if the sink allows it. */
static void replace(struct drive *d)
{
    static const struct sink_start big = {.model = "big", .version = "v2"};
    const struct sink_replace e = {.start = &big, .why = "not \"sure\""};
    const struct sink_ops *ops = d->sink->ops;
    bool may = ops->may_replace && ops->may_replace(d->sink, false);
    bool marked = ops->may_replace && ops->may_replace(d->sink, true);
    buf_puts(d->wire, may ? "<may replace" : "<may not");
    buf_puts(d->wire, marked ? ", may with a mark>" : ">");
    if (may || marked)
        ops->replace(d->sink, &e);
}

static void script_replace(struct drive *d)
{
    d->sink->routed = &choice;
    start(d);
    token_with(d, 0, 5, "wrong", d->request->generate.sampling.logprobs ? 2 : 0, false);
    flush(d);
    replace(d);
    token_with(d, 0, 6, "right", d->request->generate.sampling.logprobs ? 2 : 0, false);
    flush(d);
    finish(d);
}

/* Before the first token even a stream can be replaced. */
static void script_replace_early(struct drive *d)
{
    d->sink->routed = &choice;
    start(d);
    prompt(d);
    replace(d);
    token(d, 6, "right");
    finish(d);
}

/* The rest of a call that was replaced is void. */
static void script_replace_call(struct drive *d)
{
    d->sink->routed = &choice;
    start(d);
    call_piece(d, 0, true, false, "{");
    replace(d);
    call_piece(d, 0, false, false, "}");
    call_piece(d, 0, false, true, "");
    token(d, 6, "right");
    finish(d);
}

static void script_gone(struct drive *d)
{
    uint32_t before = n_cancelled;
    start(d);
    token(d, 5, "Hel");
    flush(d);
    d->sink->job = &job; /* the work that must stop */
    d->req.cancelled(&d->req);
    d->over = true;
    buf_printf(d->wire, "<gone, cancelled %u>", n_cancelled - before);
    token(d, 6, "lo");
    call_tool(d, 0);
    buf_puts(d->wire, d->sink->ops->full && d->sink->ops->full(d->sink) ? "<full>" : "");
    finish(d);
    break_off(d);
}

static void script_full(struct drive *d)
{
    const struct sink_ops *ops = d->sink->ops;
    start(d);
    token(d, 5, "Hel");
    flush(d);
    d->queued = FULL_BYTES;
    buf_puts(d->wire, ops->full && ops->full(d->sink) ? "<full>" : "<not full>");
    d->queued = 0;
    buf_puts(d->wire, ops->full && ops->full(d->sink) ? "<full>" : "<not full>");
    finish(d);
}

/* No memory for a piece: nothing half is sent, and the work stops. */
static void script_no_memory(struct drive *d)
{
    const uint32_t before = n_cancelled;
    start(d);
    token(d, 5, "Hel");
    flush(d);
    token(d, 6, "lo");
    d->call->out.rc = SHOAL_ENOMEM;
    d->sink->job = &job;
    flush(d);
    buf_printf(d->wire, "<cancelled %u>", n_cancelled - before);
    if (!d->over)
        break_off(d);
}

static void script_no_memory_last(struct drive *d)
{
    start(d);
    token(d, 5, "Hel");
    flush(d);
    d->call->out.rc = SHOAL_ENOMEM;
    finish(d);
}

static struct answer_choice *gathered(struct drive *d)
{
    return &((struct answer_sink *)(void *)d->sink)->choices[0]; /* its first member */
}

/* What was gathered is not all. */
static void script_no_memory_before(struct drive *d)
{
    start(d);
    token(d, 5, "Hel");
    flush(d);
    gathered(d)->text.rc = SHOAL_ENOMEM;
    finish(d);
}

static void script_no_memory_calls(struct drive *d)
{
    start(d);
    token(d, 5, "Hel");
    gathered(d)->calls.rc = SHOAL_ENOMEM;
    finish(d);
}

static void script_no_memory_tokens(struct drive *d)
{
    start(d);
    token(d, 5, "Hel");
    gathered(d)->tokens.rc = SHOAL_ENOMEM;
    finish(d);
}

/* The answer repeats personal data: it must not be stored. */
static void script_private(struct drive *d)
{
    const struct sink_start e = {.model = "m", .version = "v1", .private = true};
    d->sink->ops->start(d->sink, &e);
    token(d, 5, "Hel");
    finish(d);
}

static void script_ask(struct drive *d)
{
    static const struct ask_plan_step steps[] = {{.name = "intent", .ns = 2000000}};
    static const struct ask_plan plan = {.n_actions = 0};
    struct sink_done e = done_of(0, true);
    const struct sink_plan p = {.plan = &plan};
    e.steps = steps;
    e.n_steps = 1;
    start(d);
    d->sink->ops->plan(d->sink, &p);
    token(d, -1, "Done");
    token(d, -1, "");
    flush(d);
    token(d, -1, ".");
    done(d, &e);
}

static void script_results(struct drive *d)
{
    static const struct shoal_label labels[] = {{.name = "yes", .score = 0.75f},
                                                {.name = "no", .score = 0.25f}};
    static const float vector[] = {0.5f, -0.5f};
    static const double values[] = {0.5};
    const struct shoal_result r = {.kind = d->request->infer.kind,
                                   .label = "yes",
                                   .confidence = 0.75f,
                                   .labels = labels,
                                   .n_labels = 2,
                                   .vector = vector,
                                   .n_dims = 2,
                                   .values = values,
                                   .n_values = 1,
                                   .n_tokens = 4,
                                   .truncated = true};
    start(d);
    for (uint32_t i = d->request->infer.n_inputs; i-- > 0;) {
        const struct sink_result e = {.index = i, .result = &r, .last = i == 0};
        d->sink->ops->result(d->sink, &e);
    }
}

struct script {
    const char *name;
    void (*run)(struct drive *d);
};

static const struct script general[] = {{"text", script_text},
                                        {"empty", script_empty},
                                        {"length", script_length},
                                        {"stop", script_stop},
                                        {"fail first", script_fail_first},
                                        {"fail later", script_fail_later},
                                        {"replace", script_replace},
                                        {"replace early", script_replace_early},
                                        {"gone", script_gone},
                                        {"full", script_full},
                                        {"no memory", script_no_memory},
                                        {"no memory last", script_no_memory_last},
                                        {"no memory before", script_no_memory_before},
                                        {NULL, NULL}};
static const struct script text[] = {{"text", script_text}, {NULL, NULL}};
static const struct script choices[] = {{"choices", script_choices}, {NULL, NULL}};
static const struct script logprobs[] = {{"logprobs", script_logprobs},
                                         {"replace", script_replace},
                                         {"no memory for tokens", script_no_memory_tokens},
                                         {NULL, NULL}};
static const struct script eleven[] = {{"eleven", script_eleven}, {NULL, NULL}};
static const struct script best[] = {{"best", script_best}, {NULL, NULL}};
static const struct script calls[] = {{"calls", script_calls},
                                      {"only call", script_only_call},
                                      {"replace", script_replace},
                                      {"replace call", script_replace_call},
                                      {"no memory for calls", script_no_memory_calls},
                                      {"fail later", script_fail_later},
                                      {NULL, NULL}};
static const struct script sure_calls[] = {{"calls and logprobs", script_sure_calls}, {NULL, NULL}};
static const struct script private[] = {{"private", script_private}, {NULL, NULL}};
static const struct script ask[] = {{"ask", script_ask},
                                    {"fail later", script_fail_later},
                                    {"gone", script_gone},
                                    {"no memory", script_no_memory},
                                    {NULL, NULL}};
static const struct script results[] = {
    {"results", script_results}, {"fail first", script_fail_first}, {NULL, NULL}};

/* ---- the dialects ---- */

static const struct row {
    const char *path, *body;
    const struct script *scripts;
} rows[] = {
    {"/v1/chat/completions", "{" ASK "}", general},
    {"/v1/chat/completions", "{" ASK ",\"stream\":true}", general},
    {"/v1/chat/completions",
     "{" ASK ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}", text},
    {"/v1/chat/completions", "{" ASK ",\"stream\":true,\"return_progress\":true}", text},
    {"/v1/chat/completions", "{" ASK ",\"n\":2}", choices},
    {"/v1/chat/completions", "{" ASK ",\"n\":2,\"stream\":true}", choices},
    {"/v1/chat/completions", "{" ASK ",\"logprobs\":true,\"top_logprobs\":2}", logprobs},
    {"/v1/chat/completions", "{" ASK ",\"logprobs\":true,\"top_logprobs\":2,\"stream\":true}",
     logprobs},
    {"/v1/chat/completions", "{" ASK ",\"tools\":[" TOOL "]}", calls},
    {"/v1/chat/completions", "{" ASK ",\"tools\":[" TOOL "],\"stream\":true}", calls},
    {"/v1/chat/completions", "{" ASK ",\"functions\":[{\"name\":\"lamp\"}]}", calls},
    {"/v1/chat/completions", "{" ASK ",\"functions\":[{\"name\":\"lamp\"}],\"stream\":true}",
     calls},
    {"/v1/chat/completions", "{" ASK ",\"stream\":true,\"stream_options\":{\"replace\":true}}",
     general},
    {"/v1/completions", "{\"prompt\":\"P\"}", general},
    {"/v1/completions", "{\"prompt\":\"P\",\"stream\":true}", general},
    {"/v1/completions", "{\"prompt\":\"P\",\"stream\":true,\"stream_options\":{\"replace\":true}}",
     general},
    {"/v1/completions", "{\"prompt\":\"P\",\"logprobs\":2,\"echo\":true}", logprobs},
    {"/v1/completions", "{\"prompt\":\"P\",\"logprobs\":2,\"echo\":true,\"stream\":true}",
     logprobs},
    {"/v1/completions", "{\"prompt\":\"P\",\"n\":1,\"best_of\":2}", best},
    {"/v1/completions", "{\"prompt\":[\"a\",\"b\"]}", choices},
    {"/v1/completions", "{\"prompt\":\"P\",\"n\":11,\"stream\":true}", eleven},
    {"/v1/responses", "{\"input\":\"hi\"}", general},
    {"/v1/responses", "{\"input\":\"hi\",\"stream\":true}", general},
    {"/v1/responses", "{\"input\":\"hi\"}", private},
    {"/v1/responses",
     "{\"input\":\"hi\",\"include\":[\"message.output_text.logprobs\"],\"top_logprobs\":2}",
     logprobs},
    {"/v1/responses",
     "{\"input\":\"hi\",\"include\":[\"message.output_text.logprobs\"],\"top_logprobs\":2,"
     "\"stream\":true}",
     logprobs},
    {"/v1/responses",
     "{\"input\":\"hi\",\"tools\":[{\"type\":\"function\",\"name\":\"lamp\",\"parameters\":{}}]}",
     calls},
    {"/v1/responses",
     "{\"input\":\"hi\",\"tools\":[{\"type\":\"function\",\"name\":\"lamp\",\"parameters\":{}}],"
     "\"stream\":true}",
     calls},
    {"/v1/responses",
     "{\"input\":\"hi\",\"tools\":[{\"type\":\"function\",\"name\":\"lamp\",\"parameters\":{}}],"
     "\"include\":[\"message.output_text.logprobs\"],\"top_logprobs\":2}",
     sure_calls},
    {"/v1/responses",
     "{\"input\":\"hi\",\"tools\":[{\"type\":\"function\",\"name\":\"lamp\",\"parameters\":{}}],"
     "\"include\":[\"message.output_text.logprobs\"],\"top_logprobs\":2,\"stream\":true}",
     sure_calls},
    {"/v1/responses/input_tokens", "{\"input\":\"hi\"}", general},
    {"/v1/messages", "{" ASK ",\"max_tokens\":9,\"stop_sequences\":[\"END\"]}", general},
    {"/v1/messages", "{" ASK ",\"max_tokens\":9,\"stop_sequences\":[\"END\"],\"stream\":true}",
     general},
    {"/v1/messages",
     "{" ASK ",\"max_tokens\":9,\"tools\":[{\"name\":\"lamp\",\"input_schema\":{\"type\":"
     "\"object\"}}]}",
     calls},
    {"/v1/messages",
     "{" ASK ",\"max_tokens\":9,\"tools\":[{\"name\":\"lamp\",\"input_schema\":{\"type\":"
     "\"object\"}}],\"stream\":true}",
     calls},
    {"/v1/messages/count_tokens", "{" ASK "}", general},
    {"/api/chat", "{" ASK ",\"stream\":false}", general},
    {"/api/chat", "{" ASK "}", general},
    {"/api/chat", "{" ASK ",\"stream\":false,\"logprobs\":true}", logprobs},
    {"/api/chat", "{" ASK ",\"logprobs\":true}", logprobs},
    {"/api/chat", "{" ASK ",\"tools\":[" TOOL "],\"stream\":false}", calls},
    {"/api/chat", "{" ASK ",\"tools\":[" TOOL "]}", calls},
    {"/api/generate", "{\"prompt\":\"hi\",\"stream\":false}", general},
    {"/api/generate", "{\"prompt\":\"hi\"}", general},
    {"/completion", "{\"prompt\":\"P\",\"stop\":[\"END\"],\"return_tokens\":true}", general},
    {"/completion", "{\"prompt\":\"P\",\"stop\":[\"END\"],\"stream\":true}", general},
    {"/completion", "{\"prompt\":\"P\",\"n_probs\":2}", logprobs},
    {"/completion", "{\"prompt\":\"P\",\"n_probs\":2,\"post_sampling_probs\":true,\"stream\":true}",
     logprobs},
    {"/completion", "{\"prompt\":[\"a\",\"b\"]}", choices},
    {"/completion", "{\"prompt\":[\"a\",\"b\"],\"stream\":true}", choices},
    {"/completion", "{\"prompt\":\"P\",\"response_fields\":[\"content\",\"timings/prompt_n\"]}",
     text},
    {"/apply-template", "{" ASK "}", text},
    {"/generate", "{\"inputs\":\"P\"}", general},
    {"/generate", "{\"inputs\":\"P\",\"parameters\":{\"details\":true,\"top_n_tokens\":2}}",
     logprobs},
    {"/generate", "{\"inputs\":\"P\",\"parameters\":{\"return_full_text\":true}}", logprobs},
    {"/generate_stream", "{\"inputs\":\"P\"}", general},
    {"/generate_stream",
     "{\"inputs\":\"P\",\"parameters\":{\"top_n_tokens\":2,\"seed\":3,\"return_full_text\":true}}",
     logprobs},
    {"/", "{\"inputs\":\"P\"}", text},
    {"/v1/process", "{\"text\":\"light on\"}", ask},
    {"/v1/process", "{\"text\":\"light on\",\"stream\":true}", ask},
    {"/v1/classify", "{\"input\":[\"a\",\"b\"]}", results},
    {"/v1/embeddings", "{\"input\":\"a\"}", results},
    {"/v1/rerank", "{\"query\":\"q\",\"documents\":[\"a\",\"b\"]}", results},
    {"/tokenize", "{\"content\":\"ab\"}", general},
    {"/tokenize", "{\"content\":\"ab\",\"with_pieces\":true}", text},
    {"/detokenize", "{\"tokens\":[1]}", results + 1},
    {"/shoal.v1.Shoal/Generate", NULL, general},
    {"/shoal.v1.Shoal/Generate", "tools", calls},
    {"/shoal.v1.Shoal/GenerateStream", NULL, general},
    {"/shoal.v1.Shoal/GenerateStream", "tools", calls},
    {"/shoal.v1.Shoal/Classify", NULL, results},
    {"/shoal.v1.Shoal/Embed", NULL, results},
};

/* ---- the test ---- */

static void put_message(struct buf *out, const ProtobufCMessage *m)
{
    char head[GRPC_HEAD_BYTES];
    size_t n = protobuf_c_message_get_packed_size(m);
    grpc_frame_head(head, n, false);
    buf_put(out, head, sizeof(head));
    protobuf_c_message_pack(m, (uint8_t *)buf_room(out, n));
    buf_used(out, n);
}

/* The bodies of gRPC are messages. */
static void put_body(struct buf *out, const struct row *row)
{
    static Shoal__V1__Tool tool = SHOAL__V1__TOOL__INIT;
    static Shoal__V1__Message message = SHOAL__V1__MESSAGE__INIT;
    static Shoal__V1__Tool *tools[] = {&tool};
    static Shoal__V1__Message *messages[] = {&message};
    static char one[] = "a", user[] = "user", lamp[] = "lamp", schema[] = "{}";
    static char *inputs[] = {one};
    const char *method = strncmp(row->path, "/shoal", 6) == 0 ? strrchr(row->path, '/') + 1 : NULL;
    if (!method) {
        buf_puts(out, row->body);
    } else if (strcmp(method, "Classify") == 0) {
        Shoal__V1__ClassifyRequest m = SHOAL__V1__CLASSIFY_REQUEST__INIT;
        m.input = inputs;
        m.n_input = 1;
        put_message(out, &m.base);
    } else if (strcmp(method, "Embed") == 0) {
        Shoal__V1__EmbedRequest m = SHOAL__V1__EMBED_REQUEST__INIT;
        m.input = inputs;
        m.n_input = 1;
        put_message(out, &m.base);
    } else {
        Shoal__V1__GenerateRequest m = SHOAL__V1__GENERATE_REQUEST__INIT;
        message.role = user;
        message.content = one;
        tool.name = lamp;
        tool.parameters = schema;
        m.messages = messages;
        m.n_messages = 1;
        m.tools = tools;
        m.n_tools = row->body != NULL;
        put_message(out, &m.base);
    }
}

/* Drives one request through a script; what the client got is added to out. */
static void run(struct gw *gw, const struct row *row, const struct script *script, struct buf *out)
{
    static const struct http_ops ops = {on_begin, on_write, on_end, on_queued};
    const bool grpc = strncmp(row->path, "/shoal", 6) == 0;
    const struct http_header headers[] = {
        {"host", "localhost"},
        {"x-request-id", "r1"},
        {"content-type", grpc ? "application/grpc" : "application/json"}};
    struct buf body;
    struct drive d = {.wire = out, .gl = &gw->loops[0]};
    buf_init(&body, 1 << 16);
    put_body(&body, row);
    d.req = (struct http_req){.method = "POST",
                              .path = row->path,
                              .query = "",
                              .headers = headers,
                              .n_headers = 3,
                              .body = buf_str(&body),
                              .body_bytes = body.len,
                              .peer = "127.0.0.1",
                              .protocol = "h2",
                              .received_ns = 1,
                              .server = gw->loops[0].http,
                              .ops = &ops};
    driven = &d;
    buf_printf(out, "== %s %s: %s\n  ", row->path, row->body ? row->body : "", script->name);
    door_handle(&gw->loops[0], &d.req);
    if (!d.request)
        fail_msg("%s %s was refused: %s", row->path, row->body, buf_str(out));
    d.call = d.req.user;
    d.sink = d.call->sink;
    call_hold(d.call);
    script->run(&d);
    d.front->ops->closed(d.front);
    flow_give_request(&gw->loops[0].flow, d.request);
    assert_null(d.call->sink);
    if (!d.over) { /* the client waits for more */
        buf_puts(out, "<unanswered>");
        d.req.cancelled(&d.req);
    }
    assert_int_equal(d.call->holds, 1);
    call_release(d.call);
    buf_puts(out, "\n");
    buf_fini(&body);
}

/* Times differ from run to run: each becomes a T. */
static void hide_times(struct buf *b)
{
    static const char *const keys[] = {"\"created\":", "\"created_at\":", "\"created_at\":\"",
                                       "\"time_ms\":"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        for (char *p = b->data; (p = strstr(p, keys[i]));) {
            p += strlen(keys[i]);
            size_t n = strspn(p, "0123456789-:.TZ");
            if (n == 0)
                continue;
            *p = 'T';
            memmove(p + 1, p + n, strlen(p + n) + 1);
        }
    b->len = strlen(b->data);
}

static char *read_golden(void)
{
    FILE *f = fopen(GOLDEN, "rb");
    struct buf b;
    buf_init(&b, 1 << 24);
    for (int c; f && (c = fgetc(f)) != EOF;)
        buf_putc(&b, (char)c);
    if (f)
        fclose(f);
    return buf_take(&b, NULL);
}

/* Says where the first difference is, with the section that it is in. */
static void compare(const char *got, const char *want)
{
    size_t i = 0, section = 0, line = 0;
    while (got[i] && got[i] == want[i]) {
        if (got[i] == '\n') {
            line = i + 1;
            if (strncmp(got + i + 1, "== ", 3) == 0)
                section = i + 1;
        }
        i++;
    }
    if (got[i] || want[i])
        fail_msg("%.*s\n  at byte %zu got\n%.*s\n  instead of\n%.*s",
                 (int)strcspn(got + section, "\n"), got + section, i - line,
                 (int)strcspn(got + line, "\n"), got + line, (int)strcspn(want + line, "\n"),
                 want + line);
}

static void test_every_dialect_writes_its_bytes(void **state)
{
    static const struct dispatch_ops ops = {.run = take};
    static struct dispatch dispatch = {&ops};
    static struct gw gw;
    struct buf out;
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    assert_int_equal(gw_site_open(&gw, 0), 0);
    gw.loops[0].flow.dispatch = &dispatch;
    buf_init(&out, 1 << 24);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (const struct script *s = rows[i].scripts; s->name; s++)
            run(&gw, &rows[i], s, &out);
    hide_times(&out);
    const char *write_to = getenv("SHOAL_GOLDEN");
    FILE *f = write_to ? fopen(write_to, "wb") : NULL;
    if (f) {
        fwrite(out.data, 1, out.len, f);
        fclose(f);
    }
    char *want = read_golden();
    assert_non_null(want);
    compare(buf_str(&out), want);
    mem_free(want);
    buf_fini(&out);
    gw.loops[0].flow.dispatch = NULL;
    gw_site_close(&gw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_dialect_writes_its_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
