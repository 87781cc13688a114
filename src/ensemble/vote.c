/* vote.c - see vote.h. */
#include "ensemble/vote.h"

#include <string.h>

#include "base/mem.h"
#include "base/room.h"

int vote_add(struct vote *v, const char *label, double weight, double confidence)
{
    uint32_t i = 0;
    while (i < v->n && strcmp(v->labels[i].label, label) != 0)
        i++;
    if (!room_make32(&v->labels, &v->cap, i, sizeof(*v->labels), 16))
        return SHOAL_ENOMEM;
    if (i == v->n)
        v->labels[v->n++] = (struct vote_label){.label = label};
    v->labels[i].votes += weight;
    v->labels[i].sure += weight * confidence;
    v->total += weight;
    return 0;
}

static bool is_before(const struct vote_label *a, const struct vote_label *b)
{
    return a->votes > b->votes || (a->votes >= b->votes && a->sure > b->sure);
}

/* Insertion: stable, and lists are short or nearly sorted. */
void vote_sort(struct vote *v)
{
    for (uint32_t i = 1; i < v->n; i++) {
        const struct vote_label x = v->labels[i];
        uint32_t k = i;
        for (; k > 0 && is_before(&x, &v->labels[k - 1]); k--)
            v->labels[k] = v->labels[k - 1];
        v->labels[k] = x;
    }
}

double vote_share(const struct vote *v, uint32_t i)
{
    return v->total > 0 ? v->labels[i].votes / v->total : 0;
}

void vote_fini(struct vote *v)
{
    mem_free(v->labels);
    *v = (struct vote){.labels = NULL};
}
