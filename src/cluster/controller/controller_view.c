/* controller_view.c - see controller_view.h. */
#include "cluster/controller/controller_view.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "cluster/messages/node_state.h"

#define LATE_NS 1000000000u
#define TWIN_NS 5000000000u
#define MAX_NAME 127u
#define MAX_SNAPSHOT_BYTES ((size_t)1 << 30)
#define BUCKETS 4096u
#define MS_NS 1000000u
#define HOLD_NS 30000000000u /* how long requests of a silent member may still run */

struct member {
    struct member *next; /* in its bucket */
    char name[MAX_NAME + 1];
    uint64_t heard_ns;
    uint64_t run, shape; /* hashes: of the run of the process, of what a plan depends on */
    uint64_t oldest_epoch;
    uint64_t run_before; /* the run before this one */
    uint64_t since_ns;   /* when the newer of the two was first heard */
    bool twins;          /* both run */
    uint8_t *bytes;      /* the last heartbeat */
    size_t n_bytes, cap;
};

struct controller_view {
    struct member *buckets[BUCKETS];
    uint32_t n;
    char left[MAX_NAME + 1];
    uint64_t held_epoch, held_until_ns; /* the oldest epoch of members that left */
};

struct raw { /* a heartbeat in a snapshot */
    const uint8_t *bytes;
    size_t n;
};

struct box {
    struct controller_snapshot s; /* first */
    struct raw *raw;
    uint32_t n_raw;
};

int controller_view_create(struct controller_view **out, struct err *e)
{
    *out = mem_zalloc(sizeof(**out));
    return *out ? 0 : err_set(e, SHOAL_ENOMEM, "members of the shoal");
}

static void free_member(struct member *m)
{
    mem_free(m->bytes);
    mem_free(m);
}

void controller_view_destroy(struct controller_view *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (v->buckets[i]) {
            struct member *m = v->buckets[i];
            v->buckets[i] = m->next;
            free_member(m);
        }
    mem_free(v);
}

static struct member **bucket_of(struct controller_view *v, const char *name)
{
    return &v->buckets[hash_bytes(name, strlen(name), 0) % BUCKETS];
}

static uint64_t add_text(uint64_t h, const char *s)
{
    return hash_bytes(s, strlen(s), h);
}

/* What a plan depends on; not the load, which changes with every heartbeat. */
static uint64_t shape_of(const struct node_state *s)
{
    uint64_t h = add_text(add_text(s->draining, s->zone), s->address);
    const uint64_t epochs[] = {s->epoch, s->epoch_end};
    h = hash_bytes(epochs, sizeof(epochs), h);
    for (uint32_t i = 0; i < s->n_labels; i++)
        h = add_text(h, s->labels[i]);
    for (uint32_t i = 0; i < s->n_wanted; i++)
        h = add_text(h, s->wanted[i]);
    for (uint32_t i = 0; i < s->n_models; i++) {
        const struct node_model *m = &s->models[i];
        const uint64_t numbers[] = {m->duty, m->state, m->kinds, m->epoch, m->until};
        h = hash_bytes(numbers, sizeof(numbers), add_text(add_text(h, m->name), m->error));
        if (m->sum)
            h = hash_bytes(m->sum, SHA256_BYTES, h);
    }
    return h;
}

static int keep_bytes(struct member *m, const void *bytes, size_t n)
{
    if (n > m->cap) {
        void *p = mem_realloc(m->bytes, n);
        if (!p)
            return SHOAL_ENOMEM;
        m->bytes = p;
        m->cap = n;
    }
    memcpy(m->bytes, bytes, n);
    m->n_bytes = n;
    return 0;
}

static struct member *add_member(struct controller_view *v, const char *name)
{
    struct member *m = v->n < CONTROLLER_VIEW_MAX ? mem_zalloc(sizeof(*m)) : NULL;
    if (!m)
        return NULL;
    memcpy(m->name, name, strlen(name) + 1);
    struct member **at = bucket_of(v, name);
    m->next = *at;
    *at = m;
    v->n++;
    return m;
}

