/* sparkplug.c - see sparkplug.h. */
#include "mqtt/sparkplug.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include <sparkplug/sparkplug_b.pb-c.h>
#include "wire/pb.h"

#define MAX_MESSAGE_BYTES ((size_t)64 << 20) /* decoded */
#define SLOTS 131072u                        /* twice SPARKPLUG_MAX_NAMES, a power of two */

/* From the specification: signed integers are sent as unsigned ones of the same bits. */
enum { TYPE_INT8 = 1, TYPE_INT16 = 2, TYPE_INT32 = 3, TYPE_INT64 = 4 };

struct alias {
    uint64_t key;   /* of node and number; 0: empty */
    uint64_t owner; /* hash of node and device whose birth gave it */
    char *name;
    uint32_t datatype;
};

struct sparkplug {
    struct alias *slots; /* [SLOTS], open addressing */
    uint32_t n;
};

static struct str level(const char **p)
{
    size_t n = strcspn(*p, "/");
    struct str s = {*p, n};
    *p += n + ((*p)[n] == '/');
    return s;
}

bool sparkplug_topic_read(struct sparkplug_topic *out, const char *topic)
{
    const char *p = topic;
    struct str space = level(&p), kind;
    *out = (struct sparkplug_topic){.kind = SPARKPLUG_OTHER};
    if (!str_is(space, "spBv1.0"))
        return false;
    out->group = level(&p);
    kind = level(&p);
    out->node = level(&p);
    out->device = level(&p);
    if (out->node.n == 0 || *p)
        return false;
    bool device = kind.n > 1 && kind.p[0] == 'D';
    if (device != (out->device.n > 0))
        return false;
    struct str tail = kind.n > 1 ? (struct str){kind.p + 1, kind.n - 1} : kind;
    if (device || (kind.n > 1 && kind.p[0] == 'N'))
        out->kind = str_is(tail, "BIRTH")   ? SPARKPLUG_BIRTH
                    : str_is(tail, "DATA")  ? SPARKPLUG_DATA
                    : str_is(tail, "DEATH") ? SPARKPLUG_DEATH
                                            : SPARKPLUG_OTHER;
    return true;
}

int sparkplug_create(struct sparkplug **out, struct err *e)
{
    struct sparkplug *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (s)
        s->slots = mem_zalloc_n(SLOTS, sizeof(*s->slots));
    if (!s || !s->slots) {
        sparkplug_destroy(s);
        return err_set(e, SHOAL_ENOMEM, "Sparkplug");
    }
    *out = s;
    return 0;
}

void sparkplug_destroy(struct sparkplug *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->slots && i < SLOTS; i++)
        mem_free(s->slots[i].name);
    mem_free(s->slots);
    mem_free(s);
}

/* ---- names of numbers ---- */

static uint64_t node_hash(const struct sparkplug_topic *t)
{
    return hash_bytes(t->node.p, t->node.n, hash_bytes(t->group.p, t->group.n, 11));
}

/* The slot of a number, or the empty one where it would be. */
static struct alias *find(struct sparkplug *s, uint64_t node, uint64_t number)
{
    uint64_t key = hash_bytes(&number, sizeof(number), node) | 1;
    size_t i = (size_t)key & (SLOTS - 1);
    while (s->slots[i].key && s->slots[i].key != key)
        i = (i + 1) & (SLOTS - 1);
    return &s->slots[i];
}

static int learn(struct sparkplug *s, uint64_t node, uint64_t owner, uint64_t number,
                 const Sparkplug__Payload__Metric *m)
{
    struct alias *a = find(s, node, number);
    if (!a->key && s->n == SPARKPLUG_MAX_NAMES)
        return SHOAL_ELIMIT;
    size_t n = strlen(m->name);
    char *name = mem_strndup(m->name, n < PAYLOAD_MAX_NAME ? n : PAYLOAD_MAX_NAME - 1);
    if (!name)
        return SHOAL_ENOMEM;
    if (!a->key)
        s->n++;
    mem_free(a->name);
    *a = (struct alias){hash_bytes(&number, sizeof(number), node) | 1, owner, name,
                        m->has_datatype ? m->datatype : 0};
    return 0;
}

/* ---- values ---- */

static double value_of(const Sparkplug__Payload__Metric *m, uint32_t type)
{
    if (m->has_is_null && m->is_null)
        return NAN;
    switch (m->value_case) {
    case SPARKPLUG__PAYLOAD__METRIC__VALUE_INT_VALUE:
        return type == TYPE_INT8    ? (int8_t)m->int_value
               : type == TYPE_INT16 ? (int16_t)m->int_value
               : type == TYPE_INT32 ? (int32_t)m->int_value
                                    : (double)m->int_value;
    case SPARKPLUG__PAYLOAD__METRIC__VALUE_LONG_VALUE:
        return type == TYPE_INT64 ? (double)(int64_t)m->long_value : (double)m->long_value;
    case SPARKPLUG__PAYLOAD__METRIC__VALUE_FLOAT_VALUE:
        return m->float_value;
    case SPARKPLUG__PAYLOAD__METRIC__VALUE_DOUBLE_VALUE:
        return m->double_value;
    case SPARKPLUG__PAYLOAD__METRIC__VALUE_BOOLEAN_VALUE:
        return m->boolean_value ? 1 : 0;
    default:
        return NAN;
    }
}

