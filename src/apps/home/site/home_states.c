/* home_states.c - see home_states.h. */
#include "apps/home/site/home_states.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "wire/json_strict.h"

#define MAX_FILE_BYTES ((size_t)16 << 20)
#define MAX_TEXT_BYTES 200u
#define MAX_ID_BYTES 200u
#define SAVE_EVERY_S 1

struct entry {
    char *id, *ability, *text, *unit;
    double number;
    int64_t since_s;
    uint64_t turn; /* the higher, the later it was set */
};

struct home_states {
    pthread_mutex_t lock;
    struct entry *entries;
    uint32_t n, cap;
    uint64_t turns;
    /* saving */
    char *path; /* NULL: in memory only */
    pthread_t thread;
    pthread_cond_t wake;
    bool threaded, dirty, stop, warned;
};

static struct entry *find(const struct home_states *s, const char *id, const char *ability)
{
    struct entry *best = NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        struct entry *e = &s->entries[i];
        if (strcmp(e->id, id) != 0 || (ability && strcmp(e->ability, ability) != 0))
            continue;
        if (!best || e->turn > best->turn)
            best = e;
    }
    return best;
}

static void entry_fini(struct entry *e)
{
    mem_free(e->id);
    mem_free(e->ability);
    mem_free(e->text);
    mem_free(e->unit);
}

static char *copy(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

/* A free entry; NULL: there is no room. */
static struct entry *add(struct home_states *s)
{
    if (s->n == HOME_STATES_MAX)
        return NULL;
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 64;
        struct entry *list = mem_realloc(s->entries, cap * sizeof(*list));
        if (!list)
            return NULL;
        s->entries = list;
        s->cap = cap;
    }
    return &s->entries[s->n];
}

static void set_locked(struct home_states *s, const char *id, const struct home_state *v)
{
    struct entry *old = find(s, id, v->ability), *e = old ? old : add(s);
    struct entry new = {.id = copy(id),
                        .ability = copy(v->ability),
                        .text = copy(v->text),
                        .unit = copy(v->unit),
                        .number = v->number,
                        .since_s = v->since_s ? v->since_s : (int64_t)time(NULL),
                        .turn = ++s->turns};
    if (!e || !new.id || !new.ability || (v->text && !new.text) || (v->unit && !new.unit)) {
        entry_fini(&new);
        return;
    }
    if (old)
        entry_fini(old);
    else
        s->n++;
    *e = new;
    s->dirty = true;
    if (s->threaded)
        pthread_cond_signal(&s->wake);
}

void home_states_set(struct home_states *s, const char *id, const struct home_state *v)
{
    pthread_mutex_lock(&s->lock);
    set_locked(s, id, v);
    pthread_mutex_unlock(&s->lock);
}

