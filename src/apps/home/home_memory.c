/* home_memory.c - see home_memory.h. */
#include "apps/home/home_memory.h"

#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/holdings.h"

#define FOCUS_NS (600ull * 1000000000)
#define WAIT_NS (120ull * 1000000000)
#define MAX_BYTES ((size_t)64 << 10) /* of one conversation */
#define MAX_KEY 160u

struct entry {
    char key[MAX_KEY]; /* "": known by its token alone */
    char by[MAX_KEY];  /* the client that a yes must come from */
    uint64_t used_ns;  /* 0: free */
    uint64_t who;      /* the client, in holdings */
    struct arena focus_arena, wait_arena;
    struct home_focus focus;
    uint64_t focus_ns, wait_ns; /* when it was set; 0: nothing */
    struct home_waiting waiting;
    bool asked; /* the last turn asked for it, so a yes is unambiguous */
    char token[HOME_MEMORY_TOKEN];
};

struct home_memory {
    pthread_mutex_t lock;
    struct entry entries[HOME_MEMORY_MAX];
    struct holdings holdings; /* entries of each client */
};

int home_memory_create(struct home_memory **out, struct err *e)
{
    struct home_memory *m = mem_zalloc(sizeof(*m));
    *out = m;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "memory of conversations");
    pthread_mutex_init(&m->lock, NULL);
    return 0;
}

static void clear(struct entry *x)
{
    arena_fini(&x->focus_arena);
    arena_fini(&x->wait_arena);
    *x = (struct entry){0};
}

void home_memory_destroy(struct home_memory *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < HOME_MEMORY_MAX; i++)
        clear(&m->entries[i]);
    holdings_fini(&m->holdings);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

static struct entry *find(struct home_memory *m, const char *key)
{
    for (uint32_t i = 0; *key && i < HOME_MEMORY_MAX; i++)
        if (m->entries[i].used_ns && strcmp(m->entries[i].key, key) == 0)
            return &m->entries[i];
    return NULL;
}

/* A free entry, or the oldest of the client that has most. */
static struct entry *make_room(struct home_memory *m, uint64_t who)
{
    const uint64_t most = holdings_most(&m->holdings, who);
    struct entry *old = NULL;
    for (uint32_t i = 0; i < HOME_MEMORY_MAX; i++) {
        struct entry *x = &m->entries[i];
        if (!x->used_ns)
            return x;
        if (x->who == most && (!old || x->used_ns < old->used_ns))
            old = x;
    }
    holdings_sub(&m->holdings, most, 1);
    clear(old);
    return old;
}

/* The conversation's entry, or an empty one; NULL: out of memory. */
static struct entry *make(struct home_memory *m, const char *key, const char *by, uint64_t now_ns)
{
    struct entry *x = find(m, key);
    const uint64_t who = holdings_who(by);
    if (!x) {
        x = make_room(m, who);
        if (!holdings_add(&m->holdings, who, 1))
            return NULL;
        x->who = who;
    }
    if (!x->used_ns) {
        arena_init(&x->focus_arena, MAX_BYTES);
        arena_init(&x->wait_arena, MAX_BYTES);
        snprintf(x->key, sizeof(x->key), "%s", key);
    }
    x->used_ns = now_ns ? now_ns : 1;
    return x;
}

static const char *copy(struct arena *a, const char *s)
{
    return s ? arena_copy(a, s, strlen(s) + 1) : NULL;
}

static struct home_focus copy_focus(struct arena *a, const struct home_focus *f)
{
    struct home_focus out = *f;
    out.device = copy(a, f->device);
    out.room = copy(a, f->room);
    out.machine = copy(a, f->machine);
    out.last = copy(a, f->last);
    out.pending = copy(a, f->pending);
    out.kept = copy(a, f->kept);
    return out;
}

static bool fresh(uint64_t set_ns, uint64_t now_ns, uint64_t most_ns)
{
    return set_ns && now_ns - set_ns <= most_ns;
}

void home_memory_focus(struct home_memory *m, const char *key, uint64_t now_ns, struct arena *a,
                       struct home_focus *out)
{
    *out = (struct home_focus){0};
    pthread_mutex_lock(&m->lock);
    struct entry *x = find(m, key);
    if (x && fresh(x->focus_ns, now_ns, FOCUS_NS))
        *out = copy_focus(a, &x->focus);
    pthread_mutex_unlock(&m->lock);
}

