/* config_ensemble.h - from the keys of a route to its ensemble.
 *
 * Thread:    while a configuration is read.
 * Ownership: the ensemble owns copies.
 * Failure:   as config_key.h: the position is that of the ensemble in the file. */
#ifndef SHOAL_CONFIG_CONFIG_ENSEMBLE_H
#define SHOAL_CONFIG_CONFIG_ENSEMBLE_H

#include "ensemble/ensemble.h"
#include "wire/yaml_in.h"

struct config_ensemble {
    struct {
        struct yaml_in_strs models;
        uint32_t measure, hold;
        double threshold;
        bool replace;
    } cascade;
    struct {
        struct yaml_in_strs models, weights;
        uint32_t by;
    } vote;
    struct {
        char *model;
        uint32_t samples, part;
        double temperature;
    } consensus;
    struct {
        char *model, *judge;
        uint32_t samples;
        double temperature;
    } rerank;
    struct {
        char *model, *better;
    } refine;
    struct {
        struct yaml_in_strs models, weights;
    } average;
};

/* at: the route.  Without an ensemble *out is empty. */
SHOAL_MUST_CHECK int config_ensemble_take(struct yaml_in *r, const yaml_node_t *at,
                                          const struct config_ensemble *k, struct ensemble *out);

#endif
