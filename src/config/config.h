/* config.h - the configuration of `shoal serve`: defaults, a YAML file, flags.  The keys of the
 * file are the rows of config/config_table.c.
 *
 * Thread:    immutable once it is in use; counted references.
 * Ownership: config_create gives one reference, config_unref takes it back.  Strings belong to the
 *            configuration.
 * Failure:   SHOAL_EFORMAT with file, line, column and the key that is wrong. */
#ifndef SHOAL_CONFIG_CONFIG_H
#define SHOAL_CONFIG_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config_deeds.h"
#include "config/config_flows.h"
#include "config/config_read.h"
#include "config/config_routes.h"
#include "config/config_modbus.h"
#include "config/config_things.h"
#include "base/energy.h"
#include "config/config_tracing.h"
#include "config/config_trust.h"
#include "config/config_webhooks.h"
#include "host/admission.h"
#include "host/registry.h"
#include "net/http.h"
#include "router/router.h"
#include "wire/yaml_in.h"

#define CONFIG_MAX_LISTEN 8u
#define CONFIG_MAX_MODELS 256u  /* with their adapters */
#define CONFIG_MAX_ADAPTERS 64u /* of a model */
#define CONFIG_MAX_ROUTES 64u
#define CONFIG_MAX_RULES 64u /* rules per route */
#define CONFIG_MAX_KEYS 256u
#define CONFIG_MAX_ORIGINS 32u
#define CONFIG_MAX_HOSTS 32u
#define CONFIG_MAX_MODEL_DIRS 32u

enum config_controller { CONFIG_CONTROLLER_AUTO, CONFIG_CONTROLLER_NEVER };

/* Membership of this process in a shoal. */
struct config_cluster {
    char *name;                 /* name of this member */
    char *zone;                 /* location, for placement; or NULL */
    char *advertise;            /* address announced to other members; or NULL */
    char *shoal;                /* name of the shoal, for NATS; NULL: "shoal" */
    struct yaml_in_strs nats;   /* URLs of its servers; none: a static list of nodes */
    bool no_relay;              /* relay no requests: a plain node */
    uint32_t forget_ms;         /* a node is removed after this long without heartbeats */
    struct yaml_in_strs listen; /* for other members */
    struct yaml_in_strs nodes;  /* nodes to send requests to */
    char *certs;                /* folder of this member, as shoal ca issue writes it; NULL: none */
    bool insecure;              /* without certificates: for tests on one machine */
    uint32_t wait_ms;           /* how long to wait for a lost node */
    uint32_t patience_ms; /* how long without a piece of the answer, however often it is moved */
    uint32_t heartbeat_ms, silent_ms;
    char *store;                   /* folder for assigned models; or NULL */
    size_t store_limit;            /* size limit; 0: the disk's free space */
    size_t fetch_rate, share_rate; /* bytes a second from other nodes, and to them; 0: no limit */
    char *fetch_ca;                /* PEM file to trust for https:// sources; NULL: the system's */
    uint32_t hedge_ms; /* requests with a deadline: delay until a second node is tried; 0: never */
    struct yaml_in_strs hedge_models; /* models it applies to; none: all */
    bool affinity;                    /* conversations stay on their node */
    uint32_t split;                   /* enum split_mode, in its order */
    size_t link;                      /* bytes a second between nodes; 0: measured */
    uint32_t isolation;  /* of models that the controller assigns; 1: a process for each replica */
    uint32_t controller; /* enum config_controller: whether it may become controller */
    uint32_t lease_ms;   /* lease of the controller; 0: the default of lease.h */
    uint32_t scrub_ms;   /* how often the store is read again; 0: never */
    char *snapshot;      /* file for the last desired state; NULL: in the cache folder */
    struct yaml_in_strs labels; /* "gpu", "site=hall-3", for placement */
    unsigned roles;             /* roles of its certificate; 0: it has none */
};

