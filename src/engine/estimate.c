/* estimate.c - see estimate.h. */
#include "engine/estimate.h"

#include "base/clock.h"
#include "engine/engine_state.h"

static struct cost_load load_of(struct shoal_engine *en, const struct fair_who *who)
{
    const struct engine_load *l = &en->load;
    struct fair_load a = {
        .n_active = atomic_load_explicit(&l->n_active, memory_order_relaxed),
        .n_waiting = atomic_load_explicit(&l->n_waiting, memory_order_relaxed),
        .max_active = en->max_tasks,
        .active_prompt = atomic_load_explicit(&l->active_prompt, memory_order_relaxed),
        .active_decode = atomic_load_explicit(&l->active_decode, memory_order_relaxed)};
    uint64_t units = atomic_load_explicit(&en->cost_ahead, memory_order_relaxed);
    if (a.n_waiting > 0 || (!en->specialist.ops && a.n_active >= a.max_active)) {
        pthread_mutex_lock(&en->lock);
        uint64_t all = en->fair_waiting_units;
        fair_reduce(&en->fair, who, &a);
        pthread_mutex_unlock(&en->lock);
        /* waiting work counts as far as it goes first */
        units = (units > all ? units - all : 0) + a.waiting_prompt;
    }
    return (struct cost_load){.n_active = a.n_active,
                              .n_waiting = a.n_waiting,
                              .max_active = a.max_active,
                              .shared_chunk = en->chunk / ENGINE_SHARED_CHUNK_PART,
                              .prompt_tokens = a.active_prompt + a.waiting_prompt,
                              .decode_tokens = a.active_decode + a.waiting_decode,
                              .waiting_decode = a.waiting_decode,
                              .units = units,
                              .batch_units = en->specialist.max_cost};
}

struct cost_estimate estimate_request(struct shoal_engine *en, const struct cost_request *r,
                                      const struct fair_who *who)
{
    const struct cost_load l = load_of(en, who);
    return cost_predict(&en->cost, &l, r, clock_ns());
}

void estimate_speed(struct shoal_engine *en, double *prefill_ns, double *token_ns)
{
    cost_speed(&en->cost, clock_ns(), prefill_ns, token_ns);
}

struct cost_telemetry estimate_telemetry(struct shoal_engine *en, const struct fair_who *who)
{
    const struct cost_load l = load_of(en, who);
    return cost_tell(&en->cost, &l, clock_ns());
}
