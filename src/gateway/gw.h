/* gw.h - the gateway's inside: what is shared by all loops, one loop, one call.  Private to
 * src/gateway.
 *
 * Thread: a struct gw_loop and its calls belong to their loop's thread; struct gw is read by all
 * and changes only where its members say so. */
#ifndef SHOAL_GATEWAY_GW_H
#define SHOAL_GATEWAY_GW_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "gateway/config.h"
#include "gateway/api/fields.h"
#include "host/admission.h"
#include "host/histogram.h"
#include "host/registry.h"
#include "net/http.h"
#include "net/loop.h"

struct call;
struct gw;
struct pool;
struct prompt_cache;
struct recall;
struct watcher;

#define GW_MAX_LOOPS 64u
#define GW_MAX_ROUTES 48u
#define GW_MAX_WAKES 8u

#ifdef __SANITIZE_ADDRESS__
#define GW_MAX_SPARES 0u /* who uses what is over shall be found */
#else
#define GW_MAX_SPARES 16u
#endif

/* Why a request was turned away: a label of shoal_refused_total. */
enum gw_refusal {
    GW_REFUSED_AUTH,
    GW_REFUSED_RATE,
    GW_REFUSED_BUSY,
    GW_REFUSED_DEADLINE,
    GW_REFUSED_DRAINING,
    GW_REFUSED_INVALID,
    GW_REFUSED_NOT_LOADED,
    GW_N_REFUSED
};

/* Memory of one size that is needed for every call: what is over serves the next one. */
struct gw_spares {
    uint32_t n;
    void *list[GW_MAX_SPARES + 1];
};

struct gw_loop {
    struct gw *gw;
    struct gw_config *config; /* held; replaced on this thread by a reload */
    struct loop *loop;
    struct http_server *http;
    struct tls_server *tls, *next_tls; /* next: on its way, during a reload */
    pthread_t thread;
    bool has_thread;
    uint32_t n_calls; /* begun and not ended */
    uint32_t n_jobs;  /* of calls, that something outside the loop may still post to */
    struct loop_task drain, reload;
    struct loop_timer drain_timer;
    _Atomic bool idle; /* draining: there are no calls but of those who watch */
    uint64_t next_id, next_seed;
    struct buf spare; /* an answer's memory, for the next one */
    struct recall *recall;
    struct gw_spares gens, infers;
    /* Models with tasks of this turn, held: woken at its end, so that what came together is
     * computed together. */
    struct registry_model *to_wake[GW_MAX_WAKES];
    uint32_t n_to_wake, n_held_tasks;
    struct loop_task wake_engines;
    /* Who watches the health, see health.h. */
    struct watcher *watchers;
    _Atomic uint32_t n_watchers;
    _Atomic bool health_posted;
    struct loop_task health;
};

struct gw {
    struct gw_config *config; /* the newest; loops hold their own reference */
    struct registry *registry;
    struct admission *admission;
    struct pool *pool;
    struct prompt_cache *cache;
    struct gw_loop loops[GW_MAX_LOOPS];
    uint32_t n_loops;
    _Atomic bool draining;
    uint64_t started_ns, started_s, id_salt;
    _Atomic uint64_t refused[GW_N_REFUSED];
    _Atomic uint64_t responses[6];                 /* by the first digit of the status */
    struct histogram call_time[GW_MAX_ROUTES + 1]; /* by route; the last: none */
};

/* ---- routes ---- */

enum route_flags {
    ROUTE_OPEN = 1,    /* no key needed */
    ROUTE_ADMIN = 2,   /* only keys that may */
    ROUTE_JSON = 4,    /* the body is a JSON object, parsed before the handler */
    ROUTE_WORK = 8,    /* counts as work: in-flight limits, draining */
    ROUTE_RECALL = 16, /* a body that came before may be answered without being parsed */
    ROUTE_EARLY = 32,  /* the handler reads the body as it comes */
};

