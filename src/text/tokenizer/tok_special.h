/* tok_special.h - tokens that are found in a text by their spelling.
 *
 * Thread:    immutable once indexed.
 * Ownership: the owner of a set frees its entries; spellings are borrowed.
 * Failure:   only errors of the function for plain text. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_SPECIAL_H
#define SHOAL_TEXT_TOKENIZER_TOK_SPECIAL_H

#include "text/tokenizer/tok_call.h"
#include "text/tokenizer/tok_vocab.h"

struct tok_special_entry {
    const char *p; /* borrowed */
    uint32_t n, id;
};

struct tok_special { /* sorted by their bytes */
    struct tok_special_entry *e;
    uint32_t n;
    uint32_t first[257]; /* e[first[b] .. first[b + 1]) begin with byte b */
};

/* Sorts the entries and indexes them. */
void tok_special_index(struct tok_special *sp);
/* Can an entry begin with this byte? */
static inline bool tok_special_may(const struct tok_special *sp, char c)
{
    return sp->first[(uint8_t)c] < sp->first[(uint8_t)c + 1];
}
/* The index of the longest entry at p, or TOKENIZER_NONE.  With type (of the vocabulary) given only
 * user-defined ones count. */
int32_t tok_special_at(const struct tok_special *sp, const uint8_t *type, const char *p, size_t n);
/* The id of the entry spelled so, or TOKENIZER_NONE. */
int32_t tok_special_find(const struct tok_special *sp, const char *p, size_t n);
/* How many bytes at p spell a control token.  *open becomes true when the text ends inside of a
 * spelling; it stays as it is otherwise. */
size_t tok_special_control(const struct tok_special *sp, const struct tok_vocab *v, const char *p,
                           size_t n, bool *open);

typedef int (*tok_special_plain_fn)(void *ctx, struct tok_call *c, const char *p, size_t n);
/* Emits the special tokens of a text (all with TOKENIZER_PARSE_SPECIAL in flags, otherwise only the
 * user-defined ones), and passes the text between them to plain. */
SHOAL_MUST_CHECK int tok_special_split(const struct tok_special *sp, const struct tok_vocab *v,
                                       struct tok_call *c, const char *p, size_t n, unsigned flags,
                                       tok_special_plain_fn plain, void *ctx);

#endif
