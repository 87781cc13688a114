/* reflection.c - see reflection.h.
 *
 * The set is walked in its wire format: a few kilobytes, asked for once by each client. */
#include "gateway/grpc/reflection.h"

#include <stdio.h>
#include <string.h>

#include <grpc/reflection/v1/reflection.pb-c.h>

#include "base/rd.h"
#include "gateway/grpc/grpc_status.h"
#include "wire/pb.h"

#define MAX_FILES 32u
#define MAX_SERVICES 16u
#define MAX_NAME 96u

/* The named items of a file. */
enum kind { KIND_NONE, KIND_FILE, KIND_MESSAGE, KIND_ENUM, KIND_SERVICE, KIND_LEAF };

struct part { /* a field of bytes */
    uint32_t id;
    const char *p;
    size_t n;
};

static uint64_t varint(struct rd *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = rd_u8(r);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            break;
    }
    return v;
}

/* The next field that is bytes; others are passed over. */
static bool next_part(struct rd *r, struct part *out)
{
    while (rd_left(r) > 0 && !r->bad) {
        uint64_t tag = varint(r);
        switch (tag & 7) {
        case 0:
            (void)varint(r);
            break;
        case 1:
            (void)rd_take(r, 8);
            break;
        case 5:
            (void)rd_take(r, 4);
            break;
        case 2: {
            uint64_t n = varint(r);
            const uint8_t *p = rd_take(r, n);
            *out = (struct part){(uint32_t)(tag >> 3), (const char *)p, (size_t)n};
            return p != NULL;
        }
        default:
            return false;
        }
    }
    return false;
}

/* The first part with this id, or an empty one. */
static struct part part_of(struct part whole, uint32_t id)
{
    struct rd r = rd_make(whole.p, whole.n);
    struct part f;
    while (next_part(&r, &f))
        if (f.id == id)
            return f;
    return (struct part){0, "", 0};
}

static bool is_text(struct part f, const char *s)
{
    return f.n == strlen(s) && memcmp(f.p, s, f.n) == 0;
}

/* From descriptor.proto: which parts have names. */
static enum kind kind_of(enum kind parent, uint32_t id)
{
    static const struct {
        uint8_t parent, id, kind;
    } table[] = {{KIND_FILE, 4, KIND_MESSAGE}, {KIND_FILE, 5, KIND_ENUM},
                 {KIND_FILE, 6, KIND_SERVICE}, {KIND_FILE, 7, KIND_LEAF},
                 {KIND_MESSAGE, 2, KIND_LEAF}, {KIND_MESSAGE, 3, KIND_MESSAGE},
                 {KIND_MESSAGE, 4, KIND_ENUM}, {KIND_MESSAGE, 6, KIND_LEAF},
                 {KIND_MESSAGE, 8, KIND_LEAF}, {KIND_SERVICE, 2, KIND_LEAF}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].parent == parent && table[i].id == id)
            return (enum kind)table[i].kind;
    return KIND_NONE;
}

/* name is relative to whole.  As deep as our own files nest. */
static enum kind find_in(enum kind parent, struct part whole, const char *name)
{
    struct rd r = rd_make(whole.p, whole.n);
    struct part f;
    while (next_part(&r, &f)) {
        enum kind k = kind_of(parent, f.id);
        struct part own = k ? part_of(f, 1) : f;
        if (!k || own.n == 0 || strncmp(name, own.p, own.n) != 0)
            continue;
        if (name[own.n] == '\0')
            return k;
        enum kind inner = name[own.n] == '.' ? find_in(k, f, name + own.n + 1) : KIND_NONE;
        if (inner)
            return inner;
    }
    return KIND_NONE;
}

static enum kind find_symbol(struct part file, const char *name)
{
    struct part package = part_of(file, 2);
    if (package.n > 0) {
        if (strncmp(name, package.p, package.n) != 0 || name[package.n] != '.')
            return KIND_NONE;
        name += package.n + 1;
    }
    return find_in(KIND_FILE, file, name);
}

static size_t list_files(struct part *files)
{
    struct rd r = rd_make(proto_set, proto_set_bytes);
    size_t n = 0;
    while (n < MAX_FILES && next_part(&r, &files[n]))
        n += files[n].id == 1;
    return n;
}

static size_t list_services(char names[][MAX_NAME])
{
    struct part files[MAX_FILES], f;
    size_t n_files = list_files(files), n = 0;
    for (size_t i = 0; i < n_files; i++) {
        struct rd r = rd_make(files[i].p, files[i].n);
        struct part package = part_of(files[i], 2);
        while (n < MAX_SERVICES && next_part(&r, &f)) {
            if (kind_of(KIND_FILE, f.id) != KIND_SERVICE)
                continue;
            struct part own = part_of(f, 1);
            snprintf(names[n++], MAX_NAME, "%.*s.%.*s", (int)package.n, package.p, (int)own.n,
                     own.p);
        }
    }
    return n;
}

void reflection_each_service(void (*fn)(void *ctx, const char *name), void *ctx)
{
    char names[MAX_SERVICES][MAX_NAME];
    size_t n = list_services(names);
    for (size_t i = 0; i < n; i++)
        fn(ctx, names[i]);
}

