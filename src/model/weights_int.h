/* weights_int.h - the file that keeps tiled weights between starts.  Private to src/model.
 *
 * The file holds a header, the factors of the matrices, a 64-bit hash of each MiB of the data, and
 * the data. It is written under another name, hashed, synced to the disk and renamed; then the
 * folder is synced. So after a crash there is the old file, the new one, or none.
 *
 * A file is verified (every block hashed, by all threads of the lane, at about the speed of memory)
 * when it is opened, unless exactly this file was verified before: its identity (device, inode,
 * size, times of modification and of status change) is noted in a small file beside it.  No program
 * can write to a file and keep that identity.  The note is only trusted, and only written, when the
 * file is older than the resolution of such times.  What this does not find: a disk that returns
 * other bytes than were written and does not report it.
 *
 * A file that fails is removed and made anew; weights.damage says why.
 *
 * Tiles of an encrypted model are kept encrypted by a key that follows from the model's
 * (sealed_put), the whole file as above inside; they are decrypted into memory, which verifies
 * them.  A file beside it has the model's path. */
#ifndef SHOAL_MODEL_WEIGHTS_INT_H
#define SHOAL_MODEL_WEIGHTS_INT_H

#include <limits.h>

#include "model/weights.h"

struct weights_cache {
    bool usable; /* a folder is set, and the model has a path */
    uint64_t key;
    const char *dir;
    const struct file_secret *secret; /* of an encrypted model; else NULL */
    char source[PATH_MAX], path[PATH_MAX + 64], tmp[PATH_MAX + 96], note[PATH_MAX + 96];
};

/* secret: of the model, or NULL. */
void weights_cache_init(struct weights_cache *c, const struct weights *w, const char *source,
                        const char *cache_dir, const struct file_secret *secret);
/* Maps or decrypts the file if it exists, belongs to this model, and is complete. */
bool weights_cache_open(const struct weights_cache *c, struct weights *w, struct crew_lane *lane,
                        uint8_t **data);
/* A new file to write to, or memory that becomes one; NULL: not possible, and the caller uses
 * memory. */
uint8_t *weights_cache_create(const struct weights_cache *c, struct weights *w);
/* Completes the new file, or removes it.  The mapping stays usable either way. */
void weights_cache_finish(const struct weights_cache *c, struct weights *w, struct crew_lane *lane,
                          bool whole);

#endif
