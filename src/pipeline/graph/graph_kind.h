/* graph_kind.h - the kinds of steps: their keys, requirements and results.
 *
 * Thread: constant. */
#ifndef SHOAL_PIPELINE_GRAPH_GRAPH_KIND_H
#define SHOAL_PIPELINE_GRAPH_GRAPH_KIND_H

#include "pipeline/graph/graph_type.h"

struct graph_kind_info {
    const char *name;
    const char *keys;               /* additional keys in the file, separated by blanks */
    const char *needed;             /* the required ones */
    const struct graph_type *gives; /* NULL: depends on the step */
    const char *main;               /* the field that a fallback gives; NULL: none */
    bool acts;                      /* has side effects, so it runs even if its result is unused */
    bool in_map;                    /* may be the body of a map */
    const char *text;
};

extern const struct graph_kind_info graph_kinds[];

/* A passage of a collection. */
extern const struct graph_type graph_kind_passages;

/* Whether steps of this kind may have a key of the file. */
bool graph_kind_may(uint32_t kind, const char *key);

#endif
