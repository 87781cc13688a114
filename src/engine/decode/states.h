/* states.h - checkpoints of the recurrent states of sequences (decoder.h), by the pages they belong
 * to.
 *
 * A model with recurrent blocks cannot go on from pages alone: it also needs the state that it had
 * at the end of the last one.  A checkpoint is that state, kept by the number of the page
 * (kv_pages.h), so it is found by the same tokens and in the same scope as the page, and forgotten
 * with it.  There is a fixed number; the oldest is replaced first, and before that any that its
 * owner has called cold.
 *
 * Thread:    belongs to the engine's thread; no locks inside.
 * Ownership: everything is reserved at create; nothing is allocated later.
 * Failure:   states_take returns STATES_NONE when all are in use. */
#ifndef SHOAL_ENGINE_DECODE_STATES_H
#define SHOAL_ENGINE_DECODE_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define STATES_NONE UINT32_MAX

struct states;

/* Checkpoints first .. first + n - 1 among the states of the model, for pages 0 .. n_pages - 1. */
SHOAL_MUST_CHECK int states_create(struct states **out, uint32_t first, uint32_t n,
                                   uint32_t n_pages, struct err *e);
void states_destroy(struct states *s);
/* A state to write a checkpoint to, until states_keep or states_give_back. */
uint32_t states_take(struct states *s);
void states_give_back(struct states *s, uint32_t state);
/* What was taken is written: from now on it is found by its page.  A page that has one keeps it. */
void states_keep(struct states *s, uint32_t state, uint32_t page);
/* The checkpoint at the end of a page, or STATES_NONE. */
uint32_t states_find(const struct states *s, uint32_t page);
/* It is read until states_release, and not replaced meanwhile; it counts as used. */
void states_hold(struct states *s, uint32_t state);
void states_release(struct states *s, uint32_t state);
/* The page's checkpoint, if it has one, is replaced before others. */
void states_cool(struct states *s, uint32_t page);
/* The page gets other content. */
void states_forget(struct states *s, uint32_t page);

#endif
