/* gw.h - the gateway's internals: state shared by all loops, one loop, what a route is. Private
 * to src/gateway.
 *
 * Thread: a struct gw_loop and its calls belong to their loop's thread; struct gw is read by all
 * and changes only where its members say so. */
#ifndef SHOAL_GATEWAY_GW_H
#define SHOAL_GATEWAY_GW_H

#include <pthread.h>
#include <stdatomic.h>

#include "apps/home/ask/ask_run.h"
#include "knowledge/documents_app.h"
#include "base/buf.h"
#include "cluster/machine/node_health.h"
#include "cluster/affinity/page_links.h"
#include "cluster/affinity/prefix_sent.h"
#include "cluster/replica.h"
#include "cluster/routing_links.h"
#include "config/config.h"
#include "flow/flow.h"
#include "host/admission.h"
#include "host/histogram.h"
#include "host/registry.h"
#include "net/http.h"
#include "net/loop.h"
#include "pipeline/pipeline_run.h"
#include "site/things/live.h"

struct call;
struct call_error;
struct collections;
struct deed_calls;
struct deeds;
struct later_site;
struct deferred;
struct gw_deferred;
struct demo;
struct deployed;
struct discovery;
struct explainer;
struct field;
struct folder_watches;
struct gw;
struct join;
struct members;
struct model_profiles;
struct mqtt_door;
struct mqtt_voice;
struct mqtt_site;
struct node_models;
struct node_measure;
struct node_shard;
struct node_store;
struct peers;
struct model_watch;
struct plant;
struct pool;
struct prompt_cache;
struct once_bucket;
struct quota;
struct quota_bucket;
struct recall;
struct sessions;
struct pseudonyms;
struct similar;
struct response_store;
struct slot_store;
struct ticker;
struct watcher;
struct webhooks;
struct wake;
struct wyoming_door;
struct worker_links;
struct workers;

#define GW_MAX_LOOPS 64u
#define GW_MAX_ROUTES 144u

/* Why a request was refused: a label of shoal_refused_total. */
enum gw_refusal {
    GW_REFUSED_AUTH,
    GW_REFUSED_RATE,
    GW_REFUSED_BUSY,
    GW_REFUSED_DEADLINE,
    GW_REFUSED_DRAINING,
    GW_REFUSED_INVALID,
    GW_REFUSED_NOT_LOADED,
    GW_REFUSED_QUOTA,
    GW_N_REFUSED
};

#define GW_ROUTES 16 /* routes that a loop remembers */

struct gw_loop {
    struct gw *gw;
    struct config *config; /* held; replaced by a reload on this thread */
    struct loop *loop;
    struct http_server *http;
    struct http_server *node_http;     /* listener for other members of the shoal; NULL: none */
    struct members *members;           /* other nodes; NULL: none */
    struct routing_links replicas;     /* their models, for routes */
    struct worker_links *workers;      /* isolated models; NULL: none */
    struct page_links *pages;          /* from other nodes; NULL: none */
    struct tls_server *tls, *next_tls; /* next: pending, during a reload */
    pthread_t thread;
    bool has_thread;
    uint32_t n_calls; /* started and not ended */
    struct call *calls;
    struct flow_owner flow;     /* requests of this loop */
    struct pipeline_site flows; /* flows that requests may use as their model */
    struct executor_task leave, drain, cut, reload;
    struct executor_timer drain_timer;
    _Atomic bool idle; /* draining: only health watchers are left */
    uint64_t next_id;
    struct buf spare; /* buffer of a finished answer, for reuse */
    struct recall *recall;
    const struct route *routes[GW_ROUTES]; /* recently used, by a hash of the path; see door.c */
    /* Watchers of the health service, see health.h. */
    struct watcher *watchers;
    _Atomic uint32_t n_watchers; /* of both kinds */
    struct ticker *tickers;      /* see ticker.h */
    uint64_t n_states;           /* sent to them */
    _Atomic bool health_posted;
    struct executor_task health;
};

