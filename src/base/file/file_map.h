/* file_map.h - a file mapped read-only, with the attributes that identify it.
 *
 * Nothing is copied, so the file must not change. If it is truncated, reading yields zeros instead
 * of SIGBUS (map_guard.h); if it is overwritten, reading yields the new bytes. file_map_changed
 * detects both; results computed from the file must then be discarded. A file that is replaced by
 * rename is another file: the mapping keeps the old one, unchanged.
 *
 * Only regular files are opened (file_open.h).
 *
 * Thread:    immutable after open; any number of readers.
 * Ownership: open maps and keeps the file open, close undoes both (a zeroed one is fine).
 * Failure:   SHOAL_EIO with the system's reason, SHOAL_EFORMAT for an empty file; then *out is
 *            zeroed. */
#ifndef SHOAL_BASE_FILE_FILE_MAP_H
#define SHOAL_BASE_FILE_FILE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct map_guard;

#define FILE_KEY_BYTES 32u
/* Of content that must reach no disk in plain. */
struct file_secret {
    uint8_t key[FILE_KEY_BYTES]; /* encrypts what is made of the content and kept */
    uint64_t source;             /* changes with the file that it was decrypted from */
};

/* Makes parts of a map when they are asked for; one thread at a time. */
struct file_rest {
    int (*fill)(struct file_rest *r, size_t at, size_t n, struct err *e);
    void (*close)(struct file_rest *r);
};

struct file_map {
    const uint8_t *bytes; /* NULL: none */
    size_t n_bytes;
    int fd;
    struct map_guard *guard;
    int64_t mtime_s, mtime_ns; /* time of the last modification */
    bool is_secret;            /* memory that no file has (file_map_secret) */
    bool locked;               /* of that: it cannot be swapped */
    struct file_secret secret; /* of that; its maker sets it */
    struct file_rest *rest;    /* owned; NULL: all bytes are there */
};

SHOAL_MUST_CHECK int file_map_open(struct file_map *out, const char *path, struct err *e);
/* n bytes of memory that looks like a mapped file, for content that must reach no disk: in no core
 * dump, and locked against swapping as far as the limits of the process allow.  The caller writes
 * to *bytes until file_map_filled.  SHOAL_ENOMEM. */
SHOAL_MUST_CHECK int file_map_secret(struct file_map *out, uint8_t **bytes, size_t n,
                                     struct err *e);
void file_map_filled(struct file_map *m);
/* Before bytes of a map with a rest are read; one thread at a time. */
SHOAL_MUST_CHECK int file_map_need(const struct file_map *m, size_t at, size_t n, struct err *e);
/* The same for other memory that is made of it; false: it may be swapped. */
bool file_map_protect(void *bytes, size_t n);
void file_map_close(struct file_map *m);
/* True if the file was truncated or overwritten since it was opened: its size or its time of
 * modification differ, or a read failed.  One fstat.  (The time of the last status change is not
 * compared: removing or replacing the name changes it, and does no harm.) */
bool file_map_changed(const struct file_map *m);
/* Releases the pages of the first n bytes: they stay readable, but do not count as our memory until
 * they are read again. */
void file_map_trim(const struct file_map *m, size_t n);
/* Copies n bytes from offset `at`, which must be inside the file.  Unlike access through `bytes`
 * this maps no pages (the kernel may map 2 MiB around every byte accessed). */
void file_map_read(const struct file_map *m, size_t at, void *out, size_t n);

#endif
