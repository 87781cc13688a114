/* citing.h - a question answered from a collection: retrieves passages, passes them to a model, and
 * checks the answer against them.
 *
 * Thread:    the owner's.
 * Ownership: the struct is the caller's and must live until `done` was called, as must its texts;
 *            citing_fini frees the results.
 * Failure:   typed, to `done`. */
#ifndef SHOAL_KNOWLEDGE_CITING_H
#define SHOAL_KNOWLEDGE_CITING_H

#include "base/buf.h"
#include "knowledge/retrieval.h"
#include "knowledge/support.h"

#define CITING_MAX_PASSAGES 20u

struct citing {
    struct retrieval retrieval; /* set as described in retrieval.h, without done */
    const char *model;          /* the answering model; NULL: the default */
    uint32_t max_tokens;
    float temperature;
    uint64_t seed;
    size_t max_passage_bytes; /* limit of all passages in the prompt; 0: 6000 */
    void (*done)(struct citing *x, const struct failure *f);
    /* results */
    struct buf answer;
    uint32_t n_passages; /* the first of retrieval.hits, given to the model */
    struct support support;
    int64_t cited[CITING_MAX_PASSAGES]; /* ids of passages cited in the answer */
    uint32_t n_cited;
    uint32_t n_wrong; /* marks in the answer that refer to no given passage */
    char model_name[128];
    bool cut; /* the answer was longer than max_tokens */
    uint32_t prompt_tokens, generated_tokens;
    /* private */
    struct sink sink;
    struct embedding embedding;
    struct str *texts;
    bool failed, cancelled;
    struct failure why;
};

/* All members are set except private ones and results, which are zero. */
void citing_run(struct citing *x);
void citing_cancel(struct citing *x); /* done is still called */
void citing_fini(struct citing *x);

/* The answer, its citations and the verdict as members of an object. */
struct json_out;
void citing_json(struct json_out *j, const struct citing *x);

#endif
