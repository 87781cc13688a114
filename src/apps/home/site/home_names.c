/* home_names.c - see home_names.h. */
#include "apps/home/site/home_names.h"

#include <string.h>

#define LEAST_BYTES 3u /* of a name: shorter ones are in too many words */

/* What is said most often comes first. */
static const enum home_thing_type order[] = {HOME_THING_ROOM,    HOME_THING_PERSON,
                                             HOME_THING_DEVICE,  HOME_THING_SCENE,
                                             HOME_THING_MACHINE, HOME_THING_SENSOR};

static bool is_listed(const struct buf *b, size_t from, const char *name, size_t n)
{
    const char *at = buf_str(b) + from, *end = buf_str(b) + b->len;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        const size_t len = line ? (size_t)(line - at) : (size_t)(end - at);
        if (len == n && memcmp(at, name, n) == 0)
            return true;
        at += len + 1;
    }
    return false;
}

static void put_name(struct buf *b, size_t from, uint32_t *left, const char *name)
{
    const size_t n = name ? strlen(name) : 0;
    if (n < LEAST_BYTES || n > HOME_FILE_MAX_NAME_BYTES || *left == 0 ||
        is_listed(b, from, name, n))
        return;
    for (size_t i = 0; i < n; i++)
        if (name[i] == ',' || name[i] == '\n') /* they separate phrases */
            return;
    buf_put(b, name, n);
    buf_putc(b, '\n');
    --*left;
}

void home_names_put(struct buf *b, const struct home_file *f)
{
    const size_t from = b->len;
    uint32_t left = HOME_NAMES_MOST;
    for (size_t k = 0; f && k < sizeof(order) / sizeof(order[0]); k++)
        for (uint32_t i = 0; i < f->n_things; i++) {
            const struct home_thing *x = &f->things[i];
            for (uint32_t n = 0; x->type == order[k] && n < x->names.n; n++)
                put_name(b, from, &left, x->names.w[n]);
            if (x->type == order[k])
                put_name(b, from, &left, x->floor);
        }
}
