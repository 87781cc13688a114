/* t5_engine.h - what engines on a T5 model have in common.
 *
 * Thread: any. */
#ifndef SHOAL_ENGINE_NATIVE_T5_ENGINE_H
#define SHOAL_ENGINE_NATIVE_T5_ENGINE_H

#include <limits.h>
#include <stdint.h>

#include "base/err.h"
#include "shoal/shoal.h"

struct model_file;
struct t5;
struct t5_opts;

/* Adds the settings of an engine to those that its kind has set. dir: for the cache's name, which
 * `to` points to. */
SHOAL_MUST_CHECK int t5_engine_opts(struct t5_opts *to, const struct shoal_engine_opts *o,
                                    char dir[PATH_MAX], struct err *e);
/* A cache of keys and values of so many pages for the model, whose bytes the engine gives back
 * (mem_pages_free); SHOAL_ENOMEM: *kv is NULL. */
SHOAL_MUST_CHECK int t5_engine_reserve(struct t5 *t5, size_t n_pages, uint8_t **kv,
                                       size_t *kv_bytes, struct err *e);
/* Of the model; the kind adds its context and its cache of keys and values. */
void t5_engine_info(const struct t5 *t5, const struct model_file *file,
                    struct shoal_engine_info *out);

#endif
