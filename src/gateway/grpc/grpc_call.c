/* grpc_call.c - see grpc_call.h. */
#include "gateway/grpc/grpc_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/call/call.h"

#define MAX_ZIPPED_BYTES ((size_t)64 << 20)

/* ---- answers ---- */

void grpc_call_begin(struct call *c)
{
    bool gzip = grpc_accepts_gzip(http_header(c->req, "grpc-accept-encoding"));
    const struct http_header headers[] = {{"grpc-accept-encoding", GRPC_ENCODINGS},
                                          {"grpc-encoding", "gzip"}};
    if (!c->began)
        call_begin_with(c, "application/grpc", headers, gzip ? 2 : 1);
}

void grpc_call_finish(struct call *c)
{
    const struct http_header ok = {"grpc-status", "0"};
    if (!c->req)
        return;
    grpc_call_begin(c);
    call_end_trailers(c, &ok, 1);
}

struct ending {
    char code[8], text[512];
    struct buf details;
    struct http_header trailers[3];
    size_t n;
};

static void ending_init(struct ending *x, const struct grpc_error *e)
{
    snprintf(x->code, sizeof(x->code), "%d", (int)e->status);
    grpc_message_text(x->text, sizeof(x->text), e->message);
    buf_init(&x->details, (size_t)8 << 10);
    x->n = grpc_details(&x->details, e) == 0 ? 3 : 2; /* without memory, the code at least */
    x->trailers[0] = (struct http_header){"grpc-status", x->code};
    x->trailers[1] = (struct http_header){"grpc-message", x->text};
    x->trailers[2] = (struct http_header){"grpc-status-details-bin", buf_str(&x->details)};
}

void grpc_call_fail(struct call *c, const struct grpc_error *e)
{
    struct ending x;
    if (!c->req)
        return;
    grpc_call_begin(c);
    ending_init(&x, e);
    call_end_trailers(c, x.trailers, x.n);
    buf_fini(&x.details);
}

void grpc_call_fail_plain(struct call *c, enum grpc_status status, const char *reason,
                          const char *msg)
{
    const struct grpc_error e = {.status = status, .reason = reason, .message = msg};
    grpc_call_fail(c, &e);
}

void grpc_call_fail_frame(struct call *c, int rc)
{
    if (rc == SHOAL_ENOMEM)
        grpc_call_fail_plain(c, GRPC_UNAVAILABLE, NULL, "out of memory");
    else if (rc == SHOAL_ELIMIT)
        grpc_call_fail_plain(c, GRPC_RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE",
                             "the message is larger than this server accepts");
    else
        grpc_call_fail_plain(c, GRPC_INVALID_ARGUMENT, "INVALID_MESSAGE",
                             "the body is not one message of this method");
}

void grpc_call_send(struct call *c, const struct buf *message)
{
    char head[GRPC_HEAD_BYTES];
    struct buf zipped;
    if (!c->req)
        return;
    grpc_call_begin(c);
    buf_init(&zipped, MAX_ZIPPED_BYTES);
    bool packed = grpc_accepts_gzip(http_header(c->req, "grpc-accept-encoding")) &&
                  grpc_zip(&zipped, buf_str(message), message->len);
    const struct buf *b = packed ? &zipped : message;
    grpc_frame_head(head, b->len, packed);
    call_write(c, head, GRPC_HEAD_BYTES);
    call_write(c, buf_str(b), b->len);
    buf_fini(&zipped);
}

/* ---- requests ---- */

bool grpc_call_timeout_ms(struct call *c, double *ms)
{
    static const char units[] = "HMSmun";
    static const double each[] = {3600000, 60000, 1000, 1, 1e-3, 1e-6};
    const char *text = http_header(c->req, "grpc-timeout");
    *ms = 0;
    if (!text)
        return true;
    const size_t digits = strspn(text, "0123456789");
    const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
    if (digits < 1 || digits > 8 || !unit || text[digits + 1]) {
        grpc_call_fail_plain(c, GRPC_INVALID_ARGUMENT, "INVALID_VALUE",
                             "grpc-timeout must be 1 to 8 digits and one of H, M, S, m, u and n");
        return false;
    }
    *ms = strtod(text, NULL) * each[unit - units];
    if (!(*ms > 0))
        *ms = 1e-6; /* no time at all: it has passed before the request begins */
    return true;
}

