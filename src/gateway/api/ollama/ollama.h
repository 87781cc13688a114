/* ollama.h - the part of Ollama's interface that its clients need: bodies to requests, events to
 * answers, lists of models.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_OLLAMA_H
#define SHOAL_GATEWAY_API_OLLAMA_H

#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;

extern const struct field ollama_chat_fields[], ollama_generate_fields[];
extern const size_t ollama_n_chat_fields, ollama_n_generate_fields;

struct ollama_shape { /* the format of the answer */
    bool chat, stream;
    bool empty;         /* nothing to answer: only load or unload the model */
    bool has_keep;      /* the client set how long the model stays loaded */
    uint64_t keep_ns;   /* 0: not at all, UINT64_MAX: always */
    bool raw, logprobs; /* raw: the answer has no context */
};

/* A body of /api/chat or /api/generate into an empty request.  defaults: options of the model, or
 * NULL.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int ollama_read(struct request *r, struct ollama_shape *shape, const cJSON *body,
                                 const cJSON *defaults, bool chat, bool lenient,
                                 struct fields_error *e);
/* Whether options can be read: every known one has its type. */
SHOAL_MUST_CHECK int ollama_check_options(const cJSON *options, struct fields_error *e);
/* "5m", "1h30m", "300ms", or a number of seconds; below 0: always (UINT64_MAX).  False: neither. */
bool ollama_read_duration(const cJSON *v, uint64_t *ns);

/* Handlers. */
void ollama_chat(struct call *c);
void ollama_generate(struct call *c);
void ollama_tags(struct call *c);
void ollama_show(struct call *c);
void ollama_ps(struct call *c);
void ollama_version(struct call *c);
void ollama_status(struct call *c);
void ollama_me(struct call *c);
void ollama_signout(struct call *c);

#endif
