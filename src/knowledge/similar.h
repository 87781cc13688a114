/* similar.h - semantic cache: reuses answers for paraphrased prompts.
 *
 * Enabled per route. A chat's last message is embedded and compared with those of cached answers
 * with the same route, client, settings and earlier messages; the nearest one that is similar
 * enough and asks the same question (same_ask.h) supplies the answer.
 *
 * Thread:    struct similar: any.  The stage: the owner's.
 * Ownership: create/destroy.
 * Failure:   without vectors or memory a request runs as if there were no cache. */
#ifndef SHOAL_KNOWLEDGE_SIMILAR_H
#define SHOAL_KNOWLEDGE_SIMILAR_H

#include "flow/flow.h"

struct similar;

#define SIMILAR_MAX_ENTRIES 4096u

struct similar_opts {
    const char *model; /* the embedding model */
    size_t max_bytes;  /* limit of prompts, vectors and answers */
    uint64_t ttl_ns;
};

struct similar_counts {
    uint64_t hits, misses;
    uint64_t refused; /* similar enough, but a different question */
    uint32_t n_entries;
};

SHOAL_MUST_CHECK int similar_create(struct similar **out, const struct similar_opts *o,
                                    struct err *e);
void similar_destroy(struct similar *s);
void similar_counts(struct similar *s, struct similar_counts *out);
/* For struct flow. STAGE_SIMILAR: answers from the cache if the request's route allows it. */
struct dispatch *similar_stage(struct similar *s);

#endif
