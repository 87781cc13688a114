/* retrieval.h - finds the passages of a collection that best match a query.
 *
 * The query is embedded by the model that embedded the passages; passages are found by meaning and
 * by words; a reranker may then read query and passage together.
 *
 * Thread:    the owner's; the search is the pool's.
 * Ownership: the struct is the caller's and must live until `done` was called, as must its texts.
 *            Hits lie in its arena, which retrieval_fini frees.
 * Failure:   typed, to `done`. */
#ifndef SHOAL_KNOWLEDGE_RETRIEVAL_H
#define SHOAL_KNOWLEDGE_RETRIEVAL_H

#include "knowledge/embedding.h"
#include "knowledge/offload.h"
#include "store/collections.h"

enum retrieval_mode { RETRIEVAL_BOTH, RETRIEVAL_MEANING, RETRIEVAL_WORDS };

struct retrieval {
    struct flow_owner *owner;
    struct embedding_who who;
    struct collections *collections;
    const char *collection;
    const char *query;
    uint32_t n_results;
    enum retrieval_mode mode;
    const char *reranker; /* a model; NULL: none */
    /* Runs after the search, on its thread, with the collection still held; or NULL. */
    int (*also)(struct retrieval *x, struct collection *c, struct err *e);
    void (*done)(struct retrieval *x, const struct failure *f);
    /* results */
    struct arena arena;
    struct collection_hit *hits; /* after reranking: score is the reranker's */
    uint32_t n_hits;
    uint64_t n_tokens;
    struct collection_info info;
    /* private */
    struct collection *held;
    struct str text;
    struct embedding embedding;
    struct offload offload;
    struct sink sink; /* of the reranker */
    double *scores;
    int rc;
    struct err error;
    bool cancelled, failed;
    struct failure why;
};

/* "both", "meaning", "words"; false: none of these. */
bool retrieval_mode_find(const char *name, enum retrieval_mode *out);
/* All members are set except private ones and results, which are zero. */
void retrieval_run(struct retrieval *x);
void retrieval_cancel(struct retrieval *x); /* done is still called */
void retrieval_fini(struct retrieval *x);

#endif
