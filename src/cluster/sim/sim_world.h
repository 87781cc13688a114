/* sim_world.h - the simulated machines: nodes with the replicas on them, and requests that they
 * answer.
 *
 * A node answers one request after another; a request takes its tokens divided by the model's rate
 * on that node. A gateway sends a request to the better of two random replicas. A request on a node
 * that fails continues elsewhere with its remaining tokens; without a ready replica it waits.
 *
 * Thread:    belongs to one run.
 * Ownership: sim_world_fini frees.
 * Failure:   `queue.failed` or `failed` is set when memory runs out. */
#ifndef SHOAL_CLUSTER_SIM_WORLD_H
#define SHOAL_CLUSTER_SIM_WORLD_H

#include "cluster/sim/sim_queue.h"
#include "cluster/sim/sim_rand.h"
#include "cluster/sim/sim_scenario.h"

#define SIM_NONE UINT32_MAX
#define SIM_BUCKETS 256u

enum sim_kind {                  /* kinds of events in the queue */
                SIM_AT_ARRIVAL,  /* what: model */
                SIM_AT_DONE,     /* what: request */
                SIM_AT_RETRY,    /* what: request */
                SIM_AT_LOADED,   /* what: replica */
                SIM_AT_CRASH,    /* what: node */
                SIM_AT_LEAVE,    /* what: node */
                SIM_AT_BACK,     /* what: node */
                SIM_AT_SLOW,     /* what: node */
                SIM_AT_SLOW_END, /* what: node */
                SIM_AT_DETECT,   /* what: node */
                SIM_AT_EVENT,    /* what: event of the scenario */
                SIM_AT_EVENT_END,
                SIM_AT_PLAN,
                SIM_AT_SCALE,
};

struct sim_box { /* a node */
    char name[48];
    uint32_t class_id, zone; /* zone: index into zones */
    const char *zone_name;
    double speed; /* its own factor, around 1 */
    bool up;      /* runs */
    bool cut;     /* cannot be reached */
    bool known;   /* gateways and the controller count it as a member */
    bool drained;
    double slow;      /* 1: as fast as usual */
    uint32_t life;    /* counts its restarts, so that events of an earlier life are ignored */
    uint64_t free_us; /* when it will have answered all its requests */
    uint64_t used_bytes;
    uint32_t requests; /* head of its list, newest first */
    uint32_t replicas; /* head of its list */
    struct sim_rand rand;
};

struct sim_replica {
    uint32_t model, node;
    bool ready, there; /* there false: unused slot */
    bool lost;         /* its node is lost; the planner hears it once */
    uint64_t since_ms;
    uint32_t stamp, plan; /* plan: the controller's plan that loaded it */
    uint32_t at;          /* position in its model's list of ready ones */
    uint32_t next_on_node;
};

struct sim_request {
    uint32_t model, node; /* node SIM_NONE: waits */
    uint32_t stamp, prev, next;
    uint64_t start_us, began_us, finish_us; /* arrival, start and end of its computation */
    double tokens;                          /* tokens left */
    bool counted;                           /* a ready replica was there within the budget */
};

struct sim_histogram { /* of microseconds, 8 buckets for each power of two */
    uint32_t n[SIM_BUCKETS];
    uint64_t total;
};
double sim_histogram_ms(const struct sim_histogram *h, double q);

struct sim_service { /* a model */
    char name[56];
    const struct sim_model *in;
    uint32_t *ready, n_ready, cap_ready; /* replicas that answer, as far as gateways know */
    uint32_t waiting, last_waiting;      /* requests without a replica, in order */
    uint32_t n_waiting, n_running;
    double spike;
    struct sim_rand rand;
    uint32_t wanted; /* replicas wanted by the autoscaler */
    struct autoscale_state scaling;
    /* Since the last sample of the autoscaler. */
    uint64_t arrived;
    double busy_us;
    double cpu, arrivals; /* smoothed over several samples */
    struct sim_histogram recent;
    /* Figures. */
    uint64_t n_requests, n_available, n_on_time, n_done, n_moved;
    struct sim_histogram latency;
    uint64_t below_us,
        below_since_us; /* time with fewer ready replicas than the minimum; since: 0 if not now */
    bool reached;       /* it has reached its minimum once */
    uint32_t n_up, n_down;
};

struct sim_world {
    const struct sim_scenario *in;
    uint64_t now_us, counted_from_us;
    struct sim_queue queue;
    struct sim_box *nodes;
    uint32_t n_nodes, cap_nodes;
    struct sim_service *models;
    uint32_t n_models;
    struct sim_replica *replicas;
    uint32_t n_replicas, cap_replicas, free_replica;
    struct sim_request *requests;
    uint32_t n_requests, cap_requests, free_request;
    uint32_t stamp;
    bool failed;
};

SHOAL_MUST_CHECK int sim_world_init(struct sim_world *w, const struct sim_scenario *in,
                                    uint32_t seed, struct err *e);
void sim_world_fini(struct sim_world *w);

/* The planner's view of a node and of a model. */
struct placement_node sim_world_node(const struct sim_world *w, const struct sim_box *b);
struct placement_model sim_world_model(const struct sim_service *s);

/* Nodes. */
uint32_t sim_world_add_node(struct sim_world *w, uint32_t class_id, uint64_t seed);
/* Its replicas are lost; its requests go elsewhere after delay_ms. */
void sim_world_end_node(struct sim_world *w, uint32_t node, uint32_t delay_ms);
void sim_world_restart_node(struct sim_world *w, uint32_t node);
/* Makes it unreachable, or reachable again, without notice. */
void sim_world_cut_node(struct sim_world *w, uint32_t node, bool cut);
/* Gateways notice that a node is lost, or back. */
void sim_world_notice(struct sim_world *w, uint32_t node, bool there);

/* Replicas. */
uint32_t sim_world_load(struct sim_world *w, uint32_t model, uint32_t node);
void sim_world_loaded(struct sim_world *w, uint32_t replica, uint32_t stamp);
void sim_world_unload(struct sim_world *w, uint32_t replica);
uint32_t sim_world_find(const struct sim_world *w, uint32_t model, uint32_t node);

/* Requests. */
void sim_world_arrival(struct sim_world *w, uint32_t model);
void sim_world_schedule_arrival(struct sim_world *w, uint32_t model);
void sim_world_done(struct sim_world *w, uint32_t request, uint32_t stamp);
void sim_world_retry(struct sim_world *w, uint32_t request, uint32_t stamp);

#endif
