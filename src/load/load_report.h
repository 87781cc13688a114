/* load_report.h - what a run found, for people (text), scripts (JSON) and browsers (HTML with SVG).
 *
 * Thread:    pure functions over a complete run.
 * Failure:   sticky in the buffer. */
#ifndef SHOAL_LOAD_LOAD_REPORT_H
#define SHOAL_LOAD_LOAD_REPORT_H

#include "base/buf.h"
#include "load/load_mix.h"
#include "load/load_stats.h"

#define LOAD_MAX_STEPS 24u

struct load_step { /* of a search for the knee */
    double rate;
    bool held;
    struct load_summary summary;
};

struct load_report {
    const char *url, *api, *pattern; /* pattern: "poisson", "constant", "burst", "trace" */
    const char *model;
    double rate;      /* asked for, per second; 0: a trace */
    uint64_t skip_ns; /* warm-up */
    const struct load_mix *mix;
    const struct load_slo *slo;
    const struct load_log *log; /* of the only run, or of the last step that held */
    struct load_summary all, part[LOAD_MAX_PARTS];
    struct load_step step[LOAD_MAX_STEPS]; /* by time */
    uint32_t n_steps;                      /* 0: no search */
    double capacity;                       /* the highest rate that held; 0: none did */
    const char *held_means;                /* of a search: when a rate counts as held */
    bool interrupted;
};

void load_report_text(struct buf *b, const struct load_report *r);
void load_report_json(struct buf *b, const struct load_report *r);
void load_report_html(struct buf *b, const struct load_report *r);

#endif