/* A process that was replaced is heard again, while the one that replaced it runs: they are two.
 * What was under way when it ended may arrive a little later. */
static bool is_twin(const struct member *m, uint64_t run, uint64_t now_ns)
{
    return m->run != run && m->run_before == run && now_ns - m->since_ns > LATE_NS &&
           now_ns - m->heard_ns < TWIN_NS;
}

static int hear(struct controller_view *v, const struct node_state *s, const void *bytes, size_t n,
                uint64_t now_ns, enum controller_news *news, const char **name, struct err *e)
{
    if (!s->name[0] || strlen(s->name) > MAX_NAME)
        return err_set(e, SHOAL_EFORMAT, "a heartbeat has no valid member name");
    struct member *m = *bucket_of(v, s->name);
    while (m && strcmp(m->name, s->name) != 0)
        m = m->next;
    bool is_new = !m;
    if (is_new && !(m = add_member(v, s->name)))
        return err_set(e, SHOAL_ELIMIT, "no room for more members than %u", v->n);
    uint64_t run = add_text(0, s->id), shape = shape_of(s);
    if (name)
        *name = m->name;
    if (!is_new && is_twin(m, run, now_ns)) {
        *news = m->twins ? CONTROLLER_NOTHING : CONTROLLER_TWINS;
        m->twins = true;
        return 0;
    }
    if (m->run != run && m->run_before != run) {
        m->since_ns = now_ns;
        m->twins = false;
    }
    if (m->run != run)
        m->run_before = m->run;
    *news = is_new              ? CONTROLLER_JOINED
            : m->run != run     ? CONTROLLER_RESTARTED
            : m->shape != shape ? CONTROLLER_CHANGED
                                : CONTROLLER_NOTHING;
    m->run = run;
    m->shape = shape;
    m->heard_ns = now_ns;
    m->oldest_epoch = s->oldest_epoch;
    return keep_bytes(m, bytes, n) < 0 ? err_set(e, SHOAL_ENOMEM, "heartbeat") : 0;
}

int controller_view_hear(struct controller_view *v, const void *bytes, size_t n, uint64_t now_ns,
                         enum controller_news *news, const char **name, struct err *e)
{
    struct node_state s;
    struct arena a;
    *news = CONTROLLER_NOTHING;
    arena_init(&a, NODE_STATE_MAX_BYTES * 8);
    int rc = node_state_read(&s, &a, bytes, n, e);
    if (rc == 0)
        rc = hear(v, &s, bytes, n, now_ns, news, name, e);
    arena_fini(&a);
    return rc;
}

/* A silent member may only be slow, and its requests may still run. */
static void keep_epoch(struct controller_view *v, const struct member *m)
{
    uint64_t until = m->heard_ns + HOLD_NS;
    bool older = v->held_until_ns < m->heard_ns || m->oldest_epoch < v->held_epoch;
    if (m->oldest_epoch == 0)
        return;
    v->held_epoch = older ? m->oldest_epoch : v->held_epoch;
    v->held_until_ns = until > v->held_until_ns ? until : v->held_until_ns;
}

const char *controller_view_expire(struct controller_view *v, uint64_t before_ns)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct member **at = &v->buckets[i]; *at; at = &(*at)->next) {
            struct member *m = *at;
            if (m->heard_ns >= before_ns)
                continue;
            *at = m->next;
            memcpy(v->left, m->name, sizeof(v->left));
            keep_epoch(v, m);
            free_member(m);
            v->n--;
            return v->left;
        }
    return NULL;
}

void controller_view_refresh(struct controller_view *v, uint64_t now_ns)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct member *m = v->buckets[i]; m; m = m->next)
            m->heard_ns = now_ns;
}

uint32_t controller_view_count(const struct controller_view *v)
{
    return v->n;
}

/* ---- snapshots ---- */

