/* ask_apart.h - isolated models of an ask: every inference and every reply becomes a request, which
 * flow_owner.apart sends to the model's process. If the process dies, the request only pauses.
 *
 * Thread:    the owner's; calls of ask_away may come from any thread.
 * Ownership: create gives, put takes back (NULL is fine), after ask_free.  The request and the
 *            names outlive it.
 * Failure:   every failed request fails its part of the ask; ask_apart_failure has the first
 *            reason. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_APART_H
#define SHOAL_APPS_HOME_ASK_ASK_APART_H

#include "flow/flow.h"
#include "apps/home/ask/ask.h"

struct ask_apart;

/* The models by enum ask_model.  NULL: out of memory. */
struct ask_apart *ask_apart_create(struct flow_owner *o, const struct request *r,
                                   const char *const models[4]);
void ask_apart_put(struct ask_apart *p);
struct ask_away *ask_apart_away(struct ask_apart *p);

/* Requests the encoder's configuration; done is called when it has arrived, or failed. */
void ask_apart_configure(struct ask_apart *p, void (*done)(void *ctx), void *ctx);
/* After that; NULL: none. */
const char *ask_apart_config(const struct ask_apart *p, size_t *n);

/* A word that the encoder's tokenizer is to be asked about; for ask_doubtful_words. */
void ask_apart_doubt(void *apart, const char *word);
/* Looks up all of them; then calls done, at once if there are none. If a request fails, its words
 * count as common: then nothing is changed. */
void ask_apart_learn(struct ask_apart *p, void (*done)(void *ctx), void *ctx);
/* For ask_opts. */
bool ask_apart_is_common(void *apart, const char *word);

/* The first failure of a request; NULL: none. */
const struct failure *ask_apart_failure(const struct ask_apart *p);

#endif