void home_memory_set_focus(struct home_memory *m, const char *key, const char *by, uint64_t now_ns,
                           const struct home_focus *f)
{
    if (!*key || strlen(key) >= MAX_KEY)
        return;
    pthread_mutex_lock(&m->lock);
    struct entry *x = make(m, key, by, now_ns);
    if (x) {
        arena_reset(&x->focus_arena, MAX_BYTES);
        x->focus = copy_focus(&x->focus_arena, f);
        x->focus_ns = x->focus_arena.rc == 0 ? now_ns : 0;
    }
    if (x && x->focus_arena.rc < 0) {
        arena_fini(&x->focus_arena);
        arena_init(&x->focus_arena, MAX_BYTES);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static struct home_waiting copy_waiting(struct arena *a, const struct home_waiting *w)
{
    const struct ask_plan plan = {.actions = w->actions, .n_actions = w->n};
    const struct ask_plan *p = ask_plan_copy(&plan, a);
    const char **lines = arena_zalloc_n(a, w->n, sizeof(*lines));
    const char **says = arena_zalloc_n(a, w->n, sizeof(*says));
    const char **todos = arena_zalloc_n(a, w->n, sizeof(*todos));
    for (uint32_t i = 0; a->rc == 0 && i < w->n; i++) {
        lines[i] = copy(a, w->lines[i]);
        says[i] = copy(a, w->says[i]);
        todos[i] = w->todos ? copy(a, w->todos[i]) : NULL;
    }
    if (a->rc < 0)
        return (struct home_waiting){0};
    return (struct home_waiting){p->actions, lines, says, todos, w->n};
}

static bool make_token(char out[HOME_MEMORY_TOKEN])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[(HOME_MEMORY_TOKEN - 1) / 2];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        out[2 * i] = hex[bytes[i] >> 4];
        out[2 * i + 1] = hex[bytes[i] & 15];
    }
    out[HOME_MEMORY_TOKEN - 1] = '\0';
    return true;
}

static void forget_waiting(struct entry *x)
{
    arena_fini(&x->wait_arena);
    arena_init(&x->wait_arena, MAX_BYTES);
    x->waiting = (struct home_waiting){0};
    x->wait_ns = 0;
    x->asked = false;
    x->token[0] = '\0';
}

bool home_memory_wait(struct home_memory *m, const char *key, const char *by, uint64_t now_ns,
                      const struct home_waiting *w, char token[HOME_MEMORY_TOKEN])
{
    if (strlen(key) >= MAX_KEY || strlen(by) >= MAX_KEY || !make_token(token))
        return false;
    pthread_mutex_lock(&m->lock);
    struct entry *x = make(m, key, by, now_ns);
    if (x) {
        forget_waiting(x);
        x->waiting = copy_waiting(&x->wait_arena, w);
    }
    bool ok = x && x->waiting.n == w->n;
    if (ok) {
        memcpy(x->token, token, HOME_MEMORY_TOKEN);
        snprintf(x->by, sizeof(x->by), "%s", by);
        x->wait_ns = now_ns ? now_ns : 1;
        x->asked = true;
    } else if (x) {
        forget_waiting(x);
    }
    pthread_mutex_unlock(&m->lock);
    return ok;
}

/* Compares tokens in constant time: timing must not help to guess one. */
static bool same_token(const char *a, const char *b)
{
    unsigned char differs = 0;
    if (strlen(b) != HOME_MEMORY_TOKEN - 1)
        return false;
    for (size_t i = 0; i < HOME_MEMORY_TOKEN; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

bool home_memory_take(struct home_memory *m, const char *key, const char *by, const char *token,
                      uint64_t now_ns, struct arena *a, struct home_waiting *out)
{
    struct entry *x = NULL;
    *out = (struct home_waiting){0};
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; token && i < HOME_MEMORY_MAX; i++)
        if (m->entries[i].wait_ns && same_token(m->entries[i].token, token))
            x = &m->entries[i];
    if (!token)
        x = find(m, key);
    if (x && (strcmp(x->key, key) != 0 || strcmp(x->by, by) != 0))
        x = NULL;
    if (x && fresh(x->wait_ns, now_ns, WAIT_NS))
        *out = copy_waiting(a, &x->waiting);
    if (x)
        forget_waiting(x); /* once, whether it was in time or not */
    pthread_mutex_unlock(&m->lock);
    return out->n > 0;
}

bool home_memory_waits(struct home_memory *m, const char *key, uint64_t now_ns)
{
    pthread_mutex_lock(&m->lock);
    const struct entry *x = find(m, key);
    bool yes = x && x->asked && fresh(x->wait_ns, now_ns, WAIT_NS);
    pthread_mutex_unlock(&m->lock);
    return yes;
}

void home_memory_move_on(struct home_memory *m, const char *key)
{
    pthread_mutex_lock(&m->lock);
    struct entry *x = find(m, key);
    if (x)
        x->asked = false;
    pthread_mutex_unlock(&m->lock);
}
