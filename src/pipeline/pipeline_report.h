/* pipeline_report.h - report of a flow's steps: times, result and state of each.
 *
 * Thread:    plain data.
 * Ownership: in the arena of its request; valid until its sink is closed. */
#ifndef SHOAL_PIPELINE_PIPELINE_REPORT_H
#define SHOAL_PIPELINE_PIPELINE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/value.h"
#include "pipeline/graph/graph.h"
#include "wire/json_out.h"

enum pipeline_state {
    PIPELINE_UNUSED,  /* no case or fallback led to it */
    PIPELINE_WAITING, /* for other steps */
    PIPELINE_RUNNING,
    PIPELINE_PENDING, /* another step runs in its place */
    PIPELINE_DONE,
    PIPELINE_SKIPPED, /* its condition did not hold */
    PIPELINE_FAILED,
};

struct pipeline_report_step {
    const char *name;
    enum graph_kind kind;
    enum pipeline_state state;
    bool degraded;         /* its result is a fallback */
    bool late;             /* it took too long */
    const char *why;       /* reason of a failure or fallback; "": none */
    uint64_t start_ns, ns; /* since the request began */
    uint32_t n_items;      /* of a map */
    struct value value;
};

struct pipeline_report {
    const char *flow;
    struct value output;
    bool degraded;
    uint64_t total_ns, budget_ns; /* budget_ns 0: none */
    const struct pipeline_report_step *steps;
    uint32_t n_steps;
};

const char *pipeline_state_name(enum pipeline_state s);
/* flow, output, degraded, total_ms as members of the open object; explain: also the steps. */
void pipeline_report_json(struct json_out *j, const struct pipeline_report *r, bool explain);
/* A table for people. */
void pipeline_report_text(struct buf *b, const struct pipeline_report *r);

#endif
