/* ollama.h - the part of Ollama's interface that its clients need. */
#ifndef SHOAL_GATEWAY_API_OLLAMA_H
#define SHOAL_GATEWAY_API_OLLAMA_H

#include "gateway/gw.h"

extern const struct field ollama_chat_fields[], ollama_generate_fields[];
extern const size_t ollama_n_chat_fields, ollama_n_generate_fields;

void ollama_chat(struct call *c);
void ollama_generate(struct call *c);
void ollama_tags(struct call *c);
void ollama_show(struct call *c);
void ollama_ps(struct call *c);
void ollama_version(struct call *c);

#endif
