/* heads_keep.c - memory of a model's heads: one list, freed together.
 */
#include "base/mem.h"
#include "model/heads_int.h"

void *heads_keep(struct heads *h, void *p)
{
    void **bigger = p ? mem_realloc(h->owned, (h->n_owned + 1) * sizeof(*bigger)) : NULL;
    if (!bigger) {
        mem_free(p);
        return NULL;
    }
    h->owned = bigger;
    h->owned[h->n_owned++] = p;
    return p;
}

void heads_destroy(struct heads *h)
{
    if (!h)
        return;
    for (uint32_t i = 0; i < h->n_owned; i++)
        mem_free(h->owned[i]);
    mem_free(h->owned);
    mem_free(h);
}
