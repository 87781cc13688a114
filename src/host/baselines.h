/* baselines.h - the usual confidences of models without a calibration, kept over restarts: a small
 * file for each in the cache folder.
 *
 * Without them the first texts after every restart would become what is usual, also when they are
 * the change that should be noticed. A model whose file has changed begins anew.
 *
 * Thread:  any that may block.
 * Failure: a file that is missing or damaged counts as none. */
#ifndef SHOAL_HOST_BASELINES_H
#define SHOAL_HOST_BASELINES_H

#include "base/err.h"
#include "host/confidence_watch.h"

/* Identifies a model: its name and the file that it is opened from, as it is now. */
uint64_t baselines_key(const char *name, const char *path);
/* Before the watch is shared. false: none is kept. */
bool baselines_restore(struct confidence_watch *w, const char *dir, uint64_t key);
SHOAL_MUST_CHECK int baselines_save(const char *dir, uint64_t key,
                                    const double shares[CONFIDENCE_BINS], struct err *e);

#endif
