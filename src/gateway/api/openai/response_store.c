/* response_store.c - see response_store.h.
 *
 * A list from the newest to the oldest with a table of buckets by id. */
#include "gateway/api/openai/response_store.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define N_BUCKETS 1024u /* a power of 2 */

struct kept {
    struct response_entry entry;       /* first */
    struct kept *newer, *older, *next; /* next: in its bucket */
    uint64_t until_ns;
    size_t bytes;
    uint32_t refs; /* the store's own is one of them */
    /* the messages, their calls, then all texts */
};

struct response_store {
    pthread_mutex_t lock;
    size_t max_bytes, bytes;
    uint64_t ttl_ns;
    uint32_t n;
    struct kept *newest, *oldest;
    struct kept *buckets[N_BUCKETS];
};

int response_store_create(struct response_store **out, size_t max_bytes, uint32_t ttl_ms,
                          struct err *e)
{
    struct response_store *s = mem_zalloc(sizeof(*s));
    *out = s;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the store of responses");
    pthread_mutex_init(&s->lock, NULL);
    s->max_bytes = max_bytes;
    s->ttl_ns = (uint64_t)ttl_ms * 1000000u;
    return 0;
}

static struct kept **bucket_of(struct response_store *s, const char *id)
{
    return &s->buckets[hash_bytes(id, strlen(id), 0) & (N_BUCKETS - 1)];
}

static void unref(struct kept *k)
{
    if (--k->refs == 0)
        mem_free(k);
}

/* Takes k out of the list and its bucket. */
static void forget(struct response_store *s, struct kept *k)
{
    struct kept **at = bucket_of(s, k->entry.id);
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    *(k->newer ? &k->newer->older : &s->newest) = k->older;
    *(k->older ? &k->older->newer : &s->oldest) = k->newer;
    s->bytes -= k->bytes;
    s->n--;
    unref(k);
}

static void forget_old(struct response_store *s, uint64_t now_ns)
{
    while (s->oldest && (s->oldest->until_ns <= now_ns || s->bytes > s->max_bytes))
        forget(s, s->oldest);
}

void response_store_destroy(struct response_store *s)
{
    if (!s)
        return;
    while (s->oldest)
        forget(s, s->oldest);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static size_t bytes_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Copies n bytes and a NUL to *at, which moves after them; NULL stays NULL. */
static const char *put_text(char **at, const char *text, size_t n)
{
    char *copy = *at;
    if (!text)
        return NULL;
    memcpy(copy, text, n);
    *at += n + 1;
    return copy;
}

static const char *put_str(char **at, const char *text)
{
    return put_text(at, text, text ? strlen(text) : 0);
}

/* Of the block that holds a copy of the entry; *n_calls: of all messages. */
static size_t block_bytes(const struct response_entry *e, size_t *n_calls)
{
    size_t n =
        sizeof(struct kept) + e->n_messages * sizeof(struct chat_message) + e->json_bytes + 1;
    *n_calls = 0;
    for (uint32_t i = 0; i < e->n_messages; i++) {
        const struct chat_message *m = &e->messages[i];
        n += m->content_bytes + 1 + bytes_of(m->name) + bytes_of(m->call_id);
        *n_calls += m->n_calls;
        for (uint32_t k = 0; k < m->n_calls; k++)
            n += bytes_of(m->calls[k].id) + bytes_of(m->calls[k].name) +
                 m->calls[k].arguments_bytes + 1;
    }
    return n + *n_calls * sizeof(struct chat_call);
}

/* A copy of the entry in one block; NULL: out of memory, or it is too large. */
static struct kept *copy_entry(const struct response_entry *e, size_t max_bytes)
{
    size_t n_calls, n = block_bytes(e, &n_calls);
    struct kept *k = n <= max_bytes ? mem_zalloc(n) : NULL;
    if (!k)
        return NULL;
    struct chat_message *messages = (struct chat_message *)(void *)(k + 1);
    struct chat_call *calls = (struct chat_call *)(void *)(messages + e->n_messages);
    char *p = (char *)(calls + n_calls);
    k->entry = *e;
    k->entry.messages = messages;
    k->entry.json = put_text(&p, e->json, e->json_bytes);
    for (uint32_t i = 0; i < e->n_messages; i++) {
        const struct chat_message *m = &e->messages[i];
        messages[i] = (struct chat_message){.role = m->role,
                                            .name = put_str(&p, m->name),
                                            .content = put_text(&p, m->content, m->content_bytes),
                                            .content_bytes = m->content_bytes,
                                            .calls = m->n_calls > 0 ? calls : NULL,
                                            .n_calls = m->n_calls,
                                            .call_id = put_str(&p, m->call_id)};
        for (uint32_t c = 0; c < m->n_calls; c++, calls++)
            *calls = (struct chat_call){
                .id = put_str(&p, m->calls[c].id),
                .name = put_str(&p, m->calls[c].name),
                .arguments = put_text(&p, m->calls[c].arguments, m->calls[c].arguments_bytes),
                .arguments_bytes = m->calls[c].arguments_bytes};
    }
    k->bytes = n;
    k->refs = 1;
    return k;
}

bool response_store_put(struct response_store *s, const struct response_entry *e, uint64_t now_ns)
{
    struct kept *k = copy_entry(e, s->max_bytes);
    if (!k)
        return false;
    k->until_ns = now_ns + s->ttl_ns;
    pthread_mutex_lock(&s->lock);
    struct kept **at = bucket_of(s, e->id);
    k->next = *at;
    *at = k;
    k->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = k;
    s->newest = k;
    s->bytes += k->bytes;
    s->n++;
    forget_old(s, now_ns);
    pthread_mutex_unlock(&s->lock);
    return true;
}

/* With the lock. */
static struct kept *find(struct response_store *s, const char *id, const char *owner,
                         uint64_t now_ns)
{
    forget_old(s, now_ns);
    struct kept *k = *bucket_of(s, id);
    while (k && (strcmp(k->entry.id, id) != 0 || strcmp(k->entry.owner, owner) != 0))
        k = k->next;
    return k;
}

const struct response_entry *response_store_get(struct response_store *s, const char *id,
                                                const char *owner, uint64_t now_ns)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = find(s, id, owner, now_ns);
    if (k)
        k->refs++;
    pthread_mutex_unlock(&s->lock);
    return k ? &k->entry : NULL;
}

void response_store_unref(struct response_store *s, const struct response_entry *e)
{
    pthread_mutex_lock(&s->lock);
    unref((struct kept *)(uintptr_t)e); /* its first member */
    pthread_mutex_unlock(&s->lock);
}

bool response_store_delete(struct response_store *s, const char *id, const char *owner,
                           uint64_t now_ns)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = find(s, id, owner, now_ns);
    if (k)
        forget(s, k);
    pthread_mutex_unlock(&s->lock);
    return k != NULL;
}

void response_store_count(struct response_store *s, uint32_t *n, size_t *bytes)
{
    pthread_mutex_lock(&s->lock);
    *n = s->n;
    *bytes = s->bytes;
    pthread_mutex_unlock(&s->lock);
}
