/* intake_fill.h - fills the intake of a model from a source: resumes, verifies, tries again.
 *
 * A line that breaks is tried again from where it broke, several times in a row if nothing arrives
 * in between. Bytes that do not have their hash are discarded and fetched once more.
 *
 * Thread:    the caller's; blocks.
 * Ownership: nothing is kept.
 * Failure:   that of the last attempt; what arrived stays for the next one. */
#ifndef SHOAL_DEPOT_SOURCE_INTAKE_FILL_H
#define SHOAL_DEPOT_SOURCE_INTAKE_FILL_H

#include "depot/source/model_source.h"

struct model_intake;

/* Opens the intake of a model, waiting for another process that fetches the same. 1: the store has
 * the model now, and there is no intake. */
SHOAL_MUST_CHECK int intake_fill_open(struct model_intake **out, const struct model_source_opts *o,
                                      const uint8_t sha256[SHA256_BYTES], struct err *e);
/* Whether a transfer that failed should be tried again, after a pause: attempt counts the failures
 * in a row, the first of which is told. SHOAL_ECANCELLED: stopped during the pause. */
SHOAL_MUST_CHECK int intake_fill_again(const struct model_source_opts *o, uint32_t attempt,
                                       struct err *e);
/* Takes the manifest over (unless the intake has it) and fetches all files. */
SHOAL_MUST_CHECK int intake_fill(struct model_intake *k, struct model_source *s,
                                 struct model_manifest *m, const struct model_source_opts *o,
                                 struct err *e);

#endif
