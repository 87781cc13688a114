/* ensemble.c - see ensemble.h. */
#include "ensemble/ensemble.h"

#include <math.h>

#include "base/mem.h"

#define LEAST_TOKENS 4u /* before a generation is left in mid-stream */

void ensemble_fini(struct ensemble *e)
{
    for (uint32_t i = 0; i < e->n_models; i++)
        mem_free(e->models[i]);
    mem_free(e->models);
    mem_free(e->weights);
    *e = (struct ensemble){.kind = ENSEMBLE_NONE};
}

const char *ensemble_name(enum ensemble_kind k)
{
    static const char *const names[ENSEMBLE_N_KINDS] = {"none",   "cascade", "vote",   "consensus",
                                                        "rerank", "refine",  "average"};
    return names[k];
}

double ensemble_sureness(const struct ensemble *e, double confidence, double best, double second)
{
    return e->measure == ENSEMBLE_MARGIN ? best - second : confidence;
}

void ensemble_running_add(struct ensemble_running *r, double logprob)
{
    r->sum += logprob;
    r->n++;
}

double ensemble_running_sureness(const struct ensemble_running *r)
{
    return r->n > 0 ? exp(r->sum / r->n) : 1;
}

bool ensemble_should_leave(const struct ensemble *e, const struct ensemble_running *r, bool ended)
{
    if (!ended && r->n < LEAST_TOKENS)
        return false;
    return ensemble_running_sureness(r) < e->threshold;
}