bool home_states_add(struct home_states *s, const char *id, const struct home_state *v)
{
    pthread_mutex_lock(&s->lock);
    struct entry *e = find(s, id, v->ability);
    bool ok = e && !e->text;
    if (ok) {
        e->number += v->number;
        e->since_s = (int64_t)time(NULL);
        e->turn = ++s->turns;
        s->dirty = true;
        if (s->threaded)
            pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return ok;
}

bool home_states_forget(struct home_states *s, const char *id, const char *ability)
{
    pthread_mutex_lock(&s->lock);
    struct entry *e = find(s, id, ability);
    if (e) {
        entry_fini(e);
        memmove(e, e + 1, (size_t)(s->entries + --s->n - e) * sizeof(*e));
        s->turns++;
        s->dirty = true;
        if (s->threaded)
            pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return e != NULL;
}

uint64_t home_states_turns(struct home_states *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t turns = s->turns;
    pthread_mutex_unlock(&s->lock);
    return turns;
}

bool home_states_get(struct home_states *s, struct arena *a, const char *id, const char *ability,
                     struct home_state *out)
{
    *out = (struct home_state){0};
    pthread_mutex_lock(&s->lock);
    const struct entry *e = find(s, id, ability);
    if (e)
        *out = (struct home_state){.ability = arena_printf(a, "%s", e->ability),
                                   .text = e->text ? arena_printf(a, "%s", e->text) : NULL,
                                   .number = e->number,
                                   .unit = e->unit ? arena_printf(a, "%s", e->unit) : NULL,
                                   .since_s = e->since_s};
    pthread_mutex_unlock(&s->lock);
    return e != NULL;
}

static struct home_state state_of(const struct entry *e)
{
    return (struct home_state){.ability = e->ability,
                               .text = e->text,
                               .number = e->number,
                               .unit = e->unit,
                               .since_s = e->since_s};
}

void home_states_each(struct home_states *s,
                      void (*fn)(void *ctx, const char *id, const struct home_state *v), void *ctx)
{
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct home_state v = state_of(&s->entries[i]);
        fn(ctx, s->entries[i].id, &v);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void put_state(void *ctx, const char *id, const struct home_state *v)
{
    struct json_out *j = ctx;
    json_out_object(j);
    json_out_key(j, "id");
    json_out_str(j, id);
    json_out_key(j, "ability");
    json_out_str(j, v->ability);
    json_out_key(j, "value");
    if (v->text)
        json_out_str(j, v->text);
    else
        json_out_num(j, v->number);
    if (v->unit) {
        json_out_key(j, "unit");
        json_out_str(j, v->unit);
    }
    json_out_key(j, "since");
    json_out_int(j, v->since_s);
    json_out_object_end(j);
}

void home_states_list(struct home_states *s, struct json_out *j)
{
    json_out_array(j);
    home_states_each(s, put_state, j);
    json_out_array_end(j);
}

void home_states_json(struct home_states *s, struct buf *out)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    json_out_key(&j, "version");
    json_out_uint(&j, 1);
    json_out_key(&j, "states");
    home_states_list(s, &j);
    json_out_object_end(&j);
    buf_putc(out, '\n');
}

int home_states_read(struct home_states *s, const char *json, size_t n, struct err *e)
{
    struct json_strict d;
    int rc = json_strict_parse(&d, json, n, MAX_FILE_BYTES, e);
    struct json_node root = json_strict_root(&d), v;
    if (rc == 0 && json_strict_object(&d, &root, "version states", "")) {
        v = json_strict_get(&root, "version");
        (void)json_strict_u32(&d, &v, 1, 1, 0);
        struct json_node list = json_strict_get(&root, "states");
        (void)json_strict_array(&d, &list, HOME_STATES_MAX);
        for (v = json_strict_first(&list); d.rc == 0 && v.v; v = json_strict_next(&v)) {
            if (!json_strict_object(&d, &v, "id ability value", "unit since"))
                break;
            struct json_node id = json_strict_get(&v, "id"), unit = json_strict_get(&v, "unit"),
                             ability = json_strict_get(&v, "ability"),
                             value = json_strict_get(&v, "value"),
                             since = json_strict_get(&v, "since");
            bool text = cJSON_IsString(value.v);
            const char *name = json_strict_text(&d, &id, MAX_ID_BYTES);
            const struct home_state state = {
                .ability = json_strict_text(&d, &ability, MAX_TEXT_BYTES),
                .text = text ? json_strict_any_text(&d, &value, MAX_TEXT_BYTES) : NULL,
                .number = text ? 0 : json_strict_number(&d, &value, -1e300, 1e300, 0),
                .unit = unit.v ? json_strict_text(&d, &unit, MAX_TEXT_BYTES) : NULL,
                .since_s = (int64_t)json_strict_number(&d, &since, 0, 1e12, 0)};
            if (d.rc == 0)
                home_states_set(s, name, &state);
        }
    }
    rc = json_strict_rc(&d);
    json_strict_fini(&d);
    return rc;
}

static void save(struct home_states *s)
{
    struct buf b;
    struct err e = {0};
    buf_init(&b, MAX_FILE_BYTES);
    home_states_json(s, &b);
    int rc = b.rc < 0 ? err_set(&e, b.rc, "out of memory")
                      : file_replace(s->path, buf_str(&b), b.len, &e);
    if (rc < 0 && !s->warned)
        log_warn("home", "the states of the home are not saved: %s", e.msg);
    s->warned = rc < 0;
    buf_fini(&b);
}

static void *saver(void *arg)
{
    struct home_states *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        if (!s->dirty) {
            pthread_cond_wait(&s->wake, &s->lock);
            continue;
        }
        s->dirty = false;
        pthread_mutex_unlock(&s->lock);
        save(s);
        struct timespec until;
        pthread_mutex_lock(&s->lock);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += SAVE_EVERY_S;
        while (!s->stop && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
            ;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int start_saving(struct home_states *s, const char *path, struct err *e)
{
    struct buf b;
    int rc = 0;
    s->path = mem_strdup(path);
    if (!s->path)
        return err_set(e, SHOAL_ENOMEM, "states");
    buf_init(&b, MAX_FILE_BYTES);
    if (access(path, F_OK) == 0) {
        rc = file_read(path, &b, e);
        if (rc == 0) {
            rc = home_states_read(s, buf_str(&b), b.len, e);
            if (rc < 0)
                err_wrap(e, "%s", path);
        }
    }
    buf_fini(&b);
    s->dirty = false;
    if (rc == 0)
        rc = thread_create(&s->thread, "home-states", saver, s, e);
    s->threaded = rc == 0;
    return rc;
}

int home_states_create(struct home_states **out, const char *path, struct err *e)
{
    struct home_states *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "states");
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->wake);
    int rc = path ? start_saving(s, path, e) : 0;
    if (rc < 0) {
        home_states_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

void home_states_destroy(struct home_states *s)
{
    if (!s)
        return;
    if (s->threaded) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        if (s->dirty)
            save(s);
    }
    for (uint32_t i = 0; i < s->n; i++)
        entry_fini(&s->entries[i]);
    mem_free(s->entries);
    mem_free(s->path);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}