struct gw {
    struct config *config;      /* the newest; loops hold their own reference */
    const struct route *routes; /* all paths, GW_MAX_ROUTES at most */
    size_t n_routes;
    struct registry *registry;
    struct audit_log *audit;           /* of all requests; NULL: none */
    struct trust_policy *trust;        /* who may sign models; NULL: no policy */
    struct workers *workers;           /* processes of isolated models; NULL: none */
    struct quota *quota;               /* tokens of clients */
    struct once_bucket *shared_once;   /* idempotency keys; NULL: not shared */
    struct quota_bucket *shared_quota; /* quota slices; NULL: not shared */
    struct admission *admission;
    struct peers *peers; /* memory held by clients, over all loops */
    struct pool *pool;
    struct prompt_cache *cache;
    /* Collections of documents; NULL: there is no folder for them. */
    struct collections *collections;
    struct folder_watches *folders; /* that collections follow; NULL: none */
    /* Conversations that continue by an id; NULL: none are kept. */
    struct sessions *sessions;
    struct pseudonyms *pseudonyms;
    struct similar *similar;                /* semantic cache; NULL: none */
    struct once *once;                      /* answers by idempotency key; NULL: none */
    struct deferred *deferred;              /* deferred requests; NULL: none */
    struct gw_deferred *deferred_door;      /* runs them; NULL: none */
    struct model_profiles *profiles;        /* models made through an interface; NULL: no folder */
    _Atomic uint32_t ollama_transfers;      /* models that are pulled or pushed */
    _Atomic uint32_t oci_served;            /* blobs that are sent to other programs */
    struct slot_store *slots;               /* of llama.cpp's clients */
    struct response_store *response_store;  /* for /v1/responses; NULL: none */
    struct ask_app home;                    /* answers /v1/process */
    struct documents_app documents;         /* in front of it, with process.documents */
    struct flow flow;                       /* the parts of the above that requests need */
    struct tls_server *node_tls;            /* for node_http; NULL: plain */
    struct tls_client *link_tls;            /* for connections to other nodes; NULL: plain */
    struct join *join;                      /* membership through NATS; NULL: none */
    struct node_models *models;             /* bytes of assigned models; NULL: this is not a node */
    struct deployed *deployed;              /* models of the desired state; NULL: no NATS */
    struct prefix_table *prefixes;          /* beginnings of prompts that were read here lately */
    struct prefix_sent sent_prefixes;       /* and of those that were sent to other nodes */
    _Atomic(struct node_measure *) measure; /* measures this machine; see measured.h */
    struct energy_ledger *energy;           /* of requests; NULL: not counted */
    struct node_health_watch health;        /* of this machine */
    char cert_file[512];                    /* of this member; "": none */
    struct node_shard *shard;               /* parts of models; NULL: none */
    struct node_store *store;               /* models on disk; NULL: this is not a node */
    struct model_watch *model_watch;
    struct plant *plant;        /* sensors and machines; NULL: none */
    struct live_answers live;   /* answers from it, if there is one */
    struct modbus_site *modbus; /* controllers; NULL: none */
    struct config *modbus_config;
    struct webhooks *webhooks;    /* receivers of alarms; NULL: none */
    struct trace_ring *traces;    /* of the last requests; NULL: nothing is traced */
    struct otlp_export *exporter; /* sends them to a collector; NULL: none */
    struct explainer *explainer;  /* finds passages for alarms; NULL: none */
    struct demo *demo;            /* a simulated plant; NULL: none */
    struct deeds *deeds;          /* carries out actions; NULL: the home is simulated */
    struct deed_calls *calls;     /* external calls of flows */
    /* things announced through Home Assistant discovery; NULL: none */
    struct discovery *discovery;
    struct later_site *later;      /* schedules of the home; NULL: none */
    struct config *deeds_config;   /* held for them: a reload replaces config */
    struct mqtt_site *mqtt;        /* the MQTT broker; NULL: none */
    struct wake *wake;             /* the wake word; NULL: none */
    struct wyoming_door *wyoming;  /* voice of Home Assistant, on the first loop; NULL: none */
    struct mqtt_door *mqtt_door;   /* requests over MQTT; NULL: none */
    struct mqtt_voice *mqtt_voice; /* live sound over MQTT; NULL: none */
    char advertise[256];           /* address for other members; "": none */
    struct gw_loop loops[GW_MAX_LOOPS];
    uint32_t n_loops;
    _Atomic bool leaving; /* no longer ready, but requests are still accepted */
    _Atomic bool draining;
    uint64_t started_ns, started_s, id_salt;
    struct replica_counts relayed, worked; /* requests run by nodes, and by workers */
    struct page_counts paged;              /* prompts whose pages came from other nodes */
    _Atomic uint64_t refused[GW_N_REFUSED];
    _Atomic uint64_t responses[6];                 /* by the first digit of the status */
    struct histogram call_time[GW_MAX_ROUTES + 1]; /* by route; the last: none */
    struct histogram_exemplars call_traces[GW_MAX_ROUTES + 1];
};

/* ---- routes ---- */

enum route_flags {
    ROUTE_OPEN = 1,        /* no key needed */
    ROUTE_ADMIN = 2,       /* admin keys only */
    ROUTE_JSON = 4,        /* the body is a JSON object, parsed before the handler */
    ROUTE_WORK = 8,        /* counts as work: in-flight limits, draining */
    ROUTE_EARLY = 16,      /* the handler reads the body as it arrives */
    ROUTE_KEEPS_JSON = 32, /* the work needs the parsed body after the handler has returned */
};

struct route {
    const char *method, *path; /* a path that ends with '*' matches by prefix */
    unsigned flags;
    void (*handle)(struct call *c);
    const char *summary;
    const struct field *fields; /* of the body */
    const size_t *n_fields;
    const char *tag;
    /* Answers a repeated body without parsing it; false: it must be parsed.  May be NULL. */
    bool (*recall)(struct call *c);
    /* Reports errors; NULL: as JSON. */
    void (*fail)(struct call *c, const struct call_error *e);
};

#endif
