/* answer_cache.c - see answer_cache.h. */
#include "flow/generate/answer_cache.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "engine/estimate.h"
#include "flow/generate/token_queue.h"
#include "host/kept_answer.h"
#include "host/registry.h"
#include "wire/value_bytes.h"

/* ---- the question ----
 *
 * A conversation as bytes: every text behind its length, every value behind its kind, all
 * little-endian, so that two nodes get the same bytes. */

static void put_tools(struct buf *b, const struct chat *c)
{
    value_bytes_put_uint(b, c->n_tools);
    for (uint32_t i = 0; i < c->n_tools; i++) {
        const struct chat_tool *t = &c->tools[i];
        value_bytes_put_text(b, t->name, strlen(t->name));
        value_bytes_put_text(b, t->description, strlen(t->description));
        value_bytes_put(b, &t->parameters);
        buf_putc(b, t->strict ? 1 : 0);
    }
    value_bytes_put_uint(b, c->tool_choice);
    value_bytes_put_uint(b, c->tool_choice == CHAT_TOOLS_ONE ? c->tool : 0);
    buf_putc(b, c->one_call ? 1 : 0);
}

static void put_chat(struct buf *b, const struct chat *c)
{
    const struct value vars = {.kind = VALUE_MAP, .map = {c->vars, c->n_vars}};
    value_bytes_put_uint(b, c->n_messages);
    for (uint32_t i = 0; i < c->n_messages; i++) {
        const struct chat_message *m = &c->messages[i];
        value_bytes_put_text(b, m->role, strlen(m->role));
        buf_putc(b, m->name ? 1 : 0);
        if (m->name)
            value_bytes_put_text(b, m->name, strlen(m->name));
        value_bytes_put_text(b, m->content, m->content_bytes);
        value_bytes_put_uint(b, m->n_calls);
        for (uint32_t k = 0; k < m->n_calls; k++) {
            value_bytes_put_text(b, m->calls[k].id, strlen(m->calls[k].id));
            value_bytes_put_text(b, m->calls[k].name, strlen(m->calls[k].name));
            value_bytes_put_text(b, m->calls[k].arguments, m->calls[k].arguments_bytes);
        }
        buf_putc(b, m->call_id ? 1 : 0);
        if (m->call_id)
            value_bytes_put_text(b, m->call_id, strlen(m->call_id));
    }
    value_bytes_put(b, &vars);
    put_tools(b, c);
    if (c->template)
        value_bytes_put_text(b, c->template, strlen(c->template));
}

/* Several prompts one after the other, in b; and where each ends. */
static void put_prompts(struct buf *b, const struct request_generate *g, size_t *ends)
{
    for (uint32_t i = 0; i < g->n_prompts; i++) {
        const struct request_prompt *p = &g->prompts[i];
        if (p->text)
            buf_put(b, p->text, p->text_bytes);
        else
            buf_put(b, p->ids, p->n_ids * sizeof(*p->ids));
        ends[i] = p->text ? b->len : b->len / sizeof(*p->ids);
    }
}

static void put_optional(struct buf *b, const char *text, size_t n)
{
    buf_putc(b, text ? 1 : 0);
    if (text)
        value_bytes_put_text(b, text, n);
}

static void put_piece(struct buf *b, const struct request_piece *p)
{
    put_optional(b, p->name, p->name ? strlen(p->name) : 0);
    put_optional(b, p->text, p->text_bytes);
    value_bytes_put_uint(b, p->n_ids);
    for (size_t i = 0; i < p->n_ids; i++)
        value_bytes_put_uint(b, (uint32_t)p->ids[i]);
}

/* What is around the prompts and how they are continued, besides fields of prompt_question.  The
 * tokens of these texts are made only after the cache was asked. */
static void put_more(struct buf *b, const struct request_generate *g)
{
    for (uint32_t i = 0; i < g->n_prompts && g->chat.n_messages == 0; i++) {
        const struct request_prompt *p = &g->prompts[i];
        put_optional(b, p->suffix, p->suffix_bytes);
        value_bytes_put_uint(b, p->n_pieces);
        for (uint32_t k = 0; k < p->n_pieces; k++)
            put_piece(b, &p->pieces[k]);
    }
    value_bytes_put_uint(b, g->n_bias_texts);
    for (uint32_t i = 0; i < g->n_bias_texts; i++) {
        uint32_t bits;
        const float bias = g->bias_texts[i].bias + 0.0f; /* -0 and 0 are equal */
        memcpy(&bits, &bias, sizeof(bits));
        value_bytes_put_text(b, g->bias_texts[i].text, strlen(g->bias_texts[i].text));
        value_bytes_put_uint(b, bits);
    }
    buf_putc(b, g->drawn_logprobs ? 1 : 0);
    buf_putc(b, g->no_shift ? 1 : 0);
    value_bytes_put_uint(b, g->keep_tokens);
    if (g->adapter_scale != 0) {
        uint32_t bits;
        memcpy(&bits, &g->adapter_scale, sizeof(bits));
        value_bytes_put_uint(b, bits);
    }
}

