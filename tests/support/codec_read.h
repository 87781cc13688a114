/* codec_read.h - what an API makes of a body: the request that flow gets, or the refusal.
 *
 * A body goes through the door and its handler, and stops where flow would run it.  What is there
 * is written down as text: everything that is not zero, false or missing, and counts that are
 * not 1.  Bodies and texts use ' in place of ".
 *
 * Include it after cmocka.h. */
#ifndef SHOAL_TESTS_CODEC_READ_H
#define SHOAL_TESTS_CODEC_READ_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
#include "router/router.h"
#include "support/gw_client.h"
#include "wire/value_json.h"

/* ---- the request as text ---- */

static inline void codec_read_put_number(struct buf *b, const char *name, double v)
{
    if (v != 0)
        buf_printf(b, " %s=%.7g", name, v);
}

static inline void codec_read_put_flag(struct buf *b, const char *name, bool v)
{
    if (v)
        buf_printf(b, " %s", name);
}

static inline void codec_read_put_text(struct buf *b, const char *name, const char *v)
{
    if (v)
        buf_printf(b, " %s='%s'", name, v);
}

static inline void codec_read_put_ids(struct buf *b, const int32_t *ids, size_t n)
{
    buf_putc(b, '[');
    for (size_t i = 0; i < n; i++)
        buf_printf(b, i ? ",%d" : "%d", ids[i]);
    buf_putc(b, ']');
}

/* The bytes that are counted must be those that are there. */
static inline void codec_read_put_counted(struct buf *b, const char *text, size_t n)
{
    assert_int_equal(strlen(text), n);
    buf_printf(b, "'%s'", text);
}

static inline void codec_read_put_value(struct buf *b, const struct value *v)
{
    struct json_out j = json_out_make(b);
    value_json_put(&j, v);
}

static inline void codec_read_put_chat(struct buf *b, const struct chat *c)
{
    static const char *const choices[] = {"auto", "none", "required", "one"};
    for (uint32_t i = 0; i < c->n_messages; i++) {
        const struct chat_message *m = &c->messages[i];
        buf_printf(b, " %s:", m->role);
        codec_read_put_counted(b, m->content, m->content_bytes);
        codec_read_put_text(b, "name", m->name);
        codec_read_put_text(b, "for", m->call_id);
        for (uint32_t k = 0; k < m->n_calls; k++) {
            buf_printf(b, " call(%s %s ", m->calls[k].id, m->calls[k].name);
            codec_read_put_counted(b, m->calls[k].arguments, m->calls[k].arguments_bytes);
            buf_putc(b, ')');
        }
    }
    for (uint32_t i = 0; i < c->n_vars; i++) {
        buf_printf(b, " var(%s ", c->vars[i].key);
        codec_read_put_value(b, &c->vars[i].value);
        buf_putc(b, ')');
    }
    codec_read_put_text(b, "template", c->template);
    for (uint32_t i = 0; i < c->n_tools; i++) {
        buf_printf(b, " tool(%s '%s' ", c->tools[i].name, c->tools[i].description);
        codec_read_put_value(b, &c->tools[i].parameters);
        buf_puts(b, c->tools[i].strict ? " strict)" : ")");
    }
    if (c->tool_choice != CHAT_TOOLS_AUTO)
        buf_printf(b, " choice=%s", choices[c->tool_choice]);
    codec_read_put_number(b, "tool", c->tool);
    codec_read_put_flag(b, "one_call", c->one_call);
}

static inline void codec_read_put_pieces(struct buf *b, const struct request_piece *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(b, " piece(");
        if (p[i].text)
            codec_read_put_counted(b, p[i].text, p[i].text_bytes);
        else
            codec_read_put_ids(b, p[i].ids, p[i].n_ids);
        codec_read_put_text(b, "file", p[i].name);
        buf_putc(b, ')');
    }
}

static inline void codec_read_put_prompts(struct buf *b, const struct request_generate *g)
{
    for (uint32_t i = 0; g->prompts && i < g->n_prompts; i++) {
        const struct request_prompt *p = &g->prompts[i];
        buf_putc(b, ' ');
        if (p->text)
            codec_read_put_counted(b, p->text, p->text_bytes);
        else if (p->ids)
            codec_read_put_ids(b, p->ids, p->n_ids);
        if (p->suffix) {
            buf_puts(b, " before ");
            codec_read_put_counted(b, p->suffix, p->suffix_bytes);
        }
        codec_read_put_pieces(b, p->pieces, p->n_pieces);
    }
}

static inline void codec_read_put_sampling(struct buf *b, const struct shoal_sampling *s)
{
    codec_read_put_number(b, "temp", (double)s->temperature);
    codec_read_put_number(b, "top_k", s->top_k);
    codec_read_put_number(b, "top_p", (double)s->top_p);
    codec_read_put_number(b, "min_p", (double)s->min_p);
    codec_read_put_number(b, "repeat", (double)s->repeat_penalty);
    codec_read_put_number(b, "last", s->repeat_last_n);
    codec_read_put_number(b, "presence", (double)s->presence_penalty);
    codec_read_put_number(b, "frequency", (double)s->frequency_penalty);
    for (uint32_t i = 0; i < s->n_bias; i++)
        buf_printf(b, " bias(%d %g)", s->bias[i].token, (double)s->bias[i].bias);
    codec_read_put_number(b, "n_logprobs", s->n_logprobs);
    codec_read_put_flag(b, "logprobs", s->logprobs);
}

