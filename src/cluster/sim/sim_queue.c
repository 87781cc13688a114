/* sim_queue.c - see sim_queue.h. */
#include "cluster/sim/sim_queue.h"

#include "base/mem.h"

void sim_queue_fini(struct sim_queue *q)
{
    mem_free(q->items);
    *q = (struct sim_queue){0};
}

static bool before(const struct sim_item *a, const struct sim_item *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->number < b->number);
}

void sim_queue_push(struct sim_queue *q, uint64_t at_us, uint32_t kind, uint32_t what,
                    uint32_t stamp)
{
    if (q->n == q->cap) {
        size_t cap = q->cap ? 2 * q->cap : 1024;
        struct sim_item *bigger = mem_realloc(q->items, cap * sizeof(*bigger));
        if (!bigger) {
            q->failed = true;
            return;
        }
        q->items = bigger;
        q->cap = cap;
    }
    struct sim_item v = {at_us, q->next_number++, kind, what, stamp};
    size_t i = q->n++;
    for (; i > 0 && before(&v, &q->items[(i - 1) / 2]); i = (i - 1) / 2)
        q->items[i] = q->items[(i - 1) / 2];
    q->items[i] = v;
}

bool sim_queue_pop(struct sim_queue *q, struct sim_item *out)
{
    if (q->n == 0)
        return false;
    *out = q->items[0];
    struct sim_item v = q->items[--q->n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < q->n; i = k) {
        if (k + 1 < q->n && before(&q->items[k + 1], &q->items[k]))
            k++;
        if (!before(&q->items[k], &v))
            break;
        q->items[i] = q->items[k];
    }
    q->items[i] = v;
    return true;
}