/* The MQTT broker and its uses. */
struct config_mqtt {
    char *broker; /* "mqtt://HOST:PORT"; NULL: none */
    char *client_id, *user, *password_file;
    char *ca, *cert, *key; /* PEM files */
    char *topic;           /* prefix of all own topics */
    uint32_t keepalive_ms, session_ms, reconnect_max_ms;
    char *queue_file;
    size_t queue_bytes;
    bool requests;
    char *share; /* group of a shared subscription; NULL: none */
    uint32_t qos, in_flight;
    size_t payload_bytes;
    struct yaml_in_strs responses; /* filters of response topics */
    char *alarm_topic, *discovery;
};

enum config_admin { CONFIG_ADMIN_OFF, CONFIG_ADMIN_LOOPBACK };

struct config {
    _Atomic uint32_t refs;
    char *file;                 /* its name, for messages; NULL: there is none */
    struct config_settings set; /* settings of the file, to compare and explain */
    struct yaml_in_strs listen;
    uint32_t threads; /* event loops; 0: by the cores */
    char *tls_cert, *tls_key, *tls_client_ca;
    struct http_limits limits;
    struct registry_spec models[CONFIG_MAX_MODELS];
    uint32_t n_models;
    struct router_table router;           /* the routes, and their data about the models above */
    struct config_routes_privacy privacy; /* for all requests; in `router` too */
    char *privacy_key_file;               /* NULL: a random key */
    size_t memory_bytes;
    uint32_t idle_unload_ms, load_wait_ms;
    bool any_model; /* unknown names mean the default model */
    uint32_t admin; /* enum config_admin: who administers without keys, besides a unix socket */
    bool lenient;   /* unknown fields are ignored */
    struct admission_key keys[CONFIG_MAX_KEYS];
    uint32_t n_keys;
    struct yaml_in_strs cors;       /* origins; "*": any */
    struct yaml_in_strs hosts;      /* names of this server, beside localhost; "*": any */
    struct yaml_in_strs model_dirs; /* where models may be added from at run time; none: the folders
                                     * of `models` */
    uint32_t max_in_flight;         /* over all clients; 0: no limit */
    uint32_t max_values;            /* JSON values in a body */
    uint32_t default_deadline_ms, max_deadline_ms;
    uint32_t leave_ms, drain_ms;
    size_t cache_bytes;
    uint32_t cache_ttl_ms;
    char *deferred_file; /* deferred requests; NULL: none */
    uint32_t deferred_requests, deferred_ttl_ms, deferred_keep_ms;
    size_t deferred_bytes;
    size_t once_bytes; /* memory for answers kept by idempotency key */
    uint32_t once_ttl_ms;
    bool once_shared;                   /* shared with the other gateways, through NATS */
    char *store_dir, *store_hub;        /* or NULL */
    struct yaml_in_strs store_sources;  /* what clients may pull from; none: the usual ones */
    bool store_share;                   /* others may pull from it */
    bool store_offer;                   /* models of the store are served */
    bool pack;                          /* and those that come with Shoal */
    bool once;                          /* models added at run time are not kept; only by a flag */
    char *ollama_dir, *ollama_registry; /* or NULL */
    size_t ollama_max_model;
    size_t responses_bytes; /* memory for stored responses */
    char *slots_dir;        /* saved slots; NULL: none */
    char *responses_file;   /* keeps them over a restart; NULL: none */
    uint32_t responses_ttl_ms;
    bool log_requests;
    char *cache_dir;
    struct config_cluster cluster;
    struct config_mqtt mqtt;
    struct config_things things; /* sensors, and where their readings come from */
    char *history;               /* file of the readings; NULL: they are not kept */
    uint32_t history_days;
    size_t history_bytes;
    struct config_modbuses modbus;   /* controllers that are read and set */
    struct config_deeds deeds;       /* how actions are carried out */
    uint32_t demo;                   /* enum demo_mode: a simulated plant */
    struct config_webhooks webhooks; /* receivers of alarms */
    struct config_trust trust;       /* who may sign models */
    char *audit_dir;                 /* folder of the audit log; NULL: none is kept */
    size_t audit_file_bytes;
    uint32_t audit_keep, audit_full; /* full: 1: serve */
    bool audit_syslog;
    struct config_tracing tracing;
    struct {
        bool count;
        struct energy_model model;
    } energy;
    struct config_flows flows; /* graphs of steps */
    char *manuals;             /* collection that explains alarms; NULL: none */
    char *alarms_file;         /* open alarms; NULL: in the state folder */
    /* Folder of collections, NULL: the default; maximum passages, and up to which count search is
     * exact. */
    char *collections_dir;
    uint32_t collections_max_passages, collections_exact_passages;
    struct yaml_in_strs collections_watch; /* NAME=FOLDER */
    struct yaml_in_strs documents;         /* collections behind /v1/process */
    char *similar_model;                   /* embeds prompts for the semantic cache; NULL: embed */
    /* Store of conversations, NULL: the default file; "off": none. */
    char *sessions_store, *sessions_key_file, *sessions_summary;
    uint32_t sessions_ttl_ms, sessions_tokens;
    bool watch;             /* read the file again when it changes */
    char *quota_file;       /* tokens of the day; NULL: in the cache folder */
    char *wyoming;          /* address for Wyoming clients; NULL: none */
    char *wake;             /* wake word or folder of one; NULL: none */
    char *home;             /* home file of the home flow, read at start; NULL: the demo */
    char *home_state;       /* file of states; NULL: in memory only */
    char *home_schedule;    /* file of schedules; NULL: in the state folder */
    uint32_t home_grace_ms; /* how late an entry may still run */
    char *table; /* table of the home flow, read at start; NULL: the one of the models folder */
};

