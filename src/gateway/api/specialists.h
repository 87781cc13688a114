/* specialists.h - /v1/embeddings, classify, entities, rerank, summarize and score. */
#ifndef SHOAL_GATEWAY_API_SPECIALISTS_H
#define SHOAL_GATEWAY_API_SPECIALISTS_H

#include "gateway/gw.h"

extern const struct field embed_fields[], classify_fields[], entities_fields[], rerank_fields[],
    summarize_fields[], score_fields[];
extern const size_t n_embed_fields, n_classify_fields, n_entities_fields, n_rerank_fields,
    n_summarize_fields, n_score_fields;

void specialist_embeddings(struct call *c);
void specialist_classify(struct call *c);
void specialist_entities(struct call *c);
void specialist_rerank(struct call *c);
void specialist_summarize(struct call *c);
void specialist_score(struct call *c);
void specialist_ollama_embed(struct call *c); /* /api/embed */

#endif