int controller_view_take(const struct controller_view *v, struct controller_snapshot **out,
                         struct err *e)
{
    struct box *b = mem_zalloc(sizeof(*b));
    *out = NULL;
    if (!b)
        return err_set(e, SHOAL_ENOMEM, "members of the shoal");
    arena_init(&b->s.arena, MAX_SNAPSHOT_BYTES);
    b->s.now_ms = clock_unix_ms();
    b->s.clock_ms = clock_ns() / MS_NS;
    b->s.oldest_epoch = v->held_until_ns > clock_ns() ? v->held_epoch : 0;
    b->raw = arena_zalloc_n(&b->s.arena, v->n, sizeof(*b->raw));
    for (size_t i = 0; b->raw && i < BUCKETS; i++)
        for (const struct member *m = v->buckets[i]; m; m = m->next) {
            char *copy = arena_copy(&b->s.arena, (const char *)m->bytes, m->n_bytes);
            b->raw[b->n_raw++] = (struct raw){(const uint8_t *)copy, m->n_bytes};
        }
    if (b->s.arena.rc < 0) {
        int rc = err_set(e, b->s.arena.rc, "members of the shoal");
        controller_snapshot_free(&b->s);
        return rc;
    }
    *out = &b->s;
    return 0;
}

static int index_nodes(struct controller_snapshot *s)
{
    strmap_fini(&s->by_name);
    int rc = strmap_init(&s->by_name, s->n_nodes);
    for (uint32_t i = 0; rc >= 0 && i < s->n_nodes; i++)
        rc = strmap_put(&s->by_name, s->nodes[i].name, strlen(s->nodes[i].name), i);
    return rc < 0 ? rc : 0;
}

int controller_snapshot_read(struct controller_snapshot *s, struct err *e)
{
    const struct box *b = (struct box *)(void *)s;
    struct node_state *nodes = arena_zalloc_n(&s->arena, b->n_raw, sizeof(*nodes));
    const char **wanted = NULL;
    uint32_t n = 0, n_wanted = 0;
    int rc = nodes ? 0 : err_set(e, SHOAL_ENOMEM, "members of the shoal");
    for (uint32_t i = 0; rc == 0 && i < b->n_raw; i++) {
        rc = node_state_read(&nodes[n], &s->arena, b->raw[i].bytes, b->raw[i].n, e);
        if (rc < 0)
            break;
        n_wanted += nodes[n].n_wanted;
        n++;
    }
    if (rc == 0 && !(wanted = arena_zalloc_n(&s->arena, n_wanted, sizeof(*wanted))))
        rc = err_set(e, SHOAL_ENOMEM, "members of the shoal");
    if (rc < 0)
        return rc;
    s->n_nodes = s->n_wanted = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t oldest = nodes[i].oldest_epoch;
        if (oldest && (s->oldest_epoch == 0 || oldest < s->oldest_epoch))
            s->oldest_epoch = oldest;
        for (uint32_t k = 0; k < nodes[i].n_wanted; k++)
            wanted[s->n_wanted++] = nodes[i].wanted[k];
        if (nodes[i].address[0]) /* gateways have none */
            nodes[s->n_nodes++] = nodes[i];
    }
    s->nodes = nodes;
    s->wanted = wanted;
    rc = index_nodes(s);
    return rc < 0 ? err_set(e, rc, "members of the shoal") : 0;
}

int controller_snapshot_remove(struct controller_snapshot *s, const char *name)
{
    uint32_t i;
    if (!strmap_get(&s->by_name, name, strlen(name), &i))
        return SHOAL_ENOTFOUND;
    s->nodes[i] = s->nodes[--s->n_nodes];
    return index_nodes(s);
}

const struct node_state *controller_snapshot_node(const struct controller_snapshot *s,
                                                  const char *name)
{
    uint32_t i;
    return strmap_get(&s->by_name, name, strlen(name), &i) ? &s->nodes[i] : NULL;
}

void controller_snapshot_free(struct controller_snapshot *s)
{
    if (!s)
        return;
    struct box *b = (struct box *)(void *)s; /* the snapshot is its first member */
    strmap_fini(&s->by_name);
    arena_fini(&s->arena);
    mem_free(b);
}
