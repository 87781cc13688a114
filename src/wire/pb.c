/* pb.c - see pb.h. */
#include "wire/pb.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static void *heap_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return mem_alloc(n);
}

static void heap_free(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

ProtobufCAllocator *pb_heap(void)
{
    static const ProtobufCAllocator heap = {heap_alloc, heap_free, NULL};
    return (ProtobufCAllocator *)(uintptr_t)&heap; /* the library only reads it */
}

int pb_put(struct buf *out, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = mem_alloc(n + 1);
    if (!p)
        return SHOAL_ENOMEM;
    protobuf_c_message_pack(m, p);
    buf_put(out, p, n);
    mem_free(p);
    return out->rc;
}

/* ---- members ---- */

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_INT64:
        return 8;
    default: /* the proto files use no others */
        return 4;
    }
}

static const char *member(const ProtobufCMessage *m, size_t offset)
{
    return (const char *)m + offset;
}

static size_t count_of(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    size_t n;
    memcpy(&n, member(m, f->quantifier_offset), sizeof(n));
    return n;
}

static const char *list_of(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const char *p;
    memcpy(&p, member(m, f->offset), sizeof(p));
    return p;
}

static const ProtobufCMessage *message_at(const char *at)
{
    const ProtobufCMessage *m;
    memcpy(&m, at, sizeof(m));
    return m;
}

static bool is_set(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    static const char zeros[8];
    const char *at = member(m, f->offset), *text;
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return count_of(m, f) > 0;
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t chosen;
        memcpy(&chosen, member(m, f->quantifier_offset), sizeof(chosen));
        return chosen == f->id;
    }
    if (f->type != PROTOBUF_C_TYPE_STRING)
        return memcmp(at, zeros, size_of(f)) != 0;
    memcpy(&text, at, sizeof(text));
    return text && text[0];
}

/* Of a list of numbers, a message is only the frame. */
static bool is_list(const ProtobufCMessageDescriptor *d)
{
    return d->n_fields == 1 && strcmp(d->fields[0].name, "values") == 0;
}

static bool is_map(const ProtobufCFieldDescriptor *f)
{
    const ProtobufCMessageDescriptor *d = f->descriptor;
    return f->type == PROTOBUF_C_TYPE_MESSAGE && f->label == PROTOBUF_C_LABEL_REPEATED &&
           d->n_fields == 2 && strcmp(d->fields[0].name, "key") == 0 &&
           strcmp(d->fields[1].name, "value") == 0;
}

/* ---- to JSON ---- */

static void put_list(struct json_out *j, const ProtobufCMessage *m,
                     const ProtobufCFieldDescriptor *f);

static void put_message(struct json_out *j, const ProtobufCMessage *m)
{
    if (is_list(m->descriptor)) {
        put_list(j, m, &m->descriptor->fields[0]);
        return;
    }
    json_out_object(j);
    pb_members(j, m);
    json_out_object_end(j);
}

static void put_value(struct json_out *j, const ProtobufCFieldDescriptor *f, const char *at)
{
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        float f;
        double d;
        const char *text;
    } v;
    memcpy(&v, at, size_of(f));
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        json_out_str(j, v.text);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        put_message(j, message_at(at));
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        json_out_num(j, v.d); /* NaN becomes null: missing */
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        json_out_float(j, v.f);
        break;
    case PROTOBUF_C_TYPE_INT64:
        json_out_int(j, v.i64);
        break;
    case PROTOBUF_C_TYPE_UINT32:
        json_out_uint(j, v.u32);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        json_out_bool(j, v.i32 != 0);
        break;
    default:
        json_out_int(j, v.i32);
        break;
    }
}

static void put_list(struct json_out *j, const ProtobufCMessage *m,
                     const ProtobufCFieldDescriptor *f)
{
    const char *p = list_of(m, f);
    json_out_array(j);
    for (size_t i = 0, n = count_of(m, f); i < n; i++)
        put_value(j, f, p + i * size_of(f));
    json_out_array_end(j);
}

