/* config_ensemble.c - see config_ensemble.h. */
#include "config/config_ensemble.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_WEIGHT 1e6

static int nomem(struct yaml_in *r)
{
    return err_set(r->e, SHOAL_ENOMEM, "%s: out of memory", r->name);
}

static int add_model(struct yaml_in *r, const yaml_node_t *at, struct ensemble *out,
                     const char *name)
{
    if (!name || !name[0])
        return yaml_in_fail(r, at, "the name of a model is missing");
    for (uint32_t i = 0; i < out->n_models; i++)
        if (strcmp(out->models[i], name) == 0)
            return yaml_in_fail(r, at, "the model '%.80s' is listed twice", name);
    if (!out->models) {
        out->models = mem_zalloc_n(ENSEMBLE_MAX_MODELS, sizeof(*out->models));
        out->weights = mem_zalloc_n(ENSEMBLE_MAX_MODELS, sizeof(*out->weights));
    }
    if (!out->models || !out->weights || !(out->models[out->n_models] = mem_strdup(name)))
        return nomem(r);
    out->weights[out->n_models++] = 1;
    return 0;
}

static int add_models(struct yaml_in *r, const yaml_node_t *at, struct ensemble *out,
                      const struct yaml_in_strs *from)
{
    int rc = 0;
    if (from->n < 2)
        return yaml_in_fail(r, at, "%s needs at least two models", ensemble_name(out->kind));
    for (uint32_t i = 0; i < from->n && rc == 0; i++)
        rc = add_model(r, at, out, from->v[i]);
    return rc;
}

static int set_weights(struct yaml_in *r, const yaml_node_t *at, struct ensemble *out,
                       const struct yaml_in_strs *from)
{
    const bool may_be_zero = out->kind == ENSEMBLE_AVERAGE;
    double sum = from->n > 0 ? 0 : 1;
    if (from->n > 0 && from->n != out->n_models)
        return yaml_in_fail(r, at, "there are %u models and %u weights", out->n_models, from->n);
    for (uint32_t i = 0; i < from->n; i++) {
        char *end;
        const double w = strtod(from->v[i], &end);
        if (end == from->v[i] || *end || !(w >= 0 && w <= MAX_WEIGHT) || (w <= 0 && !may_be_zero))
            return yaml_in_fail(r, at, "the weight '%.40s' is not a number above 0", from->v[i]);
        out->weights[i] = w;
        sum += w;
    }
    return sum > 0 ? 0 : yaml_in_fail(r, at, "all weights are 0");
}

/* ---- kinds ---- */

static int take_cascade(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                        struct ensemble *out)
{
    out->measure = (enum ensemble_measure)k->cascade.measure;
    out->threshold = k->cascade.threshold;
    out->hold = k->cascade.hold;
    out->replace = k->cascade.replace;
    return add_models(r, at, out, &k->cascade.models);
}

static int take_vote(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                     struct ensemble *out)
{
    out->by = (enum ensemble_count)k->vote.by;
    int rc = add_models(r, at, out, &k->vote.models);
    return rc < 0 ? rc : set_weights(r, at, out, &k->vote.weights);
}

static int take_consensus(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                          struct ensemble *out)
{
    out->samples = k->consensus.samples;
    out->temperature = k->consensus.temperature;
    out->part = (enum ensemble_part)k->consensus.part;
    return add_model(r, at, out, k->consensus.model);
}

static int take_rerank(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                       struct ensemble *out)
{
    out->samples = k->rerank.samples;
    out->temperature = k->rerank.temperature;
    int rc = add_model(r, at, out, k->rerank.model);
    return rc < 0 ? rc : add_model(r, at, out, k->rerank.judge);
}

static int take_refine(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                       struct ensemble *out)
{
    int rc = add_model(r, at, out, k->refine.model);
    return rc < 0 ? rc : add_model(r, at, out, k->refine.better);
}

static int take_average(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                        struct ensemble *out)
{
    int rc = add_models(r, at, out, &k->average.models);
    return rc < 0 ? rc : set_weights(r, at, out, &k->average.weights);
}

typedef int (*take_fn)(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                       struct ensemble *out);

static const take_fn takes[ENSEMBLE_N_KINDS] = {
    [ENSEMBLE_CASCADE] = take_cascade,     [ENSEMBLE_VOTE] = take_vote,
    [ENSEMBLE_CONSENSUS] = take_consensus, [ENSEMBLE_RERANK] = take_rerank,
    [ENSEMBLE_REFINE] = take_refine,       [ENSEMBLE_AVERAGE] = take_average,
};

/* The ensemble defines the models: there is no choice left. */
static int check_alone(struct yaml_in *r, const yaml_node_t *route, enum ensemble_kind kind)
{
    static const char *const others[] = {"models",      "policy",        "rules",   "classifier",
                                         "min_quality", "least_battery", "similar", "flow"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const yaml_node_t *at = yaml_in_find(r, route, others[i]);
        if (at)
            return yaml_in_fail(r, at, "a route with %s does not choose a model: leave out %s",
                                ensemble_name(kind), others[i]);
    }
    return 0;
}

int config_ensemble_take(struct yaml_in *r, const yaml_node_t *at, const struct config_ensemble *k,
                         struct ensemble *out)
{
    int rc = 0;
    *out = (struct ensemble){.kind = ENSEMBLE_NONE};
    for (unsigned i = ENSEMBLE_NONE + 1; i < ENSEMBLE_N_KINDS && rc == 0; i++) {
        const char *name = ensemble_name((enum ensemble_kind)i);
        const yaml_node_t *map = takes[i] ? yaml_in_find(r, at, name) : NULL;
        if (!map)
            continue;
        if (out->kind != ENSEMBLE_NONE)
            return yaml_in_fail(r, map, "a route is one ensemble: %s or %s",
                                ensemble_name(out->kind), name);
        out->kind = (enum ensemble_kind)i;
        rc = takes[i](r, map, k, out);
    }
    if (rc == 0 && out->kind != ENSEMBLE_NONE)
        rc = check_alone(r, at, out->kind);
    return rc;
}
