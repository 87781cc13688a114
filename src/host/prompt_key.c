/* prompt_key.c - see prompt_key.h. */
#include "host/prompt_key.h"

#include <string.h>

/* Another set or order of fields needs another tag, so that old and new keys never meet. */
static const char tag[] = "shoal question 3";

#define FIXED_BYTES 160u

struct fixed {
    uint8_t bytes[FIXED_BYTES];
    size_t n;
};

static void put(struct fixed *f, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        f->bytes[f->n++] = (uint8_t)(v >> (8 * i));
}

static void put_float(struct fixed *f, float v)
{
    uint32_t bits;
    v += 0.0f; /* -0 and 0 are equal */
    memcpy(&bits, &v, sizeof(bits));
    put(f, bits, 4);
}

static void add_u64(struct sha256 *s, uint64_t v)
{
    struct fixed f = {.n = 0};
    put(&f, v, 8);
    sha256_add(s, f.bytes, f.n);
}

static void add_bytes(struct sha256 *s, const void *p, size_t n)
{
    add_u64(s, n);
    sha256_add(s, p, n);
}

static void put_sampling(struct fixed *f, const struct shoal_sampling *s)
{
    put_float(f, s->temperature);
    put(f, s->top_k, 4);
    put_float(f, s->top_p);
    put_float(f, s->min_p);
    put_float(f, s->repeat_penalty);
    put(f, s->repeat_last_n, 4);
    put_float(f, s->presence_penalty);
    put_float(f, s->frequency_penalty);
    put(f, s->temperature > 0 ? s->seed : 0, 8); /* without randomness the seed has no effect */
    put(f, s->n_bias, 4);
    put(f, s->n_logprobs, 4);
    put(f, s->logprobs, 1);
}

static void add_tokens(struct sha256 *s, const int32_t *tokens, size_t n)
{
    add_u64(s, n);
    while (n > 0) {
        struct fixed f = {.n = 0};
        for (; n > 0 && f.n < FIXED_BYTES; n--)
            put(&f, (uint32_t)*tokens++, 4);
        sha256_add(s, f.bytes, f.n);
    }
}

bool prompt_key_question(uint8_t out[SHA256_BYTES], const struct prompt_question *q)
{
    struct fixed f = {.n = 0};
    struct sha256 s;
    memcpy(f.bytes, tag, sizeof(tag));
    f.n = sizeof(tag);
    put(&f, (uint64_t)q->kind, 4);
    put(&f, q->n_prompts, 4);
    put(&f, q->n_choices, 4);
    put(&f, q->max_tokens, 4);
    put(&f, q->n_stop, 4);
    put(&f, q->ignore_end, 1);
    put(&f, (uint64_t)q->special | (uint64_t)q->parse_special << 1, 1);
    put(&f, q->n_ctx, 4);
    put(&f, q->int8, 1);
    put(&f, q->kv_q8, 1);
    put(&f, q->ends != NULL, 1);
    put_sampling(&f, &q->sampling);
    sha256_begin(&s);
    sha256_add(&s, f.bytes, f.n);
    for (uint32_t i = 0; i < q->sampling.n_bias; i++) {
        f.n = 0;
        put(&f, (uint32_t)q->sampling.bias[i].token, 4);
        put_float(&f, q->sampling.bias[i].bias);
        sha256_add(&s, f.bytes, f.n);
    }
    for (uint32_t i = 0; i < q->n_stop; i++)
        add_bytes(&s, q->stop[i], strlen(q->stop[i]));
    for (uint32_t i = 0; q->ends && i < q->n_prompts; i++)
        add_u64(&s, q->ends[i]);
    add_u64(&s, q->scope);
    add_tokens(&s, q->tokens, q->n_tokens);
    add_bytes(&s, q->text, q->text_bytes);
    add_bytes(&s, q->more, q->more_bytes);
    if (q->constraint != SHOAL_CONSTRAINT_NONE) {
        add_u64(&s, (uint64_t)q->constraint);
        add_bytes(&s, q->constraint_text, q->constraint_bytes);
    }
    return sha256_end(&s, out);
}

bool prompt_key_repeats(const struct shoal_sampling *s, bool has_seed)
{
    return !(s->temperature > 0) || has_seed;
}
