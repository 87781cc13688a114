/* call.h - one HTTP request and its answer: headers, whole bodies, streams of events, errors.
 *
 * The same struct serves HTTP, gRPC and messages of a WebSocket: they differ in how events are
 * framed and errors are reported.
 *
 * Thread:    the loop's.
 * Ownership: freed when the HTTP exchange has ended and the last hold is given back.
 * Failure:   answering cannot fail for the caller: if the client has gone, nothing happens. */
#ifndef SHOAL_GATEWAY_CALL_CALL_H
#define SHOAL_GATEWAY_CALL_CALL_H

#include <cjson/cJSON.h>

#include "gateway/call/fields.h"
#include "gateway/gw.h"
#include "gateway/call/meter.h"
#include "trace/trace.h"
#include "wire/sse.h"

struct peer;
struct routing_choice;

struct call {
    struct gw_loop *gl;
    struct call *prev,
        *next;            /* list of the loop's calls, until the exchange with the client ends */
    struct http_req *req; /* NULL: ended, or the client has gone */
    const struct route *route;
    struct admission_client *client; /* the authenticated client, or NULL */
    cJSON *json;                     /* ROUTE_JSON: the body */
    size_t json_values;              /* number of JSON values in a large body; 0: few */
    struct peer *account;            /* held; a large body is charged to it; or NULL */
    size_t json_bytes, input_bytes;  /* charged until the JSON is dropped, until the call ends */
    struct buf plain;                /* the body without its Content-Encoding */
    char id[64];
    struct trace_at spans;                  /* held */
    struct trace_context caller;            /* its traceparent; span 0: none */
    bool lenient, ollama, anthropic, began; /* ollama, anthropic: format of errors */
    uint32_t n_dropped;                     /* messages that did not fit into the context */
    bool isolated;     /* the answer may be that of an old version: NATS cannot be asked */
    bool session_away; /* the session store is unavailable: the conversation may lack turns */
    uint32_t places;   /* slots taken in the limits of requests in flight */
    uint64_t start_ns, deadline_ns;
    uint32_t holds;
    struct buf out;                      /* for the handler to build its answer in */
    const char *model_name, *cache_note; /* for headers and the log; cache_note: "hit", ... */
    const char *node_name;               /* the node that answers; NULL: this one */
    const char *asked_model;             /* gRPC: for the details of errors, or NULL */
    const struct routing_choice *routed; /* how the model was chosen; NULL: the client named it */
    struct sink *sink;  /* gets the events of the request that the call became, or NULL */
    struct meter meter; /* in front of the codec's sink if the client is known */
    /* Sends `out` as one event; NULL: events are framed as text. */
    void (*event)(struct call *c);
    /* For handlers without a sink. */
    void *job;
    uint64_t cursor;                 /* for a stream of changes: the last change sent */
    void (*abandon)(struct call *c); /* the client is gone: stop working */
    void (*resume)(struct call *c);  /* the client has read: there is room again */
    void (*arrived)(struct call *c); /* ROUTE_EARLY: more of the body has arrived, or its end */
};

/* An error in the form of an API. */
struct call_error {
    int status;        /* HTTP status */
    const char *type;  /* OpenAI's, such as "invalid_request_error" */
    const char *param; /* or NULL */
    const char *code;  /* or NULL */
    const char *message;
    uint32_t retry_after_s; /* 0: not stated */
    const char *allow;      /* 405: the allowed methods; or NULL */
};

/* ---- lifetime ---- */

/* r becomes a call of the loop; NULL: out of memory, and r is answered. */
struct call *call_create(struct gw_loop *gl, struct http_req *r);
void call_hold(struct call *c);
void call_release(struct call *c);
/* An empty request with what the call knows: client, session, deadline.
 * NULL: out of memory or a bad header, and the call is answered. */
struct request *call_request(struct call *c);
/* Whether it can name a session: 1 to 63 letters, digits or ._:- */
bool call_session_ok(const char *id);
/* The client's idempotency key; NULL: none. */
const char *call_once_key(const struct call *c);
/* Connects the call, which is held, to a sink: when the client is gone the sink's work is
 * cancelled.  Events must go to c->sink, which passes them on. */
void call_set_sink(struct call *c, struct sink *s);
/* The sink is closed; gives the hold back. */
void call_unset_sink(struct call *c);
/* Charges n bytes of input to the client until the call ends, also from another thread that works
 * for it: a large body, or the request made from it. False: too many. */