/* Whether messages of this encoding can be read; if not, the call is answered. */
static bool read_encoding(struct call *c, bool *gzip)
{
    const char *name = http_header(c->req, "grpc-encoding");
    *gzip = name && strcasecmp(name, "gzip") == 0;
    if (!name || *gzip || strcasecmp(name, "identity") == 0)
        return true;
    grpc_call_fail_plain(c, GRPC_UNIMPLEMENTED, "UNSUPPORTED_ENCODING",
                         "unknown grpc-encoding; supported: " GRPC_ENCODINGS);
    return false;
}

/* The first message from `at` on, unmodified; answers errors. */
static int find(struct call *c, struct grpc_frame *f, size_t at, size_t max)
{
    bool gzip;
    if (!read_encoding(c, &gzip))
        return SHOAL_EUNSUPPORTED;
    int rc = grpc_frame_next(f, (const uint8_t *)c->req->body + at, c->req->body_bytes - at, max);
    if (rc == 1 && f->packed && !gzip) {
        grpc_call_fail_plain(c, GRPC_INTERNAL, "INVALID_MESSAGE",
                             "the message is marked as compressed, but grpc-encoding is missing");
        return SHOAL_EFORMAT;
    }
    if (rc < 0)
        grpc_call_fail_frame(c, rc);
    return rc;
}

int grpc_call_read(struct call *c, struct grpc_frame *f, struct buf *plain, size_t at, size_t max)
{
    int rc = find(c, f, at, max);
    buf_clear(plain);
    int unpacked = rc == 1 ? grpc_frame_unpack(f, plain, max) : 0;
    if (unpacked < 0)
        grpc_call_fail_frame(c, unpacked);
    return unpacked < 0 ? unpacked : rc;
}

bool grpc_call_find_whole(struct call *c, struct grpc_frame *f)
{
    int rc = find(c, f, 0, c->gl->config->limits.max_body_bytes);
    if (rc == 1 && f->bytes == c->req->body_bytes)
        return true;
    if (rc >= 0)
        grpc_call_fail_frame(c, SHOAL_EFORMAT);
    return false;
}

bool grpc_call_read_whole(struct call *c, struct grpc_frame *f, struct buf *plain)
{
    if (!grpc_call_find_whole(c, f))
        return false;
    buf_clear(plain);
    int rc = grpc_frame_unpack(f, plain, c->gl->config->limits.max_body_bytes);
    if (rc < 0)
        grpc_call_fail_frame(c, rc);
    return rc >= 0;
}

bool grpc_call_has_type(const struct http_req *r)
{
    const char *type = http_header(r, "content-type");
    return type && strncmp(type, "application/grpc", 16) == 0;
}

bool grpc_call_refuse(struct http_req *r, const struct http_refusal *why)
{
    const struct http_header headers[] = {{"content-type", "application/grpc"},
                                          {"grpc-accept-encoding", GRPC_ENCODINGS}};
    const struct grpc_error e = {.status = why->status == 408 ? GRPC_DEADLINE_EXCEEDED
                                           : why->status == 413 || why->status == 431
                                               ? GRPC_RESOURCE_EXHAUSTED
                                               : grpc_status_of(why->status),
                                 .message = why->why,
                                 .reason = why->status == 413 ? "MESSAGE_TOO_LARGE" : why->code,
                                 .retry_s = why->retry_s};
    struct ending x;
    if (!grpc_call_has_type(r))
        return false;
    ending_init(&x, &e);
    http_begin(r, 200, headers, 2, -1);
    http_end_trailers(r, x.trailers, x.n);
    buf_fini(&x.details);
    return true;
}

static bool is_grpc(struct call *c)
{
    if (grpc_call_has_type(c->req))
        return true;
    call_fail(c, 415, NULL, NULL, NULL, "this path serves gRPC: use content-type application/grpc");
    return false;
}

bool grpc_call_is(struct call *c, const char *name)
{
    const char *asked = strrchr(c->req->path, '/');
    if (!is_grpc(c))
        return false;
    if (strcmp(asked + 1, name) == 0)
        return true;
    grpc_call_fail_plain(c, GRPC_UNIMPLEMENTED, "UNKNOWN_METHOD", "there is no such method");
    return false;
}