/* The part that admission needs; borrowed from c. */
static inline struct admission_opts config_admission(const struct config *c)
{
    return (struct admission_opts){c->keys, c->n_keys, c->max_in_flight, NULL};
}

/* May any model run in a process of its own? */
static inline bool config_any_apart(const struct config *c)
{
    for (uint32_t i = 0; i < c->n_models; i++)
        if (c->models[i].apart)
            return true;
    return c->cluster.isolation == 1;
}

SHOAL_MUST_CHECK int config_create(struct config **out, struct err *e);
struct config *config_ref(struct config *c);
void config_unref(struct config *c);
SHOAL_MUST_CHECK int config_load(struct config *c, const char *path, struct err *e);
/* The text of a file; name is for messages. */
SHOAL_MUST_CHECK int config_parse(struct config *c, const char *text, size_t n, const char *name,
                                  struct err *e);
void config_clear_listen(struct config *c);
SHOAL_MUST_CHECK int config_add_listen(struct config *c, const char *address, struct err *e);
SHOAL_MUST_CHECK int config_add_model(struct config *c, const struct registry_spec *spec,
                                      struct err *e);
SHOAL_MUST_CHECK int config_add_model_dir(struct config *c, const char *folder, struct err *e);
/* "NAME=PATH", or a path whose file name is the name. */
SHOAL_MUST_CHECK int config_add_model_arg(struct config *c, const char *arg, struct err *e);
/* A LoRA adapter beside a model that was added before: the model BASE:NAME. */
SHOAL_MUST_CHECK int config_add_adapter(struct config *c, const char *base, const char *name,
                                        const char *path, double scale, struct err *e);
/* "BASE:NAME=PATH", or "NAME=PATH" for the first model. */
SHOAL_MUST_CHECK int config_add_adapter_arg(struct config *c, const char *arg, struct err *e);
/* The models of a folder with a models.json; NULL: where pack_open looks. */
SHOAL_MUST_CHECK int config_add_pack(struct config *c, const char *folder, bool pinned,
                                     struct err *e);
/* What clients may pull from: bits of enum place_kind, never 0. */
unsigned config_store_sources(const struct config *c);
/* Whether other members of the shoal may talk to this one as configured; takes its name from its
 * certificate. role: the role its certificate must have (cluster/trust/roles.h). */
SHOAL_MUST_CHECK int config_check_cluster(struct config *c, unsigned role, struct err *e);
/* Whether this member takes part in the election of the controller. */
bool config_may_control(const struct config *c);
/* Whether its certificate may change the desired state. */
bool config_may_change(const struct config *c);
/* Whether a model at path may be added at run time: it must be in one of the folders of model_dirs,
 * or of the configured models. *resolved: the path without symbolic links, to be freed; NULL if it
 * may not. SHOAL_EINVAL names the path and what to configure. */
SHOAL_MUST_CHECK int config_confine(const struct config *c, const char *path, char **resolved,
                                    struct err *e);

#endif