static inline void codec_read_put_generate(struct buf *b, const struct request_generate *g)
{
    static const char *const kinds[] = {"none", "json", "schema", "gbnf", "regex", "choice"};
    if (g->n_prompts != 1)
        buf_printf(b, " prompts=%u", g->n_prompts);
    if (g->n != 1)
        buf_printf(b, " n=%u", g->n);
    codec_read_put_number(b, "max", g->max_tokens);
    codec_read_put_sampling(b, &g->sampling);
    if (g->has_seed)
        buf_printf(b, " seed=%lld", (long long)g->sampling.seed);
    for (uint32_t i = 0; i < g->n_bias_texts; i++)
        buf_printf(b, " bias('%s' %g)", g->bias_texts[i].text, (double)g->bias_texts[i].bias);
    for (uint32_t i = 0; i < g->n_stop; i++)
        codec_read_put_text(b, "stop", g->stop[i]);
    if (g->constraint.kind) {
        buf_printf(b, " %s:", kinds[g->constraint.kind]);
        codec_read_put_counted(b, g->constraint.text, g->constraint.text_bytes);
    }
    codec_read_put_flag(b, "ignore_end", g->ignore_end);
    codec_read_put_flag(b, "special", g->special);
    codec_read_put_flag(b, "parse", g->parse_special);
    codec_read_put_flag(b, "echo", g->echo);
    codec_read_put_flag(b, "prompt_logprobs", g->prompt_logprobs);
    codec_read_put_flag(b, "prompt_only", g->prompt_only);
    codec_read_put_flag(b, "progress", g->progress);
    codec_read_put_flag(b, "drawn", g->drawn_logprobs);
    codec_read_put_flag(b, "fresh", g->fresh_prefix);
    codec_read_put_flag(b, "no_shift", g->no_shift);
    if (g->keep_tokens)
        buf_printf(b, " keep:%u", g->keep_tokens);
    codec_read_put_prompts(b, g);
    codec_read_put_chat(b, &g->chat);
}

static inline void codec_read_put_infer(struct buf *b, const struct request_infer *q)
{
    codec_read_put_text(b, "kind", shoal_kind_name(q->kind));
    for (uint32_t i = 0; i < q->n_inputs; i++) {
        const struct request_input *in = &q->inputs[i];
        buf_putc(b, ' ');
        if (in->text)
            codec_read_put_counted(b, in->text, in->text_bytes);
        else if (in->ids)
            codec_read_put_ids(b, in->ids, in->n_ids);
        else
            for (uint32_t k = 0; k < in->n_values; k++)
                buf_printf(b, k ? ",%g" : "%g", in->values[k]);
    }
    codec_read_put_text(b, "query", q->query);
    codec_read_put_text(b, "labels", q->labels);
    codec_read_put_text(b, "prompt", q->prompt);
    codec_read_put_text(b, "stream", q->stream);
    codec_read_put_number(b, "columns", q->n_columns);
    codec_read_put_number(b, "dimensions", q->dimensions);
    codec_read_put_number(b, "sentences", q->max_sentences);
    codec_read_put_number(b, "max", q->max_tokens);
    codec_read_put_number(b, "beams", q->beams);
    codec_read_put_flag(b, "raw", q->raw);
    codec_read_put_flag(b, "whole", q->whole);
}

static inline void codec_read_put_rest(struct buf *b, const struct request *r)
{
    if (r->kind == REQUEST_ASK) {
        codec_read_put_text(b, "ask", r->ask.text);
        codec_read_put_text(b, "confirm", r->ask.confirm);
        codec_read_put_flag(b, "reply", r->ask.reply);
        codec_read_put_flag(b, "explain", r->ask.explain);
    } else {
        codec_read_put_flag(b, "decode", r->tokens.decode);
        codec_read_put_number(b, "flags", r->tokens.flags);
        if (r->tokens.text)
            buf_printf(b, " '%.*s'", (int)r->tokens.text_bytes, r->tokens.text);
        if (r->tokens.ids)
            codec_read_put_ids(b, r->tokens.ids, r->tokens.n_ids);
    }
}

