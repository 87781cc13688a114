/* ingest.h - adds a document to a collection: reads it, splits it into passages, embeds them, and
 * stores everything in one transaction.
 *
 * Thread:    the owner's; files, parsing and tokenizing are the pool's.
 * Ownership: the struct is the caller's and must live until `done` was called, as must the bytes
 *            and the texts that it points to.
 * Failure:   typed, to `done`; the collection is then unchanged. */
#ifndef SHOAL_KNOWLEDGE_INGEST_H
#define SHOAL_KNOWLEDGE_INGEST_H

#include "flow/acquire.h"
#include "knowledge/embedding.h"
#include "knowledge/offload.h"
#include "store/chunk.h"
#include "store/collections.h"

struct ingest {
    struct flow_owner *owner;
    struct embedding_who who;
    struct collections *collections;
    const char *collection;
    const char *name;  /* of the document */
    const char *title; /* NULL or "": the document's own */
    enum doc_format format;
    const char *bytes;
    size_t n_bytes;
    uint64_t max_chunks; /* of the collection; 0: no limit */
    void (*done)(struct ingest *x, const struct failure *f);
    /* Passages embedded so far, of all; or NULL. */
    void (*progress)(struct ingest *x, uint32_t n, uint32_t all);
    /* results */
    bool unchanged; /* the same bytes already exist under this name: nothing was done */
    uint32_t n_chunks;
    uint64_t n_tokens;
    /* private */
    struct collection *held;
    struct collection_info info;
    uint64_t hash;
    struct doc doc;
    struct chunk *chunks;
    struct str *texts;
    struct arena arena; /* of the texts */
    struct acquire acquire;
    struct registry_model *model; /* its tokenizer counts tokens; NULL: they are estimated */
    struct embedding embedding;
    struct offload offload;
    int rc;
    struct err error;
    bool cancelled;
};

/* All members are set except private ones and results, which are zero. */
void ingest_run(struct ingest *x);
/* done is still called. */
void ingest_cancel(struct ingest *x);

#endif
