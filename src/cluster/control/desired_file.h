/* desired_file.h - the last known desired state in a file, so that a member can start and serve
 * while NATS is down.
 *
 * The file is written under a new name, synced and renamed: after a crash the file holds either the
 * old or the new state, never a part of one. Its checksum covers everything.
 *
 * Layout: "SHOALDS1", revision (8 bytes, little endian), length (8), the encoded state, SHA-256 of
 * all before it.
 *
 * Thread:    any that may block; one writer for a path.
 * Ownership: read gives a state.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT (damaged), SHOAL_ENOTFOUND (no file), SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_CONTROL_DESIRED_FILE_H
#define SHOAL_CLUSTER_CONTROL_DESIRED_FILE_H

#include <stddef.h>

#include "base/err.h"

struct desired;

SHOAL_MUST_CHECK int desired_file_write(const char *path, const struct desired *d, struct err *e);
SHOAL_MUST_CHECK int desired_file_read(struct desired **out, const char *path, struct err *e);
/* The content of such a file. */
SHOAL_MUST_CHECK int desired_file_parse(struct desired **out, const void *bytes, size_t n,
                                        struct err *e);

#endif