static inline void codec_read_put_request(struct buf *b, const struct request *r)
{
    codec_read_put_text(b, "model", r->model);
    if (r->kind == REQUEST_GENERATE)
        codec_read_put_generate(b, &r->generate);
    else if (r->kind == REQUEST_INFER)
        codec_read_put_infer(b, &r->infer);
    else
        codec_read_put_rest(b, r);
    codec_read_put_number(b, "priority", r->priority);
    codec_read_put_text(b, "session", r->session[0] ? r->session : NULL);
    codec_read_put_text(b, "language", r->language);
    for (uint32_t i = 0; i < r->n_tags; i++)
        buf_printf(b, " tag(%s='%s')", r->tags[i].name, r->tags[i].value);
    if (r->deadline_ns)
        codec_read_put_number(b, "within", (double)(r->deadline_ns - r->received_ns) / 1e6);
    codec_read_put_flag(b, "explain", r->explain);
    codec_read_put_flag(b, "streams", r->streams);
    codec_read_put_flag(b, "no_cache", r->no_cache);
    codec_read_put_flag(b, "once", r->has_once_key);
    codec_read_put_flag(b, "version", r->version != NULL);
    codec_read_put_number(b, "bytes", (double)r->input_bytes);
    for (char *p = b->data; p && *p; p++)
        *p = *p == '"' ? '\'' : *p == '\n' ? '|' : *p;
}

/* ---- the way there ---- */

/* Where flow would run a request. */
struct codec_read_stop {
    struct request *request;
    struct sink *sink;
};

static struct codec_read_stop codec_read_stopped;

static inline bool codec_read_take(struct dispatch *d, struct flow_owner *o, struct request *r,
                                   struct sink *s)
{
    (void)d;
    (void)o;
    codec_read_stopped = (struct codec_read_stop){r, s};
    return true;
}

static inline void codec_read_open_site(struct gw *gw)
{
    static const struct dispatch_ops ops = {.run = codec_read_take};
    static struct dispatch dispatch = {&ops};
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    assert_int_equal(gw_site_open(gw, 0), 0);
    gw->loops[0].flow.dispatch = &dispatch;
}

static inline void codec_read_close_site(struct gw *gw)
{
    gw->loops[0].flow.dispatch = NULL;
    gw_site_close(gw);
}

/* "400 param code", or the beginning of the message where a dialect has no such fields. */
static inline void codec_read_put_refusal(struct buf *out, const struct gw_client *x)
{
    cJSON *json = cJSON_Parse(buf_str(&x->body));
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(json, "error");
    const char *param = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "param"));
    const char *code = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "code"));
    const char *message =
        cJSON_IsString(e) ? e->valuestring
                          : cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e, "message"));
    buf_printf(out, " %d", x->status);
    if (param)
        buf_printf(out, " %s", param);
    if (code)
        buf_printf(out, " %s", code);
    if (!param && message)
        buf_printf(out, " %.48s", message);
    for (char *p = out->data; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    cJSON_Delete(json);
}

/* Sends the body, with a header "name: value" if there is one. */
static inline void codec_read_ask(struct gw *gw, const char *path, const char *header,
                                  const char *body, size_t n, struct buf *out)
{
    char headers[512];
    struct gw_client x;
    snprintf(headers, sizeof(headers), "host: localhost\ncontent-type: application/json\n%s%s",
             header ? header : "", header ? "\n" : "");
    gw_client_init(&x, gw, "POST", path, headers, body, n);
    codec_read_stopped.request = NULL;
    gw_client_send(&x, gw);
    if (codec_read_stopped.request) {
        struct failure f;
        codec_read_put_request(out, codec_read_stopped.request);
        failure_of(&f, SHOAL_ECANCELLED, "seen");
        (codec_read_stopped.sink->ops->fail)(codec_read_stopped.sink, &f);
        codec_read_stopped.sink->ops->closed(codec_read_stopped.sink);
        flow_give_request(&gw->loops[0].flow, codec_read_stopped.request);
    } else {
        codec_read_put_refusal(out, &x);
    }
    assert_int_equal(gw->loops[0].n_calls, 0);
    gw_client_fini(&x);
}

static inline void codec_read_ask_quoted(struct gw *gw, const char *path, const char *header,
                                         const char *body, struct buf *out)
{
    char text[4096];
    size_t n = strlen(body);
    assert_true(n < sizeof(text));
    for (size_t i = 0; i <= n; i++)
        text[i] = body[i] == '\'' ? '"' : body[i];
    codec_read_ask(gw, path, header, text, n, out);
}

struct codec_read_row {
    const char *path, *body, *want;
};

static inline void codec_read_check(const struct codec_read_row *rows, size_t n)
{
    static struct gw gw;
    size_t n_wrong = 0;
    codec_read_open_site(&gw);
    for (size_t i = 0; i < n; i++) {
        struct buf out;
        buf_init(&out, 1 << 16);
        codec_read_ask_quoted(&gw, rows[i].path, NULL, rows[i].body, &out);
        const char *got = buf_str(&out);
        got += *got == ' ';
        if (strcmp(got, rows[i].want) != 0) {
            print_error("%s %s\n  got  %s\n  want %s\n", rows[i].path, rows[i].body, got,
                        rows[i].want);
            n_wrong++;
        }
        buf_fini(&out);
    }
    codec_read_close_site(&gw);
    assert_int_equal(n_wrong, 0);
}

#endif
