/* trace.c - see trace.h. */
#include "trace/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"

#define FEW_SPANS 8u /* most requests have no more */
#define MAX_NOTE_BYTES ((size_t)64 << 10)

struct trace {
    atomic_uint holds;
    pthread_mutex_t lock;
    struct trace_keeper *keeper;
    struct trace_context context; /* of the caller */
    char request[64], client[64];
    uint64_t unix_ns;
    struct arena notes;
    struct trace_span *spans, few[FEW_SPANS];
    uint32_t n, cap, n_left_out;
};

/* What turns monotonic times into those of the day. */
static uint64_t unix_offset(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - clock_ns();
}

/* With the lock. */
static bool make_room(struct trace *t)
{
    if (t->n < t->cap)
        return true;
    if (t->cap >= TRACE_MAX_SPANS)
        return false;
    struct trace_span *more = mem_zalloc_n((size_t)t->cap * 2, sizeof(*more));
    if (!more)
        return false;
    memcpy(more, t->spans, t->n * sizeof(*more));
    if (t->spans != t->few)
        mem_free(t->spans);
    t->spans = more;
    t->cap *= 2;
    return true;
}

/* With the lock. */
static const char *copied(struct trace *t, const char *text, size_t max)
{
    const size_t n = strnlen(text, max);
    char *copy = arena_zalloc(&t->notes, n + 1);
    if (copy && n > 0)
        memcpy(copy, text, n);
    return copy;
}

static uint32_t add(struct trace *t, uint32_t parent, const char *name, uint64_t start_ns,
                    uint64_t end_ns)
{
    uint32_t at = TRACE_NO_SPAN;
    pthread_mutex_lock(&t->lock);
    const char *own = make_room(t) ? copied(t, name, TRACE_MAX_TEXT) : NULL;
    if (own) {
        at = t->n++;
        t->spans[at] = (struct trace_span){.name = own,
                                           .id = trace_context_new_span(),
                                           .parent = parent < at ? parent : TRACE_ROOT,
                                           .kind = TRACE_INTERNAL,
                                           .start_ns = start_ns,
                                           .end_ns = end_ns};
    } else {
        t->n_left_out++;
    }
    pthread_mutex_unlock(&t->lock);
    return at;
}

/* By the id, so that all machines decide the same. OpenTelemetry's rule: its last 7 bytes against
 * the ratio of 2^56. */
static bool is_sampled(double ratio, const struct trace_context *c)
{
    uint64_t low = 0;
    for (int i = 9; i < 16; i++)
        low = low << 8 | c->id[i];
    return (double)low < ratio * 72057594037927936.0;
}

