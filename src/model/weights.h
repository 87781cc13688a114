/* weights.h - the matrices of a model as the tiles of a kernel set, kept in a cache file.
 *
 * The first load tiles every matrix into a file in the cache folder and maps it; later loads only
 * map it. Without a usable folder (none given, disk full, not writable) the tiled weights live in
 * anonymous memory: loading is slower, the rest is the same. Adding a file to the cache removes
 * files whose model no longer exists. The file is verified by its hashes, and a damaged one is
 * rebuilt (weights_int.h).  That of an encrypted model is encrypted.
 *
 * Thread:    built by one thread; matrices are immutable afterwards.
 * Ownership: borrows the model file's tensors; weights_fini unmaps. */
#ifndef SHOAL_MODEL_WEIGHTS_H
#define SHOAL_MODEL_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/crew.h"
#include "base/err.h"
#include "kernels/kern.h"
#include "format/model_file.h"

/* Rounding of the values when they are tiled. */
enum weights_round {
    WEIGHTS_AS_STORED,
    WEIGHTS_BLOCKS, /* floats become KERN_Q8 if their rows are whole blocks */
    WEIGHTS_WIDE,   /* everything becomes KERN_Q8W if row lengths are multiples of 64 */
};

/* The matrix that a matrix has its rows of: what depends on all values of one is then the same for
 * its parts.  n_rows 0: itself. */
struct weights_of {
    const uint8_t *data;
    uint32_t n_rows;
    float scale; /* of weights_scale; 0: none */
};

struct weights {
    struct kern_layout layout;
    enum weights_round round; /* set before weights_add */
    uint32_t part;            /* of a model: parts have cache files of their own; 0: the whole */
    struct kern_mat *mats;
    const struct model_file_tensor **tensors;
    struct model_file_tensor **parts; /* tensors that are rows of another; owned */
    uint32_t n_parts;
    size_t *offsets;       /* of each matrix within the data */
    struct weights_of *of; /* of each matrix */
    uint32_t n, cap;
    size_t data_bytes;
    uint8_t *map;
    size_t map_bytes;
    bool from_cache;         /* the cache file already existed */
    bool in_file;            /* the data is a mapped file, not anonymous memory */
    bool unlocked;           /* tiles of a secret file that may be swapped */
    const char *damage;      /* NULL, or why the cache file was rebuilt */
    struct map_guard *guard; /* this and the rest: of that file */
    int fd;
    int64_t mtime_s, mtime_ns;
};

struct map_guard;

void weights_init(struct weights *w, const struct kern_layout *layout);
void weights_fini(struct weights *w);
/* Registers one matrix (rows = product of the outer dims); *index is its position in mats. */
SHOAL_MUST_CHECK int weights_add(struct weights *w, const struct model_file_tensor *t,
                                 uint32_t *index, struct err *e);
/* The same for n_rows rows of t from row0 on, which must be a PLAIN matrix that has them. */
SHOAL_MUST_CHECK int weights_add_rows(struct weights *w, const struct model_file_tensor *t,
                                      uint32_t row0, uint32_t n_rows, uint32_t *index,
                                      struct err *e);
/* The same for a part of the matrix that begins at row `first` of t and has n_all rows: n_rows of
 * them from its row row0 on. */
SHOAL_MUST_CHECK int weights_add_part(struct weights *w, const struct model_file_tensor *t,
                                      uint32_t first, uint32_t n_all, uint32_t row0,
                                      uint32_t n_rows, uint32_t *index, struct err *e);
/* Multiplies the products of a matrix, once it is loaded; a positive number. */
void weights_scale(struct weights *w, uint32_t index, float scale);
/* Maps or tiles all registered matrices.  source: the model file, for the cache's key. */
SHOAL_MUST_CHECK int weights_load(struct weights *w, const char *source, const char *cache_dir,
                                  struct crew_lane *lane, bool (*progress)(void *ctx, double part),
                                  void *progress_ctx, struct err *e);
/* True if the mapped cache file was truncated or overwritten since it was opened. */
bool weights_changed(const struct weights *w);

#endif
