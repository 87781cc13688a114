/* model_suggest.c - see model_suggest.h. */
#include "depot/model_suggest.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes_text.h"
#include "depot/source/recipe.h"

/* Key-value cache and scratch of a usual context. */
#define BESIDE_WEIGHTS_BYTES ((uint64_t)96 << 20)
/* Share of the bandwidth that decoding reaches: the median of the decoders in docs/BENCH.md. */
#define DECODE_SHARE 0.8

struct model_suggestion model_suggest(const struct recipe *r, const struct model_room *room,
                                      bool present)
{
    struct model_suggestion s = {.misfit = MODEL_FITS};
    for (uint32_t i = 0; i < r->n_files; i++)
        s.bytes += r->files[i].bytes;
    for (uint32_t i = 0; i < r->n_archives; i++)
        s.download_bytes += r->archives[i].bytes;
    s.memory_bytes = s.bytes + s.bytes / 8 + BESIDE_WEIGHTS_BYTES;
    if (room->memory_bytes && s.memory_bytes > room->memory_bytes)
        s.misfit = MODEL_LACKS_MEMORY;
    else if (!present && room->disk_bytes && s.bytes + s.download_bytes > room->disk_bytes)
        s.misfit = MODEL_LACKS_DISK;
    if (s.bytes && r->task && strcmp(r->task, "generate") == 0)
        s.tokens_per_second = DECODE_SHARE * room->bytes_per_second / (double)s.bytes;
    return s;
}

void model_suggest_reason(char out[112], const struct model_suggestion *s,
                          const struct model_room *room)
{
    char need[32], have[32];
    const bool disk = s->misfit == MODEL_LACKS_DISK;
    out[0] = '\0';
    if (s->misfit == MODEL_FITS)
        return;
    bytes_text(need, (double)(disk ? s->bytes + s->download_bytes : s->memory_bytes));
    bytes_text(have, (double)(disk ? room->disk_bytes : room->memory_bytes));
    snprintf(out, 112, "needs about %s %s, and there are %s", need,
             disk ? "on the disk" : "of memory", have);
}
