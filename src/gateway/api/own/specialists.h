/* specialists.h - /v1/embeddings, classify, entities, rerank, summarize and score, and their
 * equivalents of Ollama, llama.cpp's server and Text Embeddings Inference: bodies to requests,
 * results to answers.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_OWN_SPECIALISTS_H
#define SHOAL_GATEWAY_API_OWN_SPECIALISTS_H

#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;

extern const struct field specialists_embed_fields[], specialists_classify_fields[],
    specialists_entities_fields[], specialists_rerank_fields[], specialists_summarize_fields[],
    specialists_score_fields[], specialists_ollama_embed_fields[],
    specialists_ollama_embeddings_fields[], specialists_tei_embed_fields[],
    specialists_tei_predict_fields[], specialists_tei_similarity_fields[],
    specialists_llamacpp_embedding_fields[];
extern const size_t specialists_n_embed_fields, specialists_n_classify_fields,
    specialists_n_entities_fields, specialists_n_rerank_fields, specialists_n_summarize_fields,
    specialists_n_score_fields, specialists_n_ollama_embed_fields,
    specialists_n_ollama_embeddings_fields, specialists_n_tei_embed_fields,
    specialists_n_tei_predict_fields, specialists_n_tei_similarity_fields,
    specialists_n_llamacpp_embedding_fields;

#define SPECIALIST_MAX_VALUES (1u << 20) /* of a row */

enum specialist_body {
    SPECIALIST_EMBED,
    SPECIALIST_OLLAMA_EMBED,
    SPECIALIST_CLASSIFY,
    SPECIALIST_ENTITIES,
    SPECIALIST_RERANK,
    SPECIALIST_SUMMARIZE,
    SPECIALIST_SCORE,
    SPECIALIST_OLLAMA_EMBEDDINGS,
    SPECIALIST_LLAMACPP_EMBEDDING,
    SPECIALIST_TEI_EMBED,
    SPECIALIST_TEI_PREDICT,
    SPECIALIST_TEI_SIMILARITY,
    SPECIALIST_N_BODIES
};

struct specialist_shape { /* the format of the answer */
    enum specialist_body body;
    uint32_t top; /* number of labels or documents to return; 0: all */
    bool base64, with_documents;
    bool tei;    /* RERANK: in the format of Text Embeddings Inference */
    bool single; /* the input was not a list */
};

/* A body into an empty request.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int specialists_read(struct request *r, struct specialist_shape *shape,
                                      enum specialist_body body, const cJSON *json, bool lenient,
                                      struct fields_error *e);

/* Handlers. */
void specialists_embeddings(struct call *c);
void specialists_classify(struct call *c);
void specialists_entities(struct call *c);
void specialists_rerank(struct call *c);
void specialists_summarize(struct call *c);
void specialists_score(struct call *c);
void specialists_ollama_embed(struct call *c);      /* /api/embed */
void specialists_ollama_embeddings(struct call *c); /* /api/embeddings */
void specialists_llamacpp_embedding(struct call *c);
void specialists_tei_embed(struct call *c);
void specialists_tei_predict(struct call *c);
void specialists_tei_similarity(struct call *c);

#endif
