/* memory_plan.c - see memory_plan.h. */
#include "engine/memory_plan.h"

#include <stdio.h>

static size_t available_bytes(void)
{
    char line[128];
    unsigned long long kb = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb ? (size_t)kb * 1024 : SIZE_MAX;
}

int memory_plan_pages(uint32_t *n_pages, const struct memory_plan_need *need, size_t wanted,
                      const struct shoal_engine_opts *o, struct err *e)
{
    const double mib = 1024.0 * 1024.0;
    size_t limit = o->memory_bytes ? o->memory_bytes : available_bytes();
    size_t pages;
    if (o->kv_bytes) {
        pages = o->kv_bytes / need->kv_page;
    } else {
        pages = wanted;
        if (pages > limit / 4 / need->kv_page) /* the default takes at most a quarter */
            pages = limit / 4 / need->kv_page;
    }
    if (pages == 0)
        return err_set(e, SHOAL_ELIMIT,
                       "one page of the key-value cache (16 tokens) takes %.1f MiB, the limit is "
                       "%.1f MiB",
                       (double)need->kv_page / mib,
                       (double)(o->kv_bytes ? o->kv_bytes : limit / 4) / mib);
    pages = pages < 1u << 30 ? pages : 1u << 30;
    size_t kv = pages * need->kv_page, all = need->weights + need->scratch + kv;
    if (all > limit)
        return err_set(
            e, SHOAL_ELIMIT,
            "does not fit: weights %.1f + scratch %.1f + key-value cache %.1f (%zu pages "
            "of 16 tokens) = %.1f MiB, %s %.1f MiB",
            (double)need->weights / mib, (double)need->scratch / mib, (double)kv / mib, pages,
            (double)all / mib, o->memory_bytes ? "the limit is" : "available are",
            (double)limit / mib);
    *n_pages = (uint32_t)pages;
    return 0;
}
