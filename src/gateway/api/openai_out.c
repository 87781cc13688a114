/* openai_out.c - answers in OpenAI's shape, whole and as server-sent events.
 *
 * What is the same in every chunk of a stream is written once (gen.prefix). */
#include <string.h>

#include "gateway/api/openai.h"
#include "wire/json_out.h"

static const char *finish_name(const struct shoal_event *d)
{
    return d->finish == SHOAL_FINISH_LENGTH ? "length" : "stop";
}

static void put_head(struct gen *g, struct json_out *j, const char *object)
{
    json_out_object(j);
    json_out_key(j, "id");
    json_out_str(j, g->id);
    json_out_key(j, "object");
    json_out_str(j, object);
    json_out_key(j, "created");
    json_out_uint(j, g->created_s);
    json_out_key(j, "model");
    json_out_str(j, g->model->name);
    json_out_key(j, "system_fingerprint");
    const char *version = registry_identity(g->model)->version;
    version[0] ? json_out_str(j, version) : json_out_null(j);
}

static void put_usage(struct gen *g, struct json_out *j)
{
    uint32_t made = gen_completion_tokens(g), prompt = gen_prompt_tokens(g);
    json_out_key(j, "usage");
    json_out_object(j);
    json_out_key(j, "prompt_tokens");
    json_out_uint(j, prompt);
    json_out_key(j, "completion_tokens");
    json_out_uint(j, made);
    json_out_key(j, "total_tokens");
    json_out_uint(j, (uint64_t)prompt + made);
    json_out_key(j, "prompt_tokens_details");
    json_out_object(j);
    json_out_key(j, "cached_tokens");
    json_out_uint(j, gen_cached_tokens(g));
    json_out_object_end(j);
    json_out_object_end(j);
}

/* ---- log-probabilities ---- */

static void put_logprob(struct gen *g, struct json_out *j, int32_t token, float logprob)
{
    size_t n;
    const char *p = shoal_token_text(registry_engine(g->model), token, SHOAL_TEXT_SPECIAL, &n);
    json_out_key(j, "token");
    json_out_strn(j, p, n);
    json_out_key(j, "logprob");
    /* what cannot be is as unlikely as OpenAI says it: JSON has no infinity */
    json_out_float(j, logprob < -9999.0f ? -9999.0f : logprob);
    json_out_key(j, "bytes");
    json_out_array(j);
    for (size_t i = 0; i < n; i++)
        json_out_uint(j, (uint8_t)p[i]);
    json_out_array_end(j);
}