/* The model's input; false: out of memory. */
static bool use_prompt(struct prompt_question *q, struct buf *b, struct request *r)
{
    const struct request_generate *g = &r->generate;
    const struct request_prompt *first = g->prompts;
    bool chat = g->chat.n_messages > 0;
    q->kind = chat ? PROMPT_KIND_CHAT : first->text ? PROMPT_KIND_TEXT : PROMPT_KIND_TOKENS;
    if (chat) {
        put_chat(b, &g->chat);
    } else if (g->n_prompts > 1) {
        size_t *ends = arena_zalloc_n(&r->arena, g->n_prompts, sizeof(*ends));
        if (!ends)
            return false;
        put_prompts(b, g, ends);
        q->ends = ends;
    }
    bool gathered = chat || g->n_prompts > 1;
    if (q->kind == PROMPT_KIND_TOKENS) {
        q->tokens = gathered ? (const int32_t *)(const void *)b->data : first->ids;
        q->n_tokens = gathered ? b->len / sizeof(*q->tokens) : first->n_ids;
    } else {
        q->text = gathered ? buf_str(b) : first->text;
        q->text_bytes = gathered ? b->len : first->text_bytes;
    }
    return b->rc == 0;
}

bool answer_cache_shared(const struct request *r, const struct registry_model *m)
{
    return r->shares_cache || m->slot->spec.shares_cache;
}

bool answer_cache_question(uint8_t out[SHA256_BYTES], struct request *r,
                           const struct registry_model *m)
{
    const struct request_generate *g = &r->generate;
    struct prompt_question q = {.n_prompts = g->n_prompts,
                                .n_choices = request_choices(g),
                                .max_tokens = g->max_tokens,
                                .sampling = g->sampling,
                                .stop = g->stop,
                                .n_stop = g->n_stop,
                                .ignore_end = g->ignore_end,
                                .special = g->special,
                                .parse_special = g->parse_special,
                                .constraint = g->constraint.kind,
                                .constraint_text = g->constraint.text,
                                .constraint_bytes = g->constraint.text_bytes,
                                .scope = answer_cache_shared(r, m) ? 0 : request_who(r).client,
                                .n_ctx = m->slot->n_ctx,
                                .int8 = m->slot->spec.int8,
                                .kv_q8 = m->slot->spec.kv_q8};
    struct buf b, more;
    /* An echo needs the prompt's tokens, which a hit would save; a resumed answer is not whole; a
     * prompt alone has none. */
    if (g->resume || g->echo || g->prompt_only || registry_identity(m)->kind == IDENTITY_NONE ||
        !prompt_key_repeats(&g->sampling, g->has_seed))
        return false;
    buf_init(&b, REQUEST_MAX_BYTES);
    buf_init(&more, REQUEST_MAX_BYTES);
    put_more(&more, g);
    q.more = buf_str(&more);
    q.more_bytes = more.len;
    bool ok = more.rc == 0 && use_prompt(&q, &b, r) && prompt_key_question(out, &q);
    buf_fini(&b);
    buf_fini(&more);
    return ok;
}

struct prompt_key answer_cache_key(const uint8_t question[SHA256_BYTES],
                                   const struct registry_model *m)
{
    struct prompt_key key;
    memcpy(key.model, registry_identity(m)->sum, sizeof(key.model));
    memcpy(key.question, question, sizeof(key.question));
    return key;
}

/* ---- the answer ---- */

void answer_cache_keep(struct prompt_cache *cache, const struct prompt_key *key,
                       const struct token_queue_end *ends, uint32_t n, const struct buf *tokens)
{
    struct kept_choice list[REQUEST_MAX_CHOICES];
    struct buf b;
    for (uint32_t i = 0; i < n; i++) {
        const struct shoal_event *d = &ends[i].done;
        list[i] = (struct kept_choice){d->finish,   d->prompt_tokens,  d->generated_tokens,
                                       d->queue_ns, d->first_token_ns, d->total_ns};
    }
    buf_init(&b, 2 * ANSWER_CACHE_MAX_BYTES);
    /* refuses an answer that its client or a deadline has cut off */
    if (kept_answer_put(&b, list, n, tokens) == 0)
        prompt_cache_put(cache, key, b.data, b.len, clock_ns());
    buf_fini(&b);
}
