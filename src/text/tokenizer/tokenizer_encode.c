/* tokenizer_encode.c - tokenizer_encode and tokenizer_encode_pair: templates, pairs, truncation. */
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_core.h"

static int failed(struct err *e, int rc, size_t n)
{
    return err_set(e, rc, "cannot tokenize a text of %zu bytes: %s", n,
                   rc == SHOAL_ELIMIT ? "more tokens, or a longer normalized text, than allowed"
                                      : err_text(rc));
}

int tokenizer_encode(const struct tokenizer *t, struct tok_ids *out, const char *text, size_t n,
                     unsigned flags, struct err *e)
{
    const struct tokenizer_template *tp = &t->single;
    size_t before = out->n;
    int rc = 0;
    if (!(flags & TOKENIZER_ADD_SPECIAL))
        rc = tokenizer_core_encode(t, out, NULL, text, n, flags);
    else
        for (unsigned i = 0; i < tp->n && rc == 0; i++)
            rc = tp->items[i].id == TOKENIZER_TEXT_A
                     ? tokenizer_core_encode(t, out, NULL, text, n, flags)
                     : tok_ids_push(out, tp->items[i].id);
    if (rc < 0) {
        out->n = before;
        return failed(e, rc, n);
    }
    return 0;
}

int tokenizer_encode_mixed(const struct tokenizer *t, struct tok_ids *out, const char *text,
                           size_t n, const struct tokenizer_range *plain, size_t n_plain,
                           struct err *e)
{
    struct tok_call c = {.out = out, .plain = plain, .n_plain = n_plain};
    size_t before = out->n;
    int rc = tokenizer_core_run(t, &c, text, n, TOKENIZER_PARSE_SPECIAL);
    if (rc == 0)
        return 0;
    out->n = before;
    return failed(e, rc, n);
}

/* ---- pairs and ranges ---- */

void tokenizer_encoding_init(struct tok_encoding *x)
{
    *x = (struct tok_encoding){0};
}

void tokenizer_encoding_fini(struct tok_encoding *x)
{
    mem_free(x->ids);
    *x = (struct tok_encoding){0};
}

static int encoding_reserve(struct tok_encoding *x, size_t n)
{
    size_t bytes;
    x->n = 0;
    if (n <= x->cap)
        return 0;
    if (!mem_mul(&bytes, n, 3 * sizeof(uint32_t) + 2))
        return SHOAL_ENOMEM;
    int32_t *ids = mem_alloc(bytes);
    if (!ids)
        return SHOAL_ENOMEM;
    mem_free(x->ids);
    x->ids = ids;
    x->start = (uint32_t *)(ids + n);
    x->end = x->start + n;
    x->types = (uint8_t *)(x->end + n);
    x->inputs = x->types + n;
    x->cap = n;
    return 0;
}

/* Shortens keep so that both texts together have `room` tokens. */
static void shorten(size_t keep[2], size_t room, bool pair, bool second)
{
    size_t shorter = keep[0] <= keep[1] ? 0 : 1, longer = 1 - shorter;
    if (keep[0] + keep[1] <= room)
        return;
    if (!pair) {
        keep[0] = room;
    } else if (second) {
        keep[0] = keep[0] < room ? keep[0] : room;
        keep[1] = room - keep[0];
    } else if (keep[shorter] <= room / 2) {
        keep[longer] = room - keep[shorter];
    } else {
        keep[shorter] = room / 2;
        keep[longer] = room - room / 2;
    }
}

static void put_text(struct tok_encoding *x, const struct tok_ids *ids, const struct tok_spans *sp,
                     size_t n, uint8_t input, uint8_t type)
{
    if (n == 0)
        return;
    memcpy(x->ids + x->n, ids->ids, n * sizeof(*x->ids));
    memcpy(x->start + x->n, sp->start, n * sizeof(*x->start));
    memcpy(x->end + x->n, sp->end, n * sizeof(*x->end));
    memset(x->inputs + x->n, input, n);
    memset(x->types + x->n, type, n);
    x->n += n;
}

/* Joins both texts with the tokens of the template. */
static int assemble(const struct tokenizer_template *tp, struct tok_encoding *x,
                    const struct tok_ids ids[2], const struct tok_spans spans[2], size_t max_tokens,
                    bool pair, bool second)
{
    size_t keep[2] = {ids[0].n, ids[1].n}, added = 0;
    for (unsigned i = 0; i < tp->n; i++)
        added += tp->items[i].id >= 0;
    if (max_tokens > 0)
        shorten(keep, max_tokens > added ? max_tokens - added : 0, pair, second);
    int rc = encoding_reserve(x, keep[0] + keep[1] + added);
    if (rc < 0)
        return rc;
    x->cut = keep[0] < ids[0].n || keep[1] < ids[1].n;
    for (unsigned i = 0; i < tp->n; i++) {
        int32_t id = tp->items[i].id;
        uint8_t type = tp->items[i].type;
        if (id < 0) {
            unsigned k = id == TOKENIZER_TEXT_B;
            put_text(x, &ids[k], &spans[k], keep[k], (uint8_t)k, type);
            keep[k] = 0; /* a template with a text twice gets it once */
            continue;
        }
        x->ids[x->n] = id;
        x->start[x->n] = x->end[x->n] = 0;
        x->inputs[x->n] = TOK_INPUT_NONE;
        x->types[x->n++] = type;
    }
    return 0;
}

int tokenizer_encode_pair(const struct tokenizer *t, struct tok_encoding *x, const char *a,
                          size_t na, const char *b, size_t nb, size_t max_tokens, unsigned flags,
                          struct err *e)
{
    static const struct tokenizer_template bare = {
        .items = {{TOKENIZER_TEXT_A, 0}, {TOKENIZER_TEXT_B, 1}}, .n = 2};
    const struct tokenizer_template *tp = b ? &t->pair : &t->single;
    struct tok_ids ids[2];
    struct tok_spans spans[2] = {{0}, {0}};
    tok_ids_init(&ids[0], TOK_MAX_TEXT);
    tok_ids_init(&ids[1], TOK_MAX_TEXT);
    if (!(flags & TOKENIZER_ADD_SPECIAL))
        tp = &bare;
    int rc = tokenizer_core_encode(t, &ids[0], &spans[0], a, na, flags);
    if (rc == 0 && b)
        rc = tokenizer_core_encode(t, &ids[1], &spans[1], b, nb, flags);
    if (rc == 0)
        rc = assemble(tp, x, ids, spans, max_tokens, b != NULL, flags & TOKENIZER_CUT_SECOND);
    for (int i = 0; i < 2; i++) {
        tok_ids_fini(&ids[i]);
        mem_free(spans[i].start);
    }
    return rc < 0 ? failed(e, rc, b ? na + nb : na) : 0;
}
