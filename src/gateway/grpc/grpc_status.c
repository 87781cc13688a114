/* grpc_status.c - see grpc_status.h. */
#include "gateway/grpc/grpc_status.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <google/rpc/error_details.pb-c.h>
#include <google/rpc/status.pb-c.h>
#include <openssl/evp.h>

#include "base/mem.h"
#include "wire/pb.h"

#define MAX_DETAILS 4u
#define MAX_DETAILS_BYTES ((size_t)16 << 10)

const char *grpc_status_name(enum grpc_status s)
{
    static const char *const names[] = {"OK",
                                        "CANCELLED",
                                        "UNKNOWN",
                                        "INVALID_ARGUMENT",
                                        "DEADLINE_EXCEEDED",
                                        "NOT_FOUND",
                                        "ALREADY_EXISTS",
                                        "PERMISSION_DENIED",
                                        "RESOURCE_EXHAUSTED",
                                        "FAILED_PRECONDITION",
                                        "ABORTED",
                                        "OUT_OF_RANGE",
                                        "UNIMPLEMENTED",
                                        "INTERNAL",
                                        "UNAVAILABLE",
                                        "DATA_LOSS",
                                        "UNAUTHENTICATED"};
    return (size_t)s < sizeof(names) / sizeof(names[0]) ? names[s] : "UNKNOWN";
}

enum grpc_status grpc_status_of(int http)
{
    switch (http) {
    case 200:
        return GRPC_OK;
    case 400:
    case 413:
        return GRPC_INVALID_ARGUMENT;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_NOT_FOUND;
    case 409:
        return GRPC_ABORTED;
    case 429:
        return GRPC_RESOURCE_EXHAUSTED;
    case 499:
        return GRPC_CANCELLED;
    case 503:
        return GRPC_UNAVAILABLE;
    case 504:
        return GRPC_DEADLINE_EXCEEDED;
    default:
        return GRPC_INTERNAL;
    }
}

/* ---- details ---- */

struct details {
    Google__Protobuf__Any any[MAX_DETAILS], *list[MAX_DETAILS];
    struct buf bytes[MAX_DETAILS];
    char type[MAX_DETAILS][64];
    size_t n;
    int rc;
};

static void add(struct details *d, const ProtobufCMessage *m)
{
    size_t i = d->n++;
    Google__Protobuf__Any *a = &d->any[i];
    google__protobuf__any__init(a);
    buf_init(&d->bytes[i], MAX_DETAILS_BYTES);
    int rc = pb_put(&d->bytes[i], m);
    if (d->rc == 0)
        d->rc = rc;
    snprintf(d->type[i], sizeof(d->type[i]), "type.googleapis.com/%s", m->descriptor->name);
    a->type_url = d->type[i];
    a->value.data = (uint8_t *)d->bytes[i].data;
    a->value.len = d->bytes[i].len;
    d->list[i] = a;
}

static void add_info(struct details *d, const struct grpc_error *e, const char *reason)
{
    Google__Rpc__ErrorInfo m = GOOGLE__RPC__ERROR_INFO__INIT;
    Google__Rpc__ErrorInfo__MetadataEntry model = GOOGLE__RPC__ERROR_INFO__METADATA_ENTRY__INIT,
                                          *list[] = {&model};
    m.reason = pb_text(reason);
    m.domain = pb_text("shoal");
    model.key = pb_text("model");
    model.value = pb_text(e->model);
    if (e->model && e->model[0]) {
        m.metadata = list;
        m.n_metadata = 1;
    }
    add(d, &m.base);
}

static void add_violation(struct details *d, const struct grpc_error *e, const char *reason)
{
    Google__Rpc__BadRequest m = GOOGLE__RPC__BAD_REQUEST__INIT;
    Google__Rpc__BadRequest__FieldViolation one = GOOGLE__RPC__BAD_REQUEST__FIELD_VIOLATION__INIT,
                                            *list[] = {&one};
    one.field = pb_text(e->field);
    one.description = pb_text(e->message);
    one.reason = pb_text(reason);
    m.field_violations = list;
    m.n_field_violations = 1;
    add(d, &m.base);
}

static void add_retry(struct details *d, uint32_t seconds)
{
    Google__Rpc__RetryInfo m = GOOGLE__RPC__RETRY_INFO__INIT;
    Google__Protobuf__Duration delay = GOOGLE__PROTOBUF__DURATION__INIT;
    delay.seconds = seconds;
    m.retry_delay = &delay;
    add(d, &m.base);
}

static void add_resource(struct details *d, const struct grpc_error *e)
{
    Google__Rpc__ResourceInfo m = GOOGLE__RPC__RESOURCE_INFO__INIT;
    m.resource_type = pb_text("model");
    m.resource_name = pb_text(e->model);
    m.description = pb_text(e->message);
    add(d, &m.base);
}

/* Base64 without padding, as gRPC requires of senders. */
static int put_base64(struct buf *out, const struct buf *bytes)
{
    size_t cap = (bytes->len + 2) / 3 * 4 + 1;
    unsigned char *b = mem_alloc(cap);
    if (!b)
        return SHOAL_ENOMEM;
    int n = EVP_EncodeBlock(b, (const unsigned char *)buf_str(bytes), (int)bytes->len);
    while (n > 0 && b[n - 1] == '=')
        n--;
    buf_put(out, b, (size_t)n);
    mem_free(b);
    return out->rc;
}

int grpc_details(struct buf *out, const struct grpc_error *e)
{
    struct details d = {.n = 0};
    Google__Rpc__Status m = GOOGLE__RPC__STATUS__INIT;
    const char *given = e->reason && e->reason[0] ? e->reason : grpc_status_name(e->status);
    char reason[64];
    size_t n = 0;
    for (; given[n] && n + 1 < sizeof(reason); n++)
        reason[n] = (char)toupper((unsigned char)given[n]);
    reason[n] = '\0';
    add_info(&d, e, reason);
    if (e->retry_s > 0)
        add_retry(&d, e->retry_s);
    if (e->status == GRPC_INVALID_ARGUMENT && e->field && e->field[0])
        add_violation(&d, e, reason);
    if (e->status == GRPC_NOT_FOUND && strcmp(reason, "MODEL_NOT_FOUND") == 0)
        add_resource(&d, e);
    m.code = (int32_t)e->status;
    m.message = pb_text(e->message);
    m.details = d.list;
    m.n_details = d.n;
    struct buf bytes;
    buf_init(&bytes, MAX_DETAILS_BYTES);
    int rc = d.rc == 0 ? pb_put(&bytes, &m.base) : d.rc;
    if (rc == 0)
        rc = put_base64(out, &bytes);
    buf_fini(&bytes);
    for (size_t i = 0; i < d.n; i++)
        buf_fini(&d.bytes[i]);
    return rc;
}

void grpc_message_text(char *out, size_t cap, const char *msg)
{
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)msg; *p && n + 4 < cap; p++)
        if (*p < 0x20 || *p > 0x7e || *p == '%')
            n += (size_t)snprintf(out + n, cap - n, "%%%02X", *p);
        else
            out[n++] = (char)*p;
    out[n] = '\0';
}
