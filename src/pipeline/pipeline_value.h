/* pipeline_value.h - results of models, searches and checks as values of a flow; their fields are
 * those of graph_kind.h.
 *
 * Thread:    pure functions.
 * Ownership: values lie in the arena, with copies of all texts.
 * Failure:   out of memory: the arena's rc tells, and the value is empty. */
#ifndef SHOAL_PIPELINE_PIPELINE_VALUE_H
#define SHOAL_PIPELINE_PIPELINE_VALUE_H

#include "base/arena.h"
#include "base/str.h"
#include "base/value.h"
#include "pipeline/graph/graph.h"
#include "shoal/shoal.h"

struct ask_plan_action;
struct collection_hit;
struct support;

static inline struct value pipeline_value_number(double d)
{
    return (struct value){.kind = VALUE_NUMBER, .number = d};
}

/* A copy of the members; their texts are not copied. */
struct value pipeline_value_map(struct arena *a, const struct value_member *m, size_t n);
/* A copy of a text. */
struct value pipeline_value_copy(struct arena *a, const char *p, size_t n);
/* text: what the model has read, for the words of spans. */
struct value pipeline_value_result(struct arena *a, enum graph_kind kind,
                                   const struct shoal_result *r, const char *text);
struct value pipeline_value_passages(struct arena *a, const struct collection_hit *hits,
                                     uint32_t n);
/* hits: the passages, as pipeline_value_passages has them. */
struct value pipeline_value_support(struct arena *a, const struct support *s, struct str answer,
                                    const struct value *hits, uint32_t n_hits);
struct value pipeline_value_action(struct arena *a, const struct ask_plan_action *x);

#endif
