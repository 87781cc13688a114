/* load_mix.h - kinds of requests, and which share of the traffic is of which kind and for which
 * model: "3:chat=reply,classify=intent,ask".
 *
 * Thread:    immutable after parsing.
 * Ownership: plain data.
 * Failure:   SHOAL_EINVAL with the word that is wrong. */
#ifndef SHOAL_LOAD_LOAD_MIX_H
#define SHOAL_LOAD_LOAD_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum load_api { LOAD_OPENAI, LOAD_OLLAMA };
enum load_kind { LOAD_CHAT, LOAD_COMPLETION, LOAD_CLASSIFY, LOAD_ASK, LOAD_KINDS };

#define LOAD_MAX_PARTS 16u

struct load_part {
    enum load_kind kind;
    uint32_t weight;
    char model[128]; /* "": the run's default */
};

struct load_mix {
    struct load_part part[LOAD_MAX_PARTS];
    uint32_t n, total; /* total: of the weights */
};

const char *load_kind_name(enum load_kind k);
/* LOAD_KINDS: there is no such kind. */
enum load_kind load_kind_find(const char *name);
/* The path of a kind of request; NULL: this API has none. */
const char *load_kind_path(enum load_api api, enum load_kind k);
SHOAL_MUST_CHECK int load_mix_parse(struct load_mix *m, const char *text, struct err *e);
/* The part that a random number falls to. */
uint32_t load_mix_pick(const struct load_mix *m, uint64_t random);
/* The part of this kind and model, added with weight 0 if there is none.  -1: there is no room. */
int load_mix_part(struct load_mix *m, enum load_kind kind, const char *model);

#endif
