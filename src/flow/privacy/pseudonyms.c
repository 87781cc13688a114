/* pseudonyms.c - see pseudonyms.h. */
#include "flow/privacy/pseudonyms.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/holdings.h"
#include "base/room.h"

#define ID_DIGITS 8u
#define WAYS 4u             /* places of a value */
#define MAX_KEPT_BYTES 320u /* of a value: the longest e-mail address */
#define MAX_NAME_BYTES 64u  /* of a client or a conversation, as in request.h */
#define MAX_TRIES 4u        /* other ids, when two values of a request have the same */

struct kept {
    uint64_t scope, who, used; /* who: the client; used 0: free */
    uint32_t id;
    uint16_t n;
    char text[MAX_KEPT_BYTES];
};

struct pseudonyms {
    uint8_t key[PSEUDONYMS_KEY_BYTES];
    pthread_mutex_t lock; /* kept, clock */
    uint64_t clock;
    struct kept *kept; /* [PSEUDONYMS_MAX_KEPT]; NULL until the first */
};

int pseudonyms_create(struct pseudonyms **out, const uint8_t key[PSEUDONYMS_KEY_BYTES],
                      struct err *e)
{
    struct pseudonyms *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "pseudonyms");
    if (key) {
        memcpy(p->key, key, sizeof(p->key));
    } else if (RAND_bytes(p->key, sizeof(p->key)) != 1) {
        mem_free(p);
        return err_set(e, SHOAL_EIO, "cannot make a random key for pseudonyms");
    }
    pthread_mutex_init(&p->lock, NULL);
    *out = p;
    return 0;
}

void pseudonyms_destroy(struct pseudonyms *p)
{
    if (!p)
        return;
    if (p->kept)
        OPENSSL_cleanse(p->kept, PSEUDONYMS_MAX_KEPT * sizeof(*p->kept));
    mem_free(p->kept);
    pthread_mutex_destroy(&p->lock);
    OPENSSL_cleanse(p, sizeof(*p));
    mem_free(p);
}

/* ---- state of conversations ---- */

static struct kept *places(struct pseudonyms *p, uint64_t scope, uint32_t id)
{
    uint64_t at = hash_mix(scope ^ hash_mix(id)) % (PSEUDONYMS_MAX_KEPT / WAYS);
    return p->kept + at * WAYS;
}

/* How many of the places a client has; one more for the one that asks, so that it displaces its own
 * before those of another that has as many. */
static uint32_t count(const struct kept *list, uint64_t who, uint64_t asking)
{
    uint32_t n = who == asking;
    for (uint32_t i = 0; i < WAYS; i++)
        n += list[i].used && list[i].who == who;
    return n;
}

/* The value's own place or a free one; else the oldest of the client that has most. */
static struct kept *place_of(struct kept *list, uint64_t scope, uint64_t who, uint32_t id)
{
    struct kept *to = NULL;
    for (uint32_t i = 0; i < WAYS; i++)
        if (list[i].used && list[i].scope == scope && list[i].id == id)
            return &list[i];
    for (uint32_t i = 0; i < WAYS; i++) {
        struct kept *k = &list[i];
        if (!k->used)
            return k;
        const uint32_t n = count(list, k->who, who), most = to ? count(list, to->who, who) : 0;
        if (n > most || (n == most && k->used < to->used))
            to = k;
    }
    return to;
}

static void keep(struct pseudonyms *p, uint64_t scope, uint64_t who, uint32_t id, const char *text,
                 size_t n)
{
    if (n > MAX_KEPT_BYTES)
        return;
    pthread_mutex_lock(&p->lock);
    if (!p->kept)
        p->kept = mem_zalloc_n(PSEUDONYMS_MAX_KEPT, sizeof(*p->kept));
    struct kept *to = p->kept ? place_of(places(p, scope, id), scope, who, id) : NULL;
    if (to) {
        *to = (struct kept){
            .scope = scope, .who = who, .used = ++p->clock, .id = id, .n = (uint16_t)n};
        memcpy(to->text, text, n);
    }
    pthread_mutex_unlock(&p->lock);
}

/* A copy in the arena. */
static const char *find_kept(struct pseudonyms_map *m, uint32_t id, size_t *n)
{
    struct pseudonyms *p = m->all;
    const char *found = NULL;
    pthread_mutex_lock(&p->lock);
    struct kept *list = p->kept ? places(p, m->scope, id) : NULL;
    for (uint32_t i = 0; list && i < WAYS && !found; i++)
        if (list[i].used && list[i].scope == m->scope && list[i].id == id) {
            list[i].used = ++p->clock;
            *n = list[i].n;
            found = arena_copy(m->arena, list[i].text, list[i].n);
        }
    pthread_mutex_unlock(&p->lock);
    return found;
}

/* ---- a request ---- */

/* Removes insignificant differences: case, and separators of numbers. */
static size_t fold(enum pii_kind kind, const char *text, size_t n, char *out, size_t cap)
{
    bool number = kind == PII_PHONE || kind == PII_CARD || kind == PII_IBAN || kind == PII_ID;
    size_t k = 0;
    for (size_t i = 0; i < n && k < cap; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 32);
        bool counts = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '+';
        if (!number || counts)
            out[k++] = c;
    }
    return k;
}