static void destroy(struct trace *t)
{
    arena_fini(&t->notes);
    if (t->spans != t->few)
        mem_free(t->spans);
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

struct trace *trace_open(struct trace_keeper *k, const struct trace_context *from, const char *name,
                         enum trace_kind kind, uint64_t now_ns)
{
    struct trace *t = k ? mem_zalloc(sizeof(*t)) : NULL;
    if (!t)
        return NULL;
    atomic_init(&t->holds, 1);
    pthread_mutex_init(&t->lock, NULL);
    arena_init(&t->notes, MAX_NOTE_BYTES);
    t->keeper = k;
    t->context = from && from->span ? *from : trace_context_new();
    if (!from || !from->span)
        t->context.sampled = is_sampled(k->ratio, &t->context);
    t->unix_ns = unix_offset();
    t->spans = t->few;
    t->cap = FEW_SPANS;
    if (add(t, TRACE_NO_SPAN, name, now_ns, 0) != TRACE_ROOT) {
        destroy(t);
        return NULL;
    }
    t->spans[TRACE_ROOT].parent = TRACE_NO_SPAN;
    t->spans[TRACE_ROOT].kind = kind;
    return t;
}

static void copy_name(char to[64], const char *from)
{
    const size_t n = from ? strnlen(from, 63) : 0;
    if (n > 0)
        memcpy(to, from, n);
    to[n] = '\0';
}

void trace_name(struct trace *t, const char *request, const char *client)
{
    if (!t)
        return;
    copy_name(t->request, request);
    copy_name(t->client, client);
}

struct trace *trace_ref(struct trace *t)
{
    if (t)
        atomic_fetch_add(&t->holds, 1);
    return t;
}

/* Nobody adds to it any more. */
static void complete(struct trace *t)
{
    struct trace_span *root = &t->spans[TRACE_ROOT];
    if (root->end_ns == 0)
        root->end_ns = clock_ns();
    for (uint32_t i = 1; i < t->n; i++)
        if (t->spans[i].end_ns == 0)
            t->spans[i].end_ns =
                root->end_ns > t->spans[i].start_ns ? root->end_ns : t->spans[i].start_ns;
}

void trace_unref(struct trace *t)
{
    if (!t || atomic_fetch_sub(&t->holds, 1) > 1)
        return;
    struct trace_keeper *k = t->keeper;
    t->keeper = NULL; /* keepers hold it, too, and let go for good */
    if (!k) {
        destroy(t);
        return;
    }
    complete(t);
    atomic_store(&t->holds, 1);
    k->keep(k, t);
    trace_unref(t);
}

uint32_t trace_begin(struct trace *t, uint32_t parent, const char *name, uint64_t now_ns)
{
    return t ? add(t, parent, name, now_ns, 0) : TRACE_NO_SPAN;
}

uint32_t trace_add(struct trace *t, uint32_t parent, const char *name, uint64_t start_ns,
                   uint64_t end_ns)
{
    return t ? add(t, parent, name, start_ns, end_ns > start_ns ? end_ns : start_ns)
             : TRACE_NO_SPAN;
}

/* Locks, unless there is no such span. */
static struct trace_span *span_of(struct trace *t, uint32_t span)
{
    if (!t)
        return NULL;
    pthread_mutex_lock(&t->lock);
    if (span < t->n)
        return &t->spans[span];
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void trace_end(struct trace *t, uint32_t span, uint64_t now_ns)
{
    struct trace_span *s = span_of(t, span);
    if (!s)
        return;
    if (s->end_ns == 0)
        s->end_ns = now_ns > s->start_ns ? now_ns : s->start_ns;
    pthread_mutex_unlock(&t->lock);
}

void trace_set_kind(struct trace *t, uint32_t span, enum trace_kind kind)
{
    struct trace_span *s = span_of(t, span);
    if (!s)
        return;
    s->kind = kind;
    pthread_mutex_unlock(&t->lock);
}

void trace_rename(struct trace *t, uint32_t span, const char *name)
{
    struct trace_span *s = span_of(t, span);
    if (!s)
        return;
    s->name = name;
    pthread_mutex_unlock(&t->lock);
}

/* With the lock; text: NULL: a number. */
static void put_note(struct trace *t, struct trace_span *s, const char *key, const char *text,
                     int64_t number)
{
    struct trace_note *note = arena_zalloc(&t->notes, sizeof(*note));
    const char *copy = text && note ? copied(t, text, TRACE_MAX_TEXT) : NULL;
    if (!note || (text && !copy))
        return;
    *note = (struct trace_note){.key = key, .text = copy, .number = number};
    *(s->notes ? s->notes_end : &s->notes) = note;
    s->notes_end = &note->next;
}

void trace_text(struct trace *t, uint32_t span, const char *key, const char *value)
{
    struct trace_span *s = value ? span_of(t, span) : NULL;
    if (!s)
        return;
    put_note(t, s, key, value, 0);
    pthread_mutex_unlock(&t->lock);
}

void trace_number(struct trace *t, uint32_t span, const char *key, int64_t value)
{
    struct trace_span *s = span_of(t, span);
    if (!s)
        return;
    put_note(t, s, key, NULL, value);
    pthread_mutex_unlock(&t->lock);
}

void trace_fail(struct trace *t, uint32_t span, const char *why)
{
    struct trace_span *s = span_of(t, span);
    if (!s)
        return;
    s->failed = true;
    if (why)
        put_note(t, s, "error.type", why, 0);
    pthread_mutex_unlock(&t->lock);
}

struct trace_context trace_context_of(struct trace *t, uint32_t span)
{
    struct trace_context c = t->context;
    pthread_mutex_lock(&t->lock);
    c.span = t->spans[span < t->n ? span : TRACE_ROOT].id;
    pthread_mutex_unlock(&t->lock);
    return c;
}

void trace_at_write(const struct trace_at *at, char out[TRACE_CONTEXT_CHARS + 1])
{
    const struct trace_context c = at->trace ? trace_context_of(at->trace, at->span) : at->context;
    out[0] = '\0';
    if (c.span)
        trace_context_write(out, &c);
}

struct trace_view trace_look(const struct trace *t)
{
    return (struct trace_view){.from = t->context,
                               .request = t->request,
                               .client = t->client,
                               .spans = t->spans,
                               .n_spans = t->n,
                               .n_left_out = t->n_left_out,
                               .unix_ns = t->unix_ns};
}

size_t trace_bytes(const struct trace *t)
{
    return sizeof(*t) + t->notes.used_bytes + (t->spans != t->few ? t->cap * sizeof(*t->spans) : 0);
}
