/* memory_plan.h - whether a model fits, and how many pages of key-value cache it gets.
 *
 * Thread:  any.
 * Failure: SHOAL_ELIMIT; the message shows the sum. */
#ifndef SHOAL_ENGINE_MEMORY_PLAN_H
#define SHOAL_ENGINE_MEMORY_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shoal/shoal.h"

struct memory_plan_need { /* bytes */
    size_t weights, scratch, kv_page;
};

/* *n_pages: o->kv_bytes' worth when that is set, else `wanted`, limited to a quarter of the memory
 * limit (o->memory_bytes, or what is available now). */
SHOAL_MUST_CHECK int memory_plan_pages(uint32_t *n_pages, const struct memory_plan_need *need,
                                       size_t wanted, const struct shoal_engine_opts *o,
                                       struct err *e);

#endif
