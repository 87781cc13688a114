/* model_suggest.h - whether a model that is not here yet would run on this machine, and how fast.
 *
 * Decoding reads all weights for each token, so the speed is the memory's, less what the rest of a
 * token costs (docs/BENCH.md). Nothing but the size of the files is known before a pull: both
 * figures are estimates.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_DEPOT_MODEL_SUGGEST_H
#define SHOAL_DEPOT_MODEL_SUGGEST_H

#include <stdbool.h>
#include <stdint.h>

struct recipe;

struct model_room {          /* of a machine */
    uint64_t memory_bytes;   /* for all models together; 0: not known */
    uint64_t disk_bytes;     /* free where the store is; 0: not known */
    double bytes_per_second; /* read bandwidth of its memory; 0: not known */
};

enum model_misfit { MODEL_FITS, MODEL_LACKS_MEMORY, MODEL_LACKS_DISK };

struct model_suggestion {
    uint64_t bytes;          /* of its files */
    uint64_t download_bytes; /* of the archives that they come in */
    uint64_t memory_bytes;   /* about what it needs when it is loaded */
    enum model_misfit misfit;
    double tokens_per_second; /* 0: it writes no text, or the bandwidth is not known */
};

/* present: its files are here, so that no room on the disk is needed. */
struct model_suggestion model_suggest(const struct recipe *r, const struct model_room *room,
                                      bool present);
/* "needs about 1.2 GiB of memory, and there are 0.5 GiB"; "" if it fits. */
void model_suggest_reason(char out[112], const struct model_suggestion *s,
                          const struct model_room *room);

#endif
