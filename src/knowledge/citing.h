/* citing.h - a question answered from a collection: passages are found, a model is given them, and
 * its answer is checked against them.
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
    struct retrieval retrieval; /* set as retrieval.h says, without done */
    const char *model;          /* that answers; NULL: the default one */
    uint32_t max_tokens;
    float temperature;
    uint64_t seed;
    size_t max_passage_bytes; /* of all passages in the prompt; 0: 6000 */
    void (*done)(struct citing *x, const struct failure *f);
    /* results */
    struct buf answer;
    uint32_t n_passages; /* the first of retrieval.hits, which the model was given */
    struct support support;
    int64_t cited[CITING_MAX_PASSAGES]; /* ids of passages that the answer names */
    uint32_t n_cited;
    uint32_t n_wrong; /* marks in the answer that are no passage it was given */
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

/* What is not private and not a result is set, the rest is zero. */
void citing_run(struct citing *x);
void citing_cancel(struct citing *x); /* done is still called */
void citing_fini(struct citing *x);

/* The answer, its citations and the verdict as members of an object. */
struct json_out;
void citing_json(struct json_out *j, const struct citing *x);

#endif