/* False: the library failed. */
static bool digest(const struct pseudonyms_map *m, const char *what, const void *p, size_t n,
                   uint64_t *out)
{
    unsigned char sum[EVP_MAX_MD_SIZE], text[3 * MAX_NAME_BYTES + MAX_KEPT_BYTES + 1];
    const char *const names[] = {m->tenant, m->conversation, what};
    size_t k = 0;
    for (size_t i = 0; i < 3; i++) { /* each with its NUL */
        size_t len = strnlen(names[i], MAX_NAME_BYTES - 1);
        memcpy(text + k, names[i], len);
        text[k + len] = '\0';
        k += len + 1;
    }
    memcpy(text + k, p, n);
    if (!HMAC(EVP_sha256(), m->all->key, sizeof(m->all->key), text, k + n, sum, NULL))
        return false;
    memcpy(out, sum, sizeof(*out));
    return true;
}

void pseudonyms_map_init(struct pseudonyms_map *m, struct pseudonyms *all, struct arena *arena,
                         const char *tenant, const char *conversation)
{
    *m = (struct pseudonyms_map){.all = all,
                                 .arena = arena,
                                 .tenant = tenant,
                                 .conversation = conversation,
                                 .session = conversation[0] != '\0'};
    if (m->session && !digest(m, "scope", "", 0, &m->scope))
        m->session = false;
}

static const struct pseudonyms_value *with_id(const struct pseudonyms_map *m, uint32_t id)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->values[i].id == id)
            return &m->values[i];
    return NULL;
}

static int put(struct pseudonyms_map *m, uint32_t id, enum pii_kind kind, const char *text,
               size_t n)
{
    if (m->n == PSEUDONYMS_MAX_VALUES)
        return SHOAL_ELIMIT;
    if (!room_make_in(m->arena, &m->values, &m->cap, m->n, sizeof(*m->values), 16))
        return SHOAL_ENOMEM;
    m->values[m->n++] = (struct pseudonyms_value){.id = id, .kind = kind, .text = text, .n = n};
    if (m->session)
        keep(m->all, m->scope, holdings_who(m->tenant), id, text, n);
    return 0;
}

static bool same(const struct pseudonyms_value *v, enum pii_kind kind, const char *folded, size_t n)
{
    char other[MAX_KEPT_BYTES];
    size_t k = fold(v->kind, v->text, v->n, other, sizeof(other));
    return v->kind == kind && k == n && memcmp(other, folded, n) == 0;
}

int pseudonyms_mark(struct pseudonyms_map *m, enum pii_kind kind, const char *text, size_t n,
                    char out[PSEUDONYMS_MARK_BYTES])
{
    char folded[MAX_KEPT_BYTES + 1];
    size_t k = fold(kind, text, n, folded, MAX_KEPT_BYTES);
    for (uint32_t i = 0; i < MAX_TRIES; i++) {
        uint64_t h;
        folded[k] = (char)i;
        if (!digest(m, pii_kind_name(kind), folded, k + 1, &h))
            return SHOAL_ENOMEM;
        const struct pseudonyms_value *v = with_id(m, (uint32_t)h);
        if (v && !same(v, kind, folded, k))
            continue;
        int rc = v ? 0 : put(m, (uint32_t)h, kind, text, n);
        snprintf(out, PSEUDONYMS_MARK_BYTES, "[%s-%08x]", pii_kind_name(kind),
                 (unsigned)(uint32_t)h);
        return rc;
    }
    return SHOAL_ELIMIT;
}

/* ---- marks in a text ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f');
}

/* Whether the n bytes at p begin with a pseudonym of this kind, or are the beginning of one. */
static enum pseudonyms_scan scan_as(const char *kind, const char *p, size_t n, size_t *bytes)
{
    size_t len = strlen(kind), whole = len + ID_DIGITS + 3;
    for (size_t i = 1; i < n && i < whole; i++) {
        bool fits = i <= len         ? lower(p[i]) == kind[i - 1]
                    : i == len + 1   ? p[i] == '-'
                    : i == whole - 1 ? p[i] == ']'
                                     : is_hex(p[i]);
        if (!fits)
            return PSEUDONYMS_NO;
    }
    *bytes = whole;
    return n < whole ? PSEUDONYMS_PART : PSEUDONYMS_WHOLE;
}

enum pseudonyms_scan pseudonyms_scan(const char *p, size_t n, size_t *bytes)
{
    enum pseudonyms_scan best = PSEUDONYMS_NO;
    for (unsigned k = 0; k < PII_N_KINDS && best != PSEUDONYMS_WHOLE; k++) {
        enum pseudonyms_scan s = scan_as(pii_kind_name((enum pii_kind)k), p, n, bytes);
        best = s > best ? s : best;
    }
    return best;
}

const char *pseudonyms_find(struct pseudonyms_map *m, const char *mark, size_t n, size_t *n_value)
{
    uint32_t id = 0;
    for (size_t i = n - 1 - ID_DIGITS; i < n - 1; i++) {
        char c = lower(mark[i]);
        id = id << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    const struct pseudonyms_value *v = with_id(m, id);
    if (v) {
        *n_value = v->n;
        return v->text;
    }
    return m->session ? find_kept(m, id, n_value) : NULL;
}
