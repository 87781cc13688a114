/* cluster_findings.h - what is wrong with a shoal, from what a gateway knows of it (/v1/cluster).
 *
 * Thread:    the main thread.
 * Ownership: an array of the caller. */
#ifndef SHOAL_CMD_CLUSTER_CLUSTER_FINDINGS_H
#define SHOAL_CMD_CLUSTER_CLUSTER_FINDINGS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLUSTER_FINDINGS_MAX 512u

struct cluster_finding {
    bool error;     /* something does not work; otherwise: it soon may not */
    char where[96]; /* a member, or "" for the shoal */
    char what[320], fix[320];
};

/* now_s: the time, since 1970.  The number of findings, the errors first. */
size_t cluster_findings(struct cluster_finding out[CLUSTER_FINDINGS_MAX], const cJSON *cluster,
                        int64_t now_s);

#endif
