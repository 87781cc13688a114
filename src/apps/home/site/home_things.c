/* home_things.c - see home_things.h. */
#include "apps/home/site/home_things.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "apps/home/later/home_later.h"

#define MAX_KNOWN_BYTES ((size_t)4 << 20)

struct home_things {
    pthread_mutex_t lock; /* guards file, sink, later and live */
    struct home_file *file;
    struct home_sink *sink;
    struct home_later *later;
    struct home_live *live;
    uint64_t n_changes; /* of file and sink */
    struct home_states *states, *lists;
};

/* "FILE.lists"; NULL: out of memory. */
static char *lists_path(const char *state_path)
{
    size_t n = strlen(state_path), size = n + sizeof(".lists");
    char *path = mem_alloc(size);
    if (path)
        snprintf(path, size, "%s.lists", state_path);
    return path;
}

/* What the file says about the start, as far as nothing newer is known. */
static void set_starts(struct home_things *h, const struct home_file *f)
{
    struct arena a;
    struct home_state known;
    arena_init(&a, MAX_KNOWN_BYTES);
    for (uint32_t i = 0; f && i < f->n_starts; i++) {
        const struct home_thing_set *s = &f->starts[i];
        const struct home_state v = {.ability = s->ability, .text = s->text, .number = s->number};
        if (!home_states_get(h->states, &a, s->thing->id, s->ability, &known))
            home_states_set(h->states, s->thing->id, &v);
    }
    arena_fini(&a);
}

int home_things_create(struct home_things **out, struct home_file *file, const char *state_path,
                       struct err *e)
{
    struct home_things *h = mem_zalloc(sizeof(*h));
    *out = NULL;
    if (!h)
        return err_set(e, SHOAL_ENOMEM, "home");
    pthread_mutex_init(&h->lock, NULL);
    h->file = home_file_ref(file);
    char *path = state_path ? lists_path(state_path) : NULL;
    int rc = state_path && !path ? err_set(e, SHOAL_ENOMEM, "home")
                                 : home_states_create(&h->states, state_path, e);
    if (rc == 0)
        rc = home_states_create(&h->lists, path, e);
    mem_free(path);
    if (rc < 0) {
        home_things_destroy(h);
        return rc;
    }
    set_starts(h, file);
    *out = h;
    return 0;
}

void home_things_destroy(struct home_things *h)
{
    if (!h)
        return;
    home_states_destroy(h->states);
    home_states_destroy(h->lists);
    home_file_unref(h->file);
    pthread_mutex_destroy(&h->lock);
    mem_free(h);
}

struct home_file *home_things_file(struct home_things *h)
{
    pthread_mutex_lock(&h->lock);
    struct home_file *f = home_file_ref(h->file);
    pthread_mutex_unlock(&h->lock);
    return f;
}

void home_things_set_file(struct home_things *h, struct home_file *file)
{
    pthread_mutex_lock(&h->lock);
    struct home_file *old = h->file;
    h->file = home_file_ref(file);
    h->n_changes++;
    pthread_mutex_unlock(&h->lock);
    home_file_unref(old);
    set_starts(h, file);
}

struct home_states *home_things_states(struct home_things *h)
{
    return h->states;
}

struct home_states *home_things_lists(struct home_things *h)
{
    return h->lists;
}

struct home_sink *home_things_sink(struct home_things *h)
{
    pthread_mutex_lock(&h->lock);
    struct home_sink *s = h->sink;
    pthread_mutex_unlock(&h->lock);
    return s;
}

void home_things_set_sink(struct home_things *h, struct home_sink *sink)
{
    pthread_mutex_lock(&h->lock);
    h->sink = sink;
    h->n_changes++;
    pthread_mutex_unlock(&h->lock);
}

struct home_later *home_things_later(struct home_things *h)
{
    pthread_mutex_lock(&h->lock);
    struct home_later *l = h->later;
    pthread_mutex_unlock(&h->lock);
    return l;
}

void home_things_set_later(struct home_things *h, struct home_later *later)
{
    pthread_mutex_lock(&h->lock);
    h->later = later;
    h->n_changes++;
    pthread_mutex_unlock(&h->lock);
}

struct home_live *home_things_live(struct home_things *h)
{
    pthread_mutex_lock(&h->lock);
    struct home_live *l = h->live;
    pthread_mutex_unlock(&h->lock);
    return l;
}

void home_things_set_live(struct home_things *h, struct home_live *live)
{
    pthread_mutex_lock(&h->lock);
    h->live = live;
    pthread_mutex_unlock(&h->lock);
}

bool home_things_report(struct home_things *h, const char *id, const char *ability,
                        const char *text, double number, const char *unit)
{
    struct home_file *f = home_things_file(h);
    bool known = home_file_thing(f, id) != NULL;
    home_file_unref(f);
    const struct home_state v = {.ability = ability, .text = text, .number = number, .unit = unit};
    if (known)
        home_states_set(h->states, id, &v);
    return known;
}

uint64_t home_things_version(struct home_things *h)
{
    pthread_mutex_lock(&h->lock);
    uint64_t n = h->n_changes;
    pthread_mutex_unlock(&h->lock);
    struct home_later *later = home_things_later(h);
    n += later ? home_later_turns(later) : 0;
    return n + home_states_turns(h->states); /* each only grows, so the sum does */
}

void home_things_json(struct json_out *j, struct home_things *h)
{
    struct home_file *f = home_things_file(h);
    home_file_json(j, f);
    home_file_unref(f);
    json_out_key(j, "simulated");
    json_out_bool(j, home_things_sink(h) == NULL);
    json_out_key(j, "states");
    home_states_list(h->states, j);
    struct home_later *later = home_things_later(h);
    if (later)
        home_later_json(later, j);
}
