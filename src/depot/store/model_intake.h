/* model_intake.h - an incoming model of the store.
 *
 * First its manifest, then its files one after the other, each as a .part file that grows from the
 * front. Received bytes survive the process: the next intake of the same model resumes from them;
 * after a machine crash, from the bytes known to be on disk. A file that does not match its hash is
 * discarded. commit moves the model into the store when every file was verified.
 *
 * Thread:    belongs to one thread; reads and writes the disk.
 * Ownership: open gives, close takes back (NULL is fine) and keeps what arrived; discard removes
 *            it.
 * Failure:   SHOAL_EBUSY (another process fetches the same model), SHOAL_ELIMIT (no room: what
 *            arrived of this file was removed, so that the disk is not left full), SHOAL_EFORMAT
 *            (wrong bytes), SHOAL_EIO, SHOAL_ENOMEM, SHOAL_ECANCELLED. */
#ifndef SHOAL_DEPOT_STORE_MODEL_INTAKE_H
#define SHOAL_DEPOT_STORE_MODEL_INTAKE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct model_intake;
struct model_manifest;
struct model_store;

/* stop: gives up with SHOAL_ECANCELLED when it becomes true. */
SHOAL_MUST_CHECK int model_intake_open(struct model_intake **out, struct model_store *s,
                                       const uint8_t sha256[SHA256_BYTES], const _Atomic bool *stop,
                                       struct err *e);
void model_intake_close(struct model_intake *k);
void model_intake_discard(struct model_intake *k); /* closes it too */

/* NULL: not known yet. */
const struct model_manifest *model_intake_manifest(const struct model_intake *k);
/* Takes the manifest over (also if it fails) and makes room for the files. */
SHOAL_MUST_CHECK int model_intake_set_manifest(struct model_intake *k, struct model_manifest *m,
                                               struct err *e);
/* Discards everything received, including the manifest. */
void model_intake_restart(struct model_intake *k);

/* The next incomplete file, and how many bytes of it exist; 0: all are complete. Opens its part. */
SHOAL_MUST_CHECK int model_intake_next(struct model_intake *k, uint32_t *file, uint64_t *offset,
                                       struct err *e);
/* Appends to that file. from: the sender, for model_intake_mixed. SHOAL_ECHANGED: more bytes than
 * in the manifest. */
SHOAL_MUST_CHECK int model_intake_write(struct model_intake *k, const char *from, const void *p,
                                        size_t n, struct err *e);
/* Verifies the complete file. SHOAL_ECHANGED: there are too few bytes. SHOAL_EFORMAT: wrong bytes;
 * the file is then fetched again from the start. */
SHOAL_MUST_CHECK int model_intake_finish(struct model_intake *k, struct err *e);
/* The bytes of the last open file came from several senders, so that none can be blamed.
 */
bool model_intake_mixed(const struct model_intake *k);
/* Bytes of the whole model received so far. */
uint64_t model_intake_bytes(const struct model_intake *k);

/* Path of a complete file, while the intake is open. */
SHOAL_MUST_CHECK int model_intake_file(const struct model_intake *k, uint32_t i,
                                       char path[PATH_MAX], struct err *e);

/* All files are complete: moves the model into the store, at path. */
SHOAL_MUST_CHECK int model_intake_commit(struct model_intake *k, char path[PATH_MAX],
                                         struct err *e);

#endif
