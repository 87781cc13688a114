/* tok_ids.h - a growing array of token ids with a hard limit.
 *
 * Thread:    belongs to its caller.
 * Ownership: fini frees (a zeroed array is empty and full).
 * Failure:   SHOAL_ELIMIT past max_ids, SHOAL_ENOMEM; the array is unchanged. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_IDS_H
#define SHOAL_TEXT_TOKENIZER_TOK_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tok_ids {
    int32_t *ids;
    size_t n, cap, max;
};

void tok_ids_init(struct tok_ids *a, size_t max_ids);
void tok_ids_fini(struct tok_ids *a);
SHOAL_MUST_CHECK int tok_ids_grow(struct tok_ids *a); /* makes room for one more */

static inline int tok_ids_push(struct tok_ids *a, int32_t id)
{
    if (a->n == a->cap) {
        int rc = tok_ids_grow(a);
        if (rc < 0)
            return rc;
    }
    a->ids[a->n++] = id;
    return 0;
}

#endif
