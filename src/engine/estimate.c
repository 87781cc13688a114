/* estimate.c - see estimate.h. */
#include "engine/estimate.h"

#include "base/clock.h"
#include "engine/engine_state.h"

static struct cost_load load_of(struct shoal_engine *en)
{
    const struct engine_load *l = &en->load;
    return (struct cost_load){
        .n_active = atomic_load_explicit(&l->n_active, memory_order_relaxed),
        .n_waiting = atomic_load_explicit(&l->n_waiting, memory_order_relaxed),
        .max_active = en->max_tasks,
        .shared_chunk = en->chunk / ENGINE_SHARED_CHUNK_PART,
        .prompt_tokens = atomic_load_explicit(&l->active_prompt, memory_order_relaxed) +
                         atomic_load_explicit(&l->waiting_prompt, memory_order_relaxed),
        .decode_tokens = atomic_load_explicit(&l->active_decode, memory_order_relaxed) +
                         atomic_load_explicit(&l->waiting_decode, memory_order_relaxed),
        .units = atomic_load_explicit(&en->cost_ahead, memory_order_relaxed),
        .batch_units = en->specialist.max_cost};
}

struct cost_estimate estimate_request(struct shoal_engine *en, const struct cost_request *r)
{
    const struct cost_load l = load_of(en);
    return cost_predict(&en->cost, &l, r, clock_ns());
}

void estimate_speed(struct shoal_engine *en, double *prefill_ns, double *token_ns)
{
    cost_speed(&en->cost, prefill_ns, token_ns);
}
