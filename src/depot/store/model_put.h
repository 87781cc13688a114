/* model_put.h - copies a model of this machine into the store.
 *
 * Thread:    any; reads and writes the disk.
 * Failure:   as model_intake.h, and SHOAL_EFORMAT when the model is not the one that is wanted. */
#ifndef SHOAL_DEPOT_STORE_MODEL_PUT_H
#define SHOAL_DEPOT_STORE_MODEL_PUT_H

#include "depot/store/model_store.h"

/* Returns its hash. want: refuse a model with another one; NULL: any. A model that is already in
 * the store is not copied again. stop: gives up when it becomes true. */
SHOAL_MUST_CHECK int model_put(struct model_store *s, const char *path, const uint8_t *want,
                               uint8_t sha256[SHA256_BYTES], const _Atomic bool *stop,
                               struct err *e);

#endif