bool call_count_input(struct call *c, size_t n);
/* The boolean query parameter `name`; *out is false if it is missing. False: invalid, and the call
 * has failed. */
bool call_query_bool(struct call *c, const char *name, bool *out);
/* Frees the parsed body before the call ends. */
void call_drop_json(struct call *c);
/* For headers and the log. */
void call_set_model(struct call *c, const struct sink_start *e);

/* The server stops without waiting longer: running calls fail, so that clients get an error instead
 * of a closed connection. */
void call_fail_all(struct gw_loop *gl);

/* ---- whole answers: each ends the call; c may be gone afterwards unless it is held ---- */

void call_json(struct call *c, int status); /* sends c->out */
void call_text(struct call *c, int status, const char *type, const char *body, size_t n);
/* An existing body, with its own headers. */
void call_file(struct call *c, int status, const char *type, const struct http_header *extra,
               size_t n_extra, const char *body, size_t n);
/* The origin of the requesting page, if the configuration allows it; otherwise NULL. */
const char *call_origin(const struct call *c);
/* A page of this machine, on any port. */
bool call_is_local_page(const char *origin);
/* Answers a CORS preflight request. */
void call_preflight(struct call *c);

/* ---- errors: each ends the call ---- */

/* type: NULL is the default of the status. */
void call_fail(struct call *c, int status, const char *type, const char *param, const char *code,
               const char *fmt, ...) SHOAL_PRINTF(6, 7);
/* 405; allow: the methods of the path, for people and the Allow header. */
void call_fail_method(struct call *c, const char *allow);
void call_fail_fields(struct call *c, const struct fields_error *e);
void call_fail_with(struct call *c, const struct failure *f);
/* An error of the library with its matching status. */
void call_fail_code(struct call *c, int code, const char *msg);
/* The value of Retry-After; 0: no such header. Every answer that says "not now" (429, 503, 504)
 * has one, so that clients do not have to guess; stated: 0, or what the refusal knows. */
uint32_t call_retry_after(int status, uint32_t stated_s);
/* retry_after_s: 0: not stated. */
void call_refuse(struct call *c, enum gw_refusal why, int status, uint32_t retry_after_s,
                 const char *fmt, ...) SHOAL_PRINTF(5, 6);
/* Sends the error as JSON, whatever format the route uses. */
void call_send_error(struct call *c, const struct call_error *e);
/* The failure as an object for a stream that has begun, into c->out. */
void call_put_failure(struct call *c, const struct failure *f);
/* {"error":{...}} in OpenAI's shape, or Ollama's. */
void call_put_error(struct buf *b, const struct call_error *e, bool ollama);
const char *call_type_of(int status);

/* ---- streams ---- */

void call_begin(struct call *c, const char *type);
void call_begin_with(struct call *c, const char *type, const struct http_header *extra,
                     size_t n_extra);
/* The same with any status and a known length: exactly so many bytes must follow. */
void call_begin_sized(struct call *c, int status, const char *type, const struct http_header *extra,
                      size_t n_extra, uint64_t bytes);
void call_write(struct call *c, const char *p, size_t n);
/* Writes c->out to a stream that has begun. */
void call_flush(struct call *c);
void call_end(struct call *c);
void call_end_flushed(struct call *c); /* writes c->out first */
void call_end_trailers(struct call *c, const struct http_header *trailers, size_t n);
/* Whether so many bytes are unsent that events should be held back (backpressure). */
bool call_full(const struct call *c);
/* The connection was upgraded: the HTTP request has ended. */
void call_detach(struct call *c, int status);

/* One event of a stream of server-sent events: begin, its data into c->out, end. */
static inline void call_event_begin(struct call *c, const char *name)
{
    if (!c->event)
        sse_begin(&c->out, name);
}

static inline void call_event_end(struct call *c)
{
    if (c->event)
        c->event(c);
    else
        sse_end(&c->out);
}

/* OpenAI's mark for the end of a stream. */
static inline void call_event_last(struct call *c)
{
    if (!c->event)
        sse_done(&c->out);
}

/* The end of one line of a stream of JSON lines. */
static inline void call_line_end(struct call *c)
{
    if (c->event)
        c->event(c);
    else
        buf_putc(&c->out, '\n');
}

#endif
