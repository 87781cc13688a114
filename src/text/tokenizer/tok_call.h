/* tok_call.h - one call that encodes a text: its output, and the input ranges of tokens.
 *
 * Steps rewrite the text (normalizers, spaces). A view maps the bytes of the text in work back to
 * the input, so that a token's range is known after any rewriting.
 *
 * Thread:    belongs to the call.
 * Ownership: tok_rewrite_fini frees a rewrite; the caller of the encoder owns ids and spans.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT from the output; the text of the error is set by the
 *            caller of the encoder. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_CALL_H
#define SHOAL_TEXT_TOKENIZER_TOK_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/tokenizer/tok_ids.h"
#include "text/tokenizer/tokenizer_info.h"

#define TOK_MAX_TEXT ((size_t)1 << 30) /* symbols of a text are counted in 32 bits */

/* Byte i of the text comes from bytes [from[i], to[i]) of the input; where from is NULL, from byte
 * base + i. */
struct tok_view {
    const char *p;
    const uint32_t *from, *to;
    uint32_t base;
};

/* Ranges of the tokens in tok_ids, by index; all zero is empty. */
struct tok_spans {
    uint32_t *start, *end; /* one block, owned by start */
    size_t cap;
    const char *input;
    size_t n_input;
};

/* A rewritten text with a mapping back to the input; all zero is empty. */
struct tok_rewrite {
    char *p;
    uint32_t *from, *to; /* [cap] as in tok_view; one block with p, owned by from */
    size_t n, cap;
};

struct tok_call {
    struct tok_ids *out;
    struct tok_spans *spans;             /* NULL: ranges are not needed */
    struct tok_view view;                /* view of the text being encoded */
    const struct tokenizer_range *plain; /* [n_plain], in order: input without control tokens */
    size_t n_plain;
};

/* The first plain range that ends after byte `at` of the input, or NULL. */
const struct tokenizer_range *tok_call_plain(const struct tok_call *c, uint32_t at);

/* The range of the token that was pushed last: the bytes [p, p + n) of the view. */
SHOAL_MUST_CHECK int tok_call_span(struct tok_call *c, const char *p, size_t n);
/* Appends a token that the bytes [p, p + n) of the view became. */
static inline int tok_call_emit(struct tok_call *c, int32_t id, const char *p, size_t n)
{
    int rc = tok_ids_push(c->out, id);
    return rc < 0 || !c->spans ? rc : tok_call_span(c, p, n);
}

/* Room for n bytes more. */
SHOAL_MUST_CHECK int tok_rewrite_reserve(struct tok_rewrite *r, size_t n);
void tok_rewrite_fini(struct tok_rewrite *r);
/* Appends bytes that come from [from, to) of the input; reserve first. */
static inline void tok_rewrite_add(struct tok_rewrite *r, const char *p, size_t n, uint32_t from,
                                   uint32_t to)
{
    for (size_t i = 0; i < n; i++, r->n++) {
        r->p[r->n] = p[i];
        r->from[r->n] = from;
        r->to[r->n] = to;
    }
}
static inline struct tok_view tok_rewrite_view(const struct tok_rewrite *r)
{
    return (struct tok_view){r->p, r->from, r->to, 0};
}
/* Replaces r by a copy of [p, p + n) of the view with U+2581 as a space, after a space when
 * `prefix`; it becomes the view. */
SHOAL_MUST_CHECK int tok_rewrite_unescape(struct tok_rewrite *r, struct tok_call *c, const char *p,
                                          size_t n, bool prefix);

/* The range of input that byte q of a view comes from. */
static inline uint32_t tok_view_from(const struct tok_view *v, const char *q)
{
    return v->from ? v->from[q - v->p] : v->base + (uint32_t)(q - v->p);
}
static inline uint32_t tok_view_to(const struct tok_view *v, const char *q)
{
    return v->from ? v->to[q - v->p] : v->base + (uint32_t)(q - v->p) + 1;
}

/* U+2581 to space in [p, p + n): the new length.  out may be p. */
size_t tok_call_unescape(char *out, const char *p, size_t n);

#endif