bool reflection_has_service(const char *name)
{
    char names[MAX_SERVICES][MAX_NAME];
    for (size_t i = list_services(names); i-- > 0;)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* ---- answers ---- */

struct answer {
    Grpc__Reflection__V1__ServerReflectionResponse m;
    Grpc__Reflection__V1__FileDescriptorResponse files;
    ProtobufCBinaryData list[MAX_FILES];
    Grpc__Reflection__V1__ExtensionNumberResponse numbers;
    Grpc__Reflection__V1__ListServiceResponse services;
    Grpc__Reflection__V1__ServiceResponse service[MAX_SERVICES], *service_list[MAX_SERVICES];
    char names[MAX_SERVICES][MAX_NAME];
    Grpc__Reflection__V1__ErrorResponse error;
    char text[256];
};

static void fail(struct answer *a, enum grpc_status status, const char *what, const char *name)
{
    snprintf(a->text, sizeof(a->text), "%s%s%.150s", what, name[0] ? ": " : "", name);
    a->m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    a->m.error_response = &a->error;
    a->error.error_code = (int32_t)status;
    a->error.error_message = a->text;
}

/* The file, then all that it imports. */
static void give_files(struct answer *a, const struct part *files, size_t n, size_t first)
{
    size_t order[MAX_FILES] = {first}, n_order = 1;
    uint64_t seen = (uint64_t)1 << first;
    for (size_t i = 0; i < n_order; i++) {
        struct part whole = files[order[i]], f;
        struct rd r = rd_make(whole.p, whole.n);
        a->list[i] = pb_bytes(whole.p, whole.n);
        while (next_part(&r, &f))
            for (size_t k = 0; f.id == 3 && k < n; k++) {
                struct part name = part_of(files[k], 1);
                if (name.n != f.n || memcmp(name.p, f.p, f.n) != 0 || seen >> k & 1)
                    continue;
                seen |= (uint64_t)1 << k;
                order[n_order++] = k;
            }
    }
    a->m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    a->m.file_descriptor_response = &a->files;
    a->files.file_descriptor_proto = a->list;
    a->files.n_file_descriptor_proto = n_order;
}

static void answer_file(struct answer *a, const char *name, bool symbol)
{
    struct part files[MAX_FILES];
    size_t n = list_files(files), i = 0;
    while (i < n && !(symbol ? find_symbol(files[i], name) != KIND_NONE
                             : is_text(part_of(files[i], 1), name)))
        i++;
    if (i < n)
        give_files(a, files, n, i);
    else
        fail(a, GRPC_NOT_FOUND, symbol ? "no file has this symbol" : "no such file", name);
}

/* Our messages have no extensions. */
static void answer_numbers(struct answer *a, char *type)
{
    struct part files[MAX_FILES];
    size_t n = list_files(files), i = 0;
    while (i < n && find_symbol(files[i], type) != KIND_MESSAGE)
        i++;
    if (i == n) {
        fail(a, GRPC_NOT_FOUND, "no such message", type);
        return;
    }
    a->m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    a->m.all_extension_numbers_response = &a->numbers;
    a->numbers.base_type_name = type;
}

static void answer_services(struct answer *a)
{
    size_t n = list_services(a->names);
    for (size_t i = 0; i < n; i++) {
        grpc__reflection__v1__service_response__init(&a->service[i]);
        a->service[i].name = a->names[i];
        a->service_list[i] = &a->service[i];
    }
    a->m.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    a->m.list_services_response = &a->services;
    a->services.service = a->service_list;
    a->services.n_service = n;
}

static void answer_request(struct answer *a, Grpc__Reflection__V1__ServerReflectionRequest *q)
{
    grpc__reflection__v1__server_reflection_response__init(&a->m);
    grpc__reflection__v1__file_descriptor_response__init(&a->files);
    grpc__reflection__v1__extension_number_response__init(&a->numbers);
    grpc__reflection__v1__list_service_response__init(&a->services);
    grpc__reflection__v1__error_response__init(&a->error);
    a->m.valid_host = q->host;
    a->m.original_request = q;
#define ASKS(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##name
    switch (q->message_request_case) {
    case ASKS(FILE_BY_FILENAME):
        answer_file(a, q->file_by_filename, false);
        break;
    case ASKS(FILE_CONTAINING_SYMBOL):
        answer_file(a, q->file_containing_symbol, true);
        break;
    case ASKS(FILE_CONTAINING_EXTENSION):
        fail(a, GRPC_NOT_FOUND, "no file has this extension",
             q->file_containing_extension->containing_type);
        break;
    case ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE):
        answer_numbers(a, q->all_extension_numbers_of_type);
        break;
    case ASKS(LIST_SERVICES):
        answer_services(a);
        break;
    default:
        fail(a, GRPC_INVALID_ARGUMENT, "unknown kind of reflection request", "");
        break;
    }
#undef ASKS
}

int reflection_answer(struct buf *out, const uint8_t *p, size_t n)
{
    struct answer a;
    Grpc__Reflection__V1__ServerReflectionRequest *q =
        grpc__reflection__v1__server_reflection_request__unpack(pb_heap(), n, p);
    if (!q)
        return SHOAL_EFORMAT;
    answer_request(&a, q);
    int rc = pb_put(out, &a.m.base);
    grpc__reflection__v1__server_reflection_request__free_unpacked(q, pb_heap());
    return rc;
}
