/* lora_api.h - LoRA adapters by number, as llama.cpp's server has them, and loading and unloading
 * them at run time, as vLLM's has it.
 *
 * An adapter is a model of the registry, BASE:NAME; its number is its place among those of its
 * base, in the order in which they were added.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_LLAMA_LORA_API_H
#define SHOAL_GATEWAY_API_LLAMA_LORA_API_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/call/fields.h"

struct call;
struct request;

struct lora_choice {
    bool given;
    int64_t id; /* below 0: none */
    float scale;
};

/* [{"id": 0, "scale": 0.5}, ...]; those that are not listed, or with a scale of 0, are not used.
 * list NULL: not given. */
SHOAL_MUST_CHECK int lora_api_read(struct lora_choice *out, const cJSON *list,
                                   struct fields_error *e);
/* The request's model becomes the adapter of its base; if none was given, the one that POST
 * /lora-adapters has chosen.  false: the call was answered. */
bool lora_api_choose(struct call *c, struct request *r, const struct lora_choice *x);

extern const struct field lora_api_load_fields[], lora_api_unload_fields[];
extern const size_t lora_api_n_load_fields, lora_api_n_unload_fields;

/* Handlers. */
void lora_api_list(struct call *c);
void lora_api_set(struct call *c);
void lora_api_load(struct call *c);
void lora_api_unload(struct call *c);

#endif
