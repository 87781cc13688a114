/* slot_store.c - see slot_store.h. */
#include "gateway/api/llama/slot_store.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/holdings.h"

#define MAX_SLOTS 256u /* of all clients; the oldest of the one that has most makes room */
#define OWNER_BYTES 64u

struct slot {
    char owner[OWNER_BYTES];
    char *text;
    size_t n;
    uint32_t id, n_tokens;
    uint64_t age, who; /* who: the owner, in holdings */
};

struct slot_store {
    pthread_mutex_t lock;
    uint64_t now;
    struct slot slots[MAX_SLOTS]; /* text NULL: free */
    struct holdings holdings;     /* how many each owner has */
};

int slot_store_create(struct slot_store **out, struct err *e)
{
    struct slot_store *s = mem_zalloc(sizeof(*s));
    *out = s;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for slots");
    pthread_mutex_init(&s->lock, NULL);
    return 0;
}

void slot_store_destroy(struct slot_store *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < MAX_SLOTS; i++)
        mem_free(s->slots[i].text);
    holdings_fini(&s->holdings);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

/* With the lock; NULL: none. */
static struct slot *find(struct slot_store *s, const char *owner, uint32_t id)
{
    for (uint32_t i = 0; i < MAX_SLOTS; i++)
        if (s->slots[i].text && s->slots[i].id == id && strcmp(s->slots[i].owner, owner) == 0)
            return &s->slots[i];
    return NULL;
}

/* With the lock. */
static void empty(struct slot_store *s, struct slot *x)
{
    holdings_sub(&s->holdings, x->who, 1);
    mem_free(x->text);
    *x = (struct slot){.text = NULL};
}

/* With the lock: a free one, or the oldest of the client that has most, which is emptied. */
static struct slot *make_room(struct slot_store *s, uint64_t who)
{
    const uint64_t most = holdings_most(&s->holdings, who);
    struct slot *old = NULL;
    for (uint32_t i = 0; i < MAX_SLOTS; i++) {
        struct slot *x = &s->slots[i];
        if (!x->text)
            return x;
        if (x->who == most && (!old || x->age < old->age))
            old = x;
    }
    empty(s, old);
    return old;
}

void slot_store_put(struct slot_store *s, const char *owner, uint32_t id, const char *head,
                    size_t n_head, const char *tail, size_t n_tail, uint32_t n_tokens)
{
    const size_t n = n_head + n_tail;
    char *text = n <= SLOT_STORE_MAX_TEXT && strlen(owner) < OWNER_BYTES ? mem_alloc(n + 1) : NULL;
    if (!text)
        return;
    memcpy(text, head, n_head);
    memcpy(text + n_head, tail, n_tail);
    text[n] = '\0';
    pthread_mutex_lock(&s->lock);
    const uint64_t who = holdings_who(owner);
    struct slot *x = find(s, owner, id);
    if (x)
        empty(s, x);
    else
        x = make_room(s, who);
    if (holdings_add(&s->holdings, who, 1)) {
        *x = (struct slot){
            .text = text, .n = n, .id = id, .n_tokens = n_tokens, .age = ++s->now, .who = who};
        memcpy(x->owner, owner, strlen(owner));
        text = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    mem_free(text);
}

char *slot_store_take(struct slot_store *s, const char *owner, uint32_t id, size_t *n,
                      uint32_t *n_tokens)
{
    char *text = NULL;
    pthread_mutex_lock(&s->lock);
    const struct slot *x = find(s, owner, id);
    if (x && (text = mem_strndup(x->text, x->n))) {
        *n = x->n;
        *n_tokens = x->n_tokens;
    }
    pthread_mutex_unlock(&s->lock);
    return text;
}

uint32_t slot_store_erase(struct slot_store *s, const char *owner, uint32_t id)
{
    uint32_t n = 0;
    pthread_mutex_lock(&s->lock);
    struct slot *x = find(s, owner, id);
    if (x) {
        n = x->n_tokens;
        empty(s, x);
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}
