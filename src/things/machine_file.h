/* machine_file.h - the learned behaviour of a machine, from a recording: one profile for each
 * channel, and how the channels relate.
 *
 * `shoal anomaly fit` writes it as JSON; `shoal anomaly run` reads it.
 *
 * Thread:    immutable once made; any.
 * Ownership: fit and parse give the struct to the caller, destroy takes it back (NULL is fine).
 * Failure:   SHOAL_EFORMAT names the member, SHOAL_EINVAL (too few rows), SHOAL_ELIMIT,
 *            SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_THINGS_MACHINE_FILE_H
#define SHOAL_THINGS_MACHINE_FILE_H

#include <stddef.h>

#include "base/err.h"
#include "things/channel.h"

#define MACHINE_FILE_MIN_ROWS 32u
#define MACHINE_FILE_MAX_CHANNELS 1024u

struct buf;
struct joint;

struct machine_file {
    uint32_t n; /* channels */
    char **names;
    struct profile *profiles;
    struct joint *joint; /* NULL: one channel, or too many */
};

struct machine_file_rows {
    const char *const *names; /* [n] */
    uint32_t n;
    const double *values; /* [n_rows][n]; NaN: missing */
    const int64_t *times; /* [n_rows] in milliseconds; NULL: unknown */
    size_t n_rows;
    double interval_ms; /* between rows */
};

SHOAL_MUST_CHECK int machine_file_fit(struct machine_file **out, const struct machine_file_rows *r,
                                      struct err *e);
void machine_file_destroy(struct machine_file *m);
void machine_file_write(const struct machine_file *m, struct buf *out);
SHOAL_MUST_CHECK int machine_file_parse(struct machine_file **out, const char *json, size_t n,
                                        struct err *e);
SHOAL_MUST_CHECK int machine_file_open(struct machine_file **out, const char *path, struct err *e);
/* Channel of that name, or UINT32_MAX. */
uint32_t machine_file_channel(const struct machine_file *m, const char *name);

#endif
