/* controller_memory.c - see controller_memory.h. */
#include "cluster/controller/controller_memory.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define MIN_RETRY_MS 15000u /* doubles with every failure in a row */
#define MAX_RETRY_MS 3600000u

void controller_memory_fini(struct controller_memory *m)
{
    mem_free(m->failures);
    mem_free(m->absences);
    mem_free(m->scalings);
    *m = (struct controller_memory){0};
}

/* Room for one more; NULL: out of memory. */
static void *more(void *list, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    uint32_t want = *cap ? 2 * *cap : 16;
    void *p = mem_realloc(list, want * size);
    if (p)
        *cap = want;
    return p;
}

static struct controller_failure *find_failure(struct controller_memory *m, const char *node,
                                               const char *model, const uint8_t *sha256)
{
    for (uint32_t i = 0; i < m->n_failures; i++) {
        struct controller_failure *f = &m->failures[i];
        if (memcmp(f->sha256, sha256, SHA256_BYTES) == 0 && strcmp(f->node, node) == 0 &&
            strcmp(f->model, model) == 0)
            return f;
    }
    return NULL;
}

bool controller_memory_fail(struct controller_memory *m, const char *node, const char *model,
                            const uint8_t sha256[SHA256_BYTES], uint64_t now_ms)
{
    struct controller_failure *f = find_failure(m, node, model, sha256);
    if (f && now_ms < f->retry_ms)
        return false; /* already recorded: the node still repeats its report */
    if (!f) {
        void *list = more(m->failures, m->n_failures, &m->cap_failures, sizeof(*f));
        if (!list)
            return false;
        m->failures = list;
        f = &m->failures[m->n_failures++];
        *f = (struct controller_failure){.n = 0};
        snprintf(f->node, sizeof(f->node), "%s", node);
        snprintf(f->model, sizeof(f->model), "%s", model);
        memcpy(f->sha256, sha256, SHA256_BYTES);
    }
    uint64_t wait = (uint64_t)MIN_RETRY_MS << (f->n < 16 ? f->n : 16);
    f->n++;
    f->retry_ms = now_ms + (wait < MAX_RETRY_MS ? wait : MAX_RETRY_MS);
    return true;
}

void controller_memory_heal(struct controller_memory *m, const char *node, const char *model,
                            const uint8_t sha256[SHA256_BYTES])
{
    struct controller_failure *f = find_failure(m, node, model, sha256);
    if (f)
        *f = m->failures[--m->n_failures];
}

uint64_t controller_memory_away_ms(struct controller_memory *m, const char *node, uint64_t now_ms)
{
    for (uint32_t i = 0; i < m->n_absences; i++)
        if (strcmp(m->absences[i].node, node) == 0) {
            m->absences[i].seen = true;
            return now_ms - m->absences[i].since_ms;
        }
    void *list = more(m->absences, m->n_absences, &m->cap_absences, sizeof(*m->absences));
    if (!list)
        return 0;
    m->absences = list;
    struct controller_absence *a = &m->absences[m->n_absences++];
    *a = (struct controller_absence){.since_ms = now_ms, .seen = true};
    snprintf(a->node, sizeof(a->node), "%s", node);
    return 0;
}

void controller_memory_sweep(struct controller_memory *m)
{
    for (uint32_t i = 0; i < m->n_absences;) {
        if (m->absences[i].seen)
            m->absences[i++].seen = false;
        else
            m->absences[i] = m->absences[--m->n_absences];
    }
}

struct controller_scaling *controller_memory_scaling(struct controller_memory *m, const char *model,
                                                     uint32_t wanted, uint64_t now_ms)
{
    for (uint32_t i = 0; i < m->n_scalings; i++)
        if (strcmp(m->scalings[i].model, model) == 0)
            return &m->scalings[i];
    void *list = more(m->scalings, m->n_scalings, &m->cap_scalings, sizeof(*m->scalings));
    if (!list)
        return NULL;
    m->scalings = list;
    struct controller_scaling *s = &m->scalings[m->n_scalings++];
    *s = (struct controller_scaling){.requests = 0};
    snprintf(s->model, sizeof(s->model), "%s", model);
    autoscale_start(&s->state, wanted, now_ms);
    return s;
}