/* Keys are int32: the one map there is. */
static void put_map(struct json_out *j, const ProtobufCMessage *m,
                    const ProtobufCFieldDescriptor *f)
{
    const char *p = list_of(m, f);
    json_out_object(j);
    for (size_t i = 0, n = count_of(m, f); i < n; i++) {
        const ProtobufCMessage *entry = message_at(p + i * sizeof(void *));
        const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;
        char key[16];
        int32_t id;
        memcpy(&id, member(entry, fields[0].offset), sizeof(id));
        snprintf(key, sizeof(key), "%d", id);
        json_out_key(j, key);
        put_value(j, &fields[1], member(entry, fields[1].offset));
    }
    json_out_object_end(j);
}

void pb_members(struct json_out *j, const ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (!is_set(m, f))
            continue;
        json_out_key(j, f->name);
        if (is_map(f))
            put_map(j, m, f);
        else if (f->label == PROTOBUF_C_LABEL_REPEATED)
            put_list(j, m, f);
        else
            put_value(j, f, member(m, f->offset));
    }
}

/* ---- from JSON ---- */

static uint32_t to_u32(double v)
{
    return v >= 4294967295.0 ? UINT32_MAX : v > 0 ? (uint32_t)v : 0;
}

static int read_value(const ProtobufCFieldDescriptor *f, char *at, const cJSON *v)
{
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *m = NULL;
        int rc = pb_from_json(&m, f->descriptor, v);
        memcpy(at, &m, sizeof(m));
        return rc;
    }
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = cJSON_GetStringValue(v);
        char *copy = mem_strdup(text ? text : "");
        memcpy(at, &copy, sizeof(copy));
        return copy ? 0 : SHOAL_ENOMEM;
    }
    double d = cJSON_IsNumber(v) ? v->valuedouble : 0;
    float single = (float)d;
    uint32_t whole = to_u32(d);
    if (f->type == PROTOBUF_C_TYPE_DOUBLE)
        memcpy(at, &d, sizeof(d));
    else if (f->type == PROTOBUF_C_TYPE_FLOAT)
        memcpy(at, &single, sizeof(single));
    else
        memcpy(at, &whole, sizeof(whole));
    return 0;
}

/* v: an array, or one value alone.  The count grows with what is there, for whoever frees it. */
static int read_list(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, const cJSON *v)
{
    bool many = cJSON_IsArray(v);
    size_t n = many ? (size_t)cJSON_GetArraySize(v) : 1, size = size_of(f);
    char *list = n > 0 ? mem_zalloc_n(n, size) : NULL;
    if (n == 0)
        return 0;
    if (!list)
        return SHOAL_ENOMEM;
    memcpy((char *)m + f->offset, &list, sizeof(list));
    const cJSON *one = many ? v->child : v;
    for (size_t i = 0; i < n; i++, one = one->next) {
        int rc = read_value(f, list + i * size, one);
        if (rc < 0)
            return rc;
        size_t have = i + 1;
        memcpy((char *)m + f->quantifier_offset, &have, sizeof(have));
    }
    return 0;
}

static const cJSON *find_value(const ProtobufCMessageDescriptor *d,
                               const ProtobufCFieldDescriptor *f, const cJSON *v)
{
    static const char *const lists[] = {"embedding", "scores", "score"};
    const cJSON *x = NULL;
    if (!is_list(d))
        return cJSON_GetObjectItemCaseSensitive(v, f->name);
    for (size_t i = 0; !x && i < sizeof(lists) / sizeof(lists[0]); i++)
        x = cJSON_GetObjectItemCaseSensitive(v, lists[i]);
    return x;
}

int pb_from_json(ProtobufCMessage **out, const ProtobufCMessageDescriptor *d, const cJSON *v)
{
    ProtobufCMessage *m = mem_zalloc(d->sizeof_message);
    int rc = 0;
    *out = NULL;
    if (!m)
        return SHOAL_ENOMEM;
    d->message_init(m);
    for (unsigned i = 0; i < d->n_fields && rc == 0; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        const cJSON *x = find_value(d, f, v);
        if (x && !cJSON_IsNull(x))
            rc = f->label == PROTOBUF_C_LABEL_REPEATED ? read_list(m, f, x)
                                                       : read_value(f, (char *)m + f->offset, x);
    }
    if (rc < 0) {
        protobuf_c_message_free_unpacked(m, pb_heap());
        return rc;
    }
    *out = m;
    return 0;
}