/* One element of logprobs.content. */
static void put_chat_logprobs(struct gen *g, struct json_out *j, const struct gen_token *t)
{
    json_out_object(j);
    put_logprob(g, j, t->token, t->logprob);
    json_out_key(j, "top_logprobs");
    json_out_array(j);
    for (uint32_t i = 0; i < t->n_top; i++) {
        json_out_object(j);
        put_logprob(g, j, t->top[i].token, t->top[i].logprob);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

/* ---- chat, whole ---- */

static void chat_token(struct gen *g, const struct gen_token *t)
{
    struct gen_choice *ch = &g->choices[t->choice];
    buf_put(&ch->text, t->text, t->text_bytes);
    if (g->p.sampling.logprobs && t->token >= 0) {
        struct json_out j = json_out_make(&ch->extra);
        j.comma = ch->n_extra++ > 0;
        put_chat_logprobs(g, &j, t);
    }
}

static void nothing(struct gen *g)
{
    (void)g;
}

static void no_done(struct gen *g, uint32_t choice)
{
    (void)g;
    (void)choice;
}

static void no_error(struct gen *g, int code, const char *msg)
{
    (void)g; /* an answer that has not begun fails as a whole */
    (void)code;
    (void)msg;
}

/* Memory that ran out while an answer was gathered. */
static void check_choice(struct gen *g, const struct gen_choice *ch)
{
    if (ch->text.rc < 0 || ch->extra.rc < 0)
        g->call->out.rc = SHOAL_ENOMEM;
}

static void chat_finish(struct gen *g)
{
    struct buf *b = &g->call->out;
    buf_clear(b);
    struct json_out j = json_out_make(b);
    put_head(g, &j, "chat.completion");
    json_out_key(&j, "choices");
    json_out_array(&j);
    for (uint32_t i = 0; i < g->p.n; i++) {
        struct gen_choice *ch = &g->choices[i];
        json_out_object(&j);
        json_out_key(&j, "index");
        json_out_uint(&j, i);
        json_out_key(&j, "message");
        json_out_object(&j);
        json_out_key(&j, "role");
        json_out_str(&j, "assistant");
        json_out_key(&j, "content");
        json_out_strn(&j, buf_str(&ch->text), ch->text.len);
        json_out_key(&j, "refusal");
        json_out_null(&j);
        json_out_object_end(&j);
        json_out_key(&j, "logprobs");
        if (g->p.sampling.logprobs) {
            buf_puts(b, "{\"content\":[");
            buf_put(b, buf_str(&ch->extra), ch->extra.len);
            buf_puts(b, "],\"refusal\":null}");
            j.comma = true;
        } else {
            json_out_null(&j);
        }
        json_out_key(&j, "finish_reason");
        json_out_str(&j, finish_name(&ch->done));
        json_out_object_end(&j);
        check_choice(g, ch);
    }
    json_out_array_end(&j);
    put_usage(g, &j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* ---- streams ---- */

static void make_prefix(struct gen *g, const char *object)
{
    buf_clear(&g->prefix);
    buf_puts(&g->prefix, "data: ");
    struct json_out j = json_out_make(&g->prefix);
    put_head(g, &j, object);
}

static void chunk_begin(struct gen *g, uint32_t choice)
{
    struct buf *b = &g->call->out;
    buf_put(b, buf_str(&g->prefix), g->prefix.len);
    buf_printf(b, ",\"choices\":[{\"index\":%u,", choice);
}

static void chunk_end(struct gen *g, const char *finish)
{
    struct buf *b = &g->call->out;
    buf_puts(b, ",\"finish_reason\":");
    if (finish)
        buf_printf(b, "\"%s\"}]", finish);
    else
        buf_puts(b, "null}]");
    buf_puts(b, g->p.include_usage ? ",\"usage\":null}\n\n" : "}\n\n");
}

static void chat_stream_begin(struct gen *g)
{
    struct buf *b = &g->call->out;
    make_prefix(g, "chat.completion.chunk");
    for (uint32_t i = 0; i < g->p.n; i++) {
        chunk_begin(g, i);
        buf_puts(b, "\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},"
                    "\"logprobs\":null");
        chunk_end(g, NULL);
    }
}

static void chat_stream_token(struct gen *g, const struct gen_token *t)
{
    struct buf *b = &g->call->out;
    bool logprobs = g->p.sampling.logprobs && t->token >= 0;
    if (t->text_bytes == 0 && !logprobs)
        return;
    chunk_begin(g, t->choice);
    buf_puts(b, "\"delta\":{\"content\":");
    struct json_out j = json_out_make(b);
    json_out_strn(&j, t->text, t->text_bytes);
    buf_puts(b, "},\"logprobs\":");
    if (logprobs) {
        buf_puts(b, "{\"content\":[");
        j = json_out_make(b);
        put_chat_logprobs(g, &j, t);
        buf_puts(b, "],\"refusal\":null}");
    } else {
        buf_puts(b, "null");
    }
    chunk_end(g, NULL);
}

static void chat_stream_done(struct gen *g, uint32_t choice)
{
    chunk_begin(g, choice);
    buf_puts(&g->call->out, "\"delta\":{},\"logprobs\":null");
    chunk_end(g, finish_name(&g->choices[choice].done));
}

static void stream_finish(struct gen *g)
{
    struct buf *b = &g->call->out;
    if (g->p.include_usage) {
        buf_put(b, buf_str(&g->prefix), g->prefix.len);
        buf_puts(b, ",\"choices\":[]");
        struct json_out j = json_out_make(b);
        j.comma = true;
        put_usage(g, &j);
        buf_puts(b, "}\n\n");
    }
    buf_puts(b, "data: [DONE]\n\n");
}

static void stream_error(struct gen *g, int code, const char *msg)
{
    struct buf *b = &g->call->out;
    buf_puts(b, "data: ");
    call_put_error(g->call, b, call_type_of(call_status_of(code)), NULL, err_name(code), msg);
    buf_puts(b, "\ndata: [DONE]\n\n");
}

const struct gen_sink openai_chat_sink = {NULL,    nothing,     chat_token,
                                          no_done, chat_finish, no_error};
const struct gen_sink openai_chat_stream_sink = {"text/event-stream; charset=utf-8",
                                                 chat_stream_begin,
                                                 chat_stream_token,
                                                 chat_stream_done,
                                                 stream_finish,
                                                 stream_error};

/* ---- completions ---- */

static void put_echo(struct gen *g, uint32_t choice, struct buf *b)
{
    char *text = NULL;
    size_t n = 0, n_tokens = 0;
    const int32_t *tokens = g->echo ? gen_prompt_of(g, choice, &n_tokens) : NULL;
    if (g->echo &&
        shoal_detokenize(registry_engine(g->model), tokens, n_tokens, 0, &text, &n, NULL) == 0)
        buf_put(b, text, n);
    shoal_free(text);
}

/* {"tokens":[..],"token_logprobs":[..],"top_logprobs":[{..}],"text_offset":[..]} of one token. */
static void put_text_logprobs(struct gen *g, struct buf *b, const struct gen_token *t, size_t at)
{
    size_t n;
    const char *p = shoal_token_text(registry_engine(g->model), t->token, SHOAL_TEXT_SPECIAL, &n);
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_key(&j, "tokens");
    json_out_array(&j);
    json_out_strn(&j, p, n);
    json_out_array_end(&j);
    json_out_key(&j, "token_logprobs");
    json_out_array(&j);
    json_out_float(&j, t->logprob < -9999.0f ? -9999.0f : t->logprob);
    json_out_array_end(&j);
    json_out_key(&j, "top_logprobs");
    json_out_array(&j);
    json_out_object(&j);
    for (uint32_t i = 0; i < t->n_top; i++) {
        char name[256] = "";
        p = shoal_token_text(registry_engine(g->model), t->top[i].token, SHOAL_TEXT_SPECIAL, &n);
        memcpy(name, p, n < sizeof(name) ? n : sizeof(name) - 1);
        json_out_key(&j, name);
        json_out_float(&j, t->top[i].logprob);
    }
    json_out_object_end(&j);
    json_out_array_end(&j);
    json_out_key(&j, "text_offset");
    json_out_array(&j);
    json_out_uint(&j, at);
    json_out_array_end(&j);
    json_out_object_end(&j);
}

/* Whole answers gather the columns as records, one per token, and are put together at the end. */
struct text_record {
    int32_t token;
    float logprob;
    uint32_t n_top, at;
};

static void text_token(struct gen *g, const struct gen_token *t)
{
    struct gen_choice *ch = &g->choices[t->choice];
    if (ch->text.len == 0)
        put_echo(g, t->choice, &ch->text);
    if (g->p.sampling.logprobs && t->token >= 0) {
        struct text_record r = {t->token, t->logprob, t->n_top, (uint32_t)ch->text.len};
        buf_put(&ch->extra, &r, sizeof(r));
        buf_put(&ch->extra, t->top, t->n_top * sizeof(*t->top));
    }
    buf_put(&ch->text, t->text, t->text_bytes);
}

enum column { COLUMN_TOKEN, COLUMN_LOGPROB, COLUMN_TOP, COLUMN_OFFSET };

static void put_column(struct gen *g, struct json_out *j, const struct buf *records,
                       enum column column)
{
    json_out_array(j);
    for (size_t at = 0; at < records->len;) {
        struct text_record r;
        struct shoal_logprob top[20];
        size_t n;
        memcpy(&r, records->data + at, sizeof(r));
        memcpy(top, records->data + at + sizeof(r), r.n_top * sizeof(top[0]));
        at += sizeof(r) + r.n_top * sizeof(top[0]);
        const char *p =
            shoal_token_text(registry_engine(g->model), r.token, SHOAL_TEXT_SPECIAL, &n);
        if (column == COLUMN_TOKEN) {
            json_out_strn(j, p, n);
        } else if (column == COLUMN_LOGPROB) {
            json_out_float(j, r.logprob < -9999.0f ? -9999.0f : r.logprob);
        } else if (column == COLUMN_OFFSET) {
            json_out_uint(j, r.at);
        } else {
            json_out_object(j);
            for (uint32_t i = 0; i < r.n_top; i++) {
                char name[256] = "";
                p = shoal_token_text(registry_engine(g->model), top[i].token, SHOAL_TEXT_SPECIAL,
                                     &n);
                memcpy(name, p, n < sizeof(name) ? n : sizeof(name) - 1);
                json_out_key(j, name);
                json_out_float(j, top[i].logprob);
            }
            json_out_object_end(j);
        }
    }
    json_out_array_end(j);
}

static void text_finish(struct gen *g)
{
    static const char *const names[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
    struct buf *b = &g->call->out;
    buf_clear(b);
    struct json_out j = json_out_make(b);
    put_head(g, &j, "text_completion");
    json_out_key(&j, "choices");
    json_out_array(&j);
    for (uint32_t i = 0; i < g->p.n; i++) {
        struct gen_choice *ch = &g->choices[i];
        if (ch->text.len == 0) /* it ended before the first token */
            put_echo(g, i, &ch->text);
        json_out_object(&j);
        json_out_key(&j, "index");
        json_out_uint(&j, i);
        json_out_key(&j, "text");
        json_out_strn(&j, buf_str(&ch->text), ch->text.len);
        json_out_key(&j, "logprobs");
        if (g->p.sampling.logprobs && ch->extra.rc == 0) {
            json_out_object(&j);
            for (int k = COLUMN_TOKEN; k <= COLUMN_OFFSET; k++) {
                json_out_key(&j, names[k]);
                put_column(g, &j, &ch->extra, (enum column)k);
            }
            json_out_object_end(&j);
        } else {
            json_out_null(&j);
        }
        json_out_key(&j, "finish_reason");
        json_out_str(&j, finish_name(&ch->done));
        json_out_object_end(&j);
        check_choice(g, ch);
    }
    json_out_array_end(&j);
    put_usage(g, &j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void text_stream_begin(struct gen *g)
{
    struct buf *b = &g->call->out;
    make_prefix(g, "text_completion");
    for (uint32_t i = 0; g->echo && i < g->p.n; i++) {
        struct buf text;
        buf_init(&text, (size_t)64 << 20);
        put_echo(g, i, &text);
        chunk_begin(g, i);
        buf_puts(b, "\"text\":");
        struct json_out j = json_out_make(b);
        json_out_strn(&j, buf_str(&text), text.len);
        buf_puts(b, ",\"logprobs\":null");
        chunk_end(g, NULL);
        buf_fini(&text);
    }
}

static void text_stream_token(struct gen *g, const struct gen_token *t)
{
    struct buf *b = &g->call->out;
    bool logprobs = g->p.sampling.logprobs && t->token >= 0;
    if (t->text_bytes == 0 && !logprobs)
        return;
    chunk_begin(g, t->choice);
    buf_puts(b, "\"text\":");
    struct json_out j = json_out_make(b);
    json_out_strn(&j, t->text, t->text_bytes);
    buf_puts(b, ",\"logprobs\":");
    if (logprobs)
        put_text_logprobs(g, b, t, g->choices[t->choice].n_extra);
    else
        buf_puts(b, "null");
    g->choices[t->choice].n_extra += (uint32_t)t->text_bytes;
    chunk_end(g, NULL);
}

static void text_stream_done(struct gen *g, uint32_t choice)
{
    chunk_begin(g, choice);
    buf_puts(&g->call->out, "\"text\":\"\",\"logprobs\":null");
    chunk_end(g, finish_name(&g->choices[choice].done));
}

const struct gen_sink openai_text_sink = {NULL,    nothing,     text_token,
                                          no_done, text_finish, no_error};
const struct gen_sink openai_text_stream_sink = {"text/event-stream; charset=utf-8",
                                                 text_stream_begin,
                                                 text_stream_token,
                                                 text_stream_done,
                                                 stream_finish,
                                                 stream_error};