static bool has_number(const Sparkplug__Payload__Metric *m)
{
    return (m->has_is_null && m->is_null) ||
           (m->value_case != SPARKPLUG__PAYLOAD__METRIC__VALUE__NOT_SET &&
            m->value_case != SPARKPLUG__PAYLOAD__METRIC__VALUE_STRING_VALUE);
}

static int read_metric(struct sparkplug *s, const struct sparkplug_topic *t, uint64_t node,
                       const Sparkplug__Payload *p, const Sparkplug__Payload__Metric *m,
                       payload_fn fn, void *ctx)
{
    const char *name = m->name;
    uint32_t type = m->has_datatype ? m->datatype : 0;
    uint64_t owner = hash_bytes(t->device.p, t->device.n, node);
    int rc = 0;
    if (t->kind == SPARKPLUG_BIRTH && name && m->has_alias)
        rc = learn(s, node, owner, m->alias, m);
    if (rc < 0)
        return rc;
    if (m->has_alias && (!name || !name[0])) {
        const struct alias *a = find(s, node, m->alias);
        if (!a->key || a->owner != owner)
            return SHOAL_ENOTFOUND;
        name = a->name;
        type = type ? type : a->datatype;
    }
    if (!name || !name[0] || !has_number(m) || strcmp(name, "bdSeq") == 0)
        return 0;
    uint64_t ms = m->has_timestamp ? m->timestamp : p->has_timestamp ? p->timestamp : 0;
    const struct payload_reading r = {.name = {name, strnlen(name, PAYLOAD_MAX_NAME - 1)},
                                      .value = value_of(m, type),
                                      .time_ms = ms < INT64_MAX ? (int64_t)ms : 0,
                                      .is_past = m->has_is_historical && m->is_historical};
    fn(ctx, &r);
    return 0;
}

int sparkplug_read(struct sparkplug *s, const struct sparkplug_topic *t, const void *bytes,
                   size_t n, payload_fn fn, void *ctx, struct err *e)
{
    struct arena a;
    char path[96];
    int rc, worst = 0;
    if (t->kind != SPARKPLUG_BIRTH && t->kind != SPARKPLUG_DATA)
        return 0;
    if (pb_check(&sparkplug__payload__descriptor, bytes, n, SPARKPLUG_MAX_FIELDS, path,
                 sizeof(path)) < 0)
        return err_set(e, SHOAL_ELIMIT, "it has NUL in a name or more than %u fields",
                       SPARKPLUG_MAX_FIELDS);
    arena_init(&a, MAX_MESSAGE_BYTES);
    const Sparkplug__Payload *p = pb_unpack(&sparkplug__payload__descriptor, &a, bytes, n);
    uint64_t node = node_hash(t);
    if (!p)
        worst = err_set(e, a.rc < 0 ? a.rc : SHOAL_EFORMAT, "it is not a payload of Sparkplug B");
    for (size_t i = 0; p && i < p->n_metrics; i++) {
        rc = read_metric(s, t, node, p, p->metrics[i], fn, ctx);
        if (rc < 0 && worst == 0)
            worst = err_set(e, rc, "%s",
                            rc == SHOAL_ENOTFOUND ? "its birth message was missed"
                            : rc == SHOAL_ELIMIT  ? "too many metrics have numbers"
                                                  : "out of memory");
    }
    arena_fini(&a);
    return worst;
}

void sparkplug_put_rebirth(struct buf *out, uint64_t now_ms)
{
    Sparkplug__Payload p = SPARKPLUG__PAYLOAD__INIT;
    Sparkplug__Payload__Metric m = SPARKPLUG__PAYLOAD__METRIC__INIT, *list[] = {&m};
    m.name = pb_text("Node Control/Rebirth");
    m.has_timestamp = p.has_timestamp = true;
    m.timestamp = p.timestamp = now_ms;
    m.has_datatype = true;
    m.datatype = 11; /* Boolean */
    m.value_case = SPARKPLUG__PAYLOAD__METRIC__VALUE_BOOLEAN_VALUE;
    m.boolean_value = 1;
    p.metrics = list;
    p.n_metrics = 1;
    int rc = pb_put(out, &p.base);
    if (rc < 0)
        out->rc = rc;
}
