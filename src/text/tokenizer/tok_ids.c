/* tok_ids.c - see tok_ids.h. */
#include "text/tokenizer/tok_ids.h"

#include "base/mem.h"

void tok_ids_init(struct tok_ids *a, size_t max_ids)
{
    *a = (struct tok_ids){.max = max_ids};
}

void tok_ids_fini(struct tok_ids *a)
{
    mem_free(a->ids);
    *a = (struct tok_ids){0};
}

int tok_ids_grow(struct tok_ids *a)
{
    size_t cap = a->cap ? a->cap + a->cap / 2 : 64, bytes;
    if (a->n >= a->max)
        return SHOAL_ELIMIT;
    if (cap > a->max)
        cap = a->max;
    int32_t *bigger = mem_mul(&bytes, cap, sizeof(*bigger)) ? mem_realloc(a->ids, bytes) : NULL;
    if (!bigger)
        return SHOAL_ENOMEM;
    a->ids = bigger;
    a->cap = cap;
    return 0;
}
