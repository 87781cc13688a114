/* citing.h - a question answered from a collection: by the sentence that answers it (quoting.h), or
 * in the words of a model that is given the passages, if they support what it writes.
 *
 * Without a sentence that answers, the model is not asked: it would invent something.
 *
 * Thread:    the owner's.
 * Ownership: the struct is the caller's and must live until `done` was called, as must its texts;
 *            citing_fini frees the results.
 * Failure:   typed, to `done`. */
#ifndef SHOAL_KNOWLEDGE_CITING_H
#define SHOAL_KNOWLEDGE_CITING_H

#include "base/buf.h"
#include "knowledge/quoting.h"
#include "knowledge/support.h"

#define CITING_MAX_PASSAGES 20u
#define CITING_N_CLOSEST 3u /* sentences that are shown if none answers */

struct citing {
    struct quoting quoting; /* set as described in quoting.h, without done */
    uint32_t n_given;       /* number of passages for the model; 0: 5 */
    bool write;             /* let a model answer */
    bool explain;           /* citing_json has all sentences with their features */
    const char *model;      /* which; NULL: the default */
    uint32_t max_tokens;
    float temperature;
    uint64_t seed;
    size_t max_passage_bytes; /* limit of all passages in the prompt; 0: 6000 */
    void (*done)(struct citing *x, const struct failure *f);
    /* results, beside those of quoting */
    bool written;        /* the model's answer is supported, so it is the answer */
    struct buf answer;   /* what the model wrote; empty: it was not asked */
    uint32_t n_passages; /* the first of the hits, given to the model */
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
    uint32_t most_given;
    bool failed, cancelled;
    struct failure why;
};

/* All members are set except private ones and results, which are zero. */
void citing_run(struct citing *x);
void citing_cancel(struct citing *x); /* done is still called */
void citing_fini(struct citing *x);

/* The answer; "" if there is none. */
const char *citing_answer(struct citing *x);
/* The answer, its citations and the verdict as members of an object. */
struct json_out;
void citing_json(struct json_out *j, struct citing *x);

#endif