struct route {
    const char *method, *path; /* a path that ends with '*' matches what begins so */
    unsigned flags;
    void (*handle)(struct call *c);
    const char *summary;
    const struct field *fields; /* of the body */
    const size_t *n_fields;
    const char *tag;
};

extern const struct route gw_routes[];
extern const size_t gw_n_routes;

/* ---- calls ---- */

/* One request.  Freed when the HTTP side is over and the last hold is given back. */
struct call {
    struct gw_loop *gl;
    struct http_req *req; /* NULL: over, or the client is gone */
    const struct route *route;
    struct admission_client *client; /* who asks, or NULL */
    cJSON *json;                     /* ROUTE_JSON: the body */
    char id[64];
    char trace[64]; /* traceparent, or "" */
    bool lenient, ollama, began;
    uint32_t places; /* in the limits of requests in flight */
    uint64_t start_ns, deadline_ns;
    uint32_t holds;
    struct buf out;                      /* for the handler to build its answer in */
    const char *model_name, *cache_note; /* for headers and the log; cache_note: "hit", ... */
    void *job;
    void (*abandon)(struct call *c); /* the client is gone: stop working */
    void (*resume)(struct call *c);  /* the client has read: there is room again */
    void (*arrived)(struct call *c); /* ROUTE_EARLY: more of the body, or its end */
};

/* Entry from net: finds the route, checks who asks, calls the handler. */
void gw_handle(void *gw_loop, struct http_req *r);
bool gw_early(const char *path); /* whether it is a ROUTE_EARLY */

/* bytes: always the same of one s.  Zeros, or NULL. */
void *gw_take(struct gw_spares *s, size_t bytes);
void gw_give(struct gw_spares *s, void *p);
void gw_spares_fini(struct gw_spares *s);

void call_hold(struct call *c);
void call_release(struct call *c);
/* Whole answers.  Each ends the call; c may be gone afterwards unless it is held. */
void call_json(struct call *c, int status); /* what is in c->out */
void call_text(struct call *c, int status, const char *type, const char *body, size_t n);
/* A body that is there already, with headers of its own. */
void call_file(struct call *c, int status, const char *type, const struct http_header *extra,
               size_t n_extra, const char *body, size_t n);
void call_fail(struct call *c, int status, const char *type, const char *param, const char *code,
               const char *fmt, ...) SHOAL_PRINTF(6, 7);
void call_fail_fields(struct call *c, const struct fields_error *e);
/* An error of the library with the status that suits it. */
void call_fail_code(struct call *c, int code, const char *msg);
void call_refuse(struct call *c, enum gw_refusal why, int status, uint32_t retry_after_s,
                 const char *fmt, ...) SHOAL_PRINTF(5, 6);
/* A deadline that cannot be or was not met.  refused: nothing was begun; others: other work was in
 * the way, so that it may help to come again. */
void call_fail_late(struct call *c, bool refused, bool others, const char *msg);
/* Streams. */
void call_begin(struct call *c, const char *type);
void call_begin_with(struct call *c, const char *type, const struct http_header *extra,
                     size_t n_extra);
void call_write(struct call *c, const char *p, size_t n);
void call_end(struct call *c);
void call_end_trailers(struct call *c, const struct http_header *trailers, size_t n);
/* The request is as much work as so many of one prompt: it needs a place for each.  false: there
 * are not enough, and it is answered. */
bool call_enter_more(struct call *c, uint32_t n_prompts);
/* The body's latency_budget_ms: an earlier deadline than the one there is.  0: none given. */
void call_set_budget(struct call *c, double ms);
/* The connection became something else: there is no request any more. */
void call_detach(struct call *c, int status);
/* {"error":{...}} in OpenAI's shape, or Ollama's, into b. */
void call_put_error(const struct call *c, struct buf *b, const char *type, const char *param,
                    const char *code, const char *msg);
/* HTTP status and OpenAI's error type of a SHOAL_E*. */
int call_status_of(int code);
const char *call_type_of(int status);

#endif
