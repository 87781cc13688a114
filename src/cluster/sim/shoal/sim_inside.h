/* sim_inside.h - the parts of a simulated shoal (sim_shoal.h), for each other.
 *
 * sim_time: clocks, threads as coroutines, what happens when.  sim_nats: the servers, and the
 * network to them. sim_member: a process: its start and end, models and disk.  sim_stream: the
 * gateway, its clients, and answers.  sim_fault: what goes wrong.  sim_show: for people. */
#ifndef SHOAL_CLUSTER_SIM_INSIDE_H
#define SHOAL_CLUSTER_SIM_INSIDE_H

#include "cluster/sim/shoal/sim_names.h"

#include <string.h>
#include <ucontext.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/thread/executor.h"
#include "cluster/control/desired.h"
#include "cluster/messages/node_state.h"
#include "cluster/replica.h"
#include "cluster/sim/shoal/sim_shoal.h"
#include "cluster/sim/sim_rand.h"
#include "flow/flow.h"
#include "host/registry.h"

#define SIM_MS UINT64_C(1000000)
#define SIM_S (1000 * SIM_MS)
#define SIM_NODES 4u                  /* at most */
#define SIM_GATEWAY SIM_NODES         /* index of the gateway's member */
#define SIM_ADMIN (SIM_NODES + 1)     /* and of the administrator's */
#define SIM_MEMBERS (SIM_NODES + 2)   /* all */
#define SIM_THREADS (SIM_MEMBERS * 4) /* coroutines */
#define SIM_STACK_BYTES (256u << 10)
#define SIM_MODEL "m"
#define SIM_VERSIONS 250u

struct bus;
struct deployed;
struct desired;
struct join;
struct quota_bucket;
struct sim_call;
struct sim_client;

/* Something that will happen. */
struct sim_due {
    uint64_t at_ns, number;
    void (*fn)(void *ctx);
    void *ctx;
    uint32_t
        member; /* it happens there: not while that member stands still; SIM_MEMBERS: nowhere */
};

/* A thread of the real code. */
struct sim_thread {
    ucontext_t context;
    char *stack;
    void *(*fn)(void *arg);
    void *arg;
    uint32_t member;
    uint64_t wake_ns;
    const void *waits; /* for this condition, or NULL */
    bool used, ended;
};

struct sim_loaded { /* a version on a node */
    struct sim_loaded *next;
    struct registry_model model;
    struct registry_slot slot;
    char name[16];
    uint32_t n_extra; /* further copies, ready at once */
};

struct sim_member {
    struct executor executor;
    struct executor_task *first, **end, *tail;
    struct executor_timer timers; /* a ring */
    struct join *join;            /* NULL: it is not there */
    struct bus *bus;
    char name[16];
    uint32_t life;      /* counts its starts */
    bool dead;          /* being ended: nothing it does has an effect */
    uint64_t paused_ns; /* it stands still until then */
    uint64_t cut_ns;    /* no NATS until then */
    double rate;        /* of its clock */
    int64_t wall_ms;    /* its time of day is wrong by this */
    uint64_t jump_ns;   /* while dead: its clock runs, so that nothing waits */
    struct buf disk;    /* the snapshot; len 0: none */
    uint64_t full_ns;   /* the disk is full until then */
    /* a node's */
    struct sim_loaded *models;
    uint64_t epoch, epoch_end, serial;
    struct executor_timer tell; /* its state, to the gateway */
    struct deployed *deployed;
    uint64_t version;                   /* of the desired state, in this life */
    uint8_t state_id[DESIRED_ID_BYTES]; /* which one */
    uint32_t n_known;                   /* the administrator's changes in it */
    uint32_t noted_life;                /* when that was looked at */
    uint64_t away_ns;                   /* when it was last not there, or could not reach NATS */
    uint64_t cable_ns;                  /* no connection with the gateway until then */
    struct quota_bucket *quota;
    pthread_t quota_user;
    bool uses_quota;
};

/* Does it run? */
static inline bool sim_member_up(const struct sim_member *m)
{
    return m->life > 0 && !m->dead;
}

/* A node as the gateway knows it. */
struct sim_link {
    struct replica replica; /* first */
    uint32_t node;
    struct arena arena;
    struct node_state state;
    bool has_state;
    uint32_t life; /* of the node */
    uint64_t heard_ns;
    uint64_t last_ns; /* when its last message arrived: they keep their order */
    uint32_t n_calls;
    uint64_t bad_ns; /* when the node was last not able to answer */
};

struct sim_site {
    uint64_t seed, now_ns;
    struct sim_rand rand;
    bool streams; /* no control plane */
    struct sim_shoal_counts *counts;
    struct err *error;
    bool failed;
    struct sim_due *events; /* a heap */
    size_t n_events, cap_events;
    uint64_t next_number;
    struct sim_due event; /* the present one */
    struct sim_thread threads[SIM_THREADS];
    struct sim_thread *running; /* NULL: the scheduler */
    ucontext_t scheduler;
    struct sim_member members[SIM_MEMBERS];
    uint32_t n_nodes, current; /* current: whose code runs */
    uint64_t slow_ns;          /* delays of messages, at most */
    uint32_t loss;             /* of 1000 messages */
    uint64_t away_ns;          /* NATS, until then */
    uint64_t stale_ns;         /* NATS may answer from the past until then */
    uint32_t n_lost;           /* data of NATS */
    bool empty;                /* NATS has lost its data, and nobody has written them back yet */
    bool calm;                 /* the faults are over */
    bool closing;              /* members that have ended stay away */
    /* checks */
    uint64_t fence;
    uint32_t holder;
    uint8_t epochs[256];  /* the version that answered the epoch; 0: none yet */
    uint8_t done_version; /* of the last update that is done; 0: none */
    uint64_t done_ns;
    uint64_t mixed_ns; /* when an epoch was last answered by two versions, as it may be */
    uint64_t quota_taken;
    uint32_t acked;      /* changes by the administrator that were acknowledged */
    uint32_t acked_lost; /* when NATS lost its data: they may be gone */
    /* the gateway */
    struct sim_link links[SIM_NODES];
    struct replica_source source;
    struct replica_counts replica_counts;
    uint64_t watched_ns; /* when the gateway last looked at its nodes */
    uint64_t alone_ns; /* when less than two nodes could answer, or the gateway stood still, last */
    uint64_t able_ns;  /* how long, in all, a node could answer that the gateway had heard */
    struct flow flow;
    struct flow_owner owner;
    uint32_t n_clients;
    struct sim_call *calls;
    struct sim_client *clients;
};

extern struct sim_site sim;

/* ---- sim_time ---- */
uint32_t sim_pick(uint32_t n);
uint64_t sim_between(uint64_t low_ns, uint64_t high_ns);
/* A rule is broken: the schedule ends. */
void sim_broken(const char *format, ...) SHOAL_PRINTF(1, 2);
void sim_at(uint64_t at_ns, uint32_t member, void (*fn)(void *ctx), void *ctx);
/* The present event happens later, and before those that were to come after it. */
void sim_again(uint64_t at_ns);
void sim_time_init(void);
void sim_time_fini(void);
/* The next thing that happens before `until`; false: nothing does. */
bool sim_step(uint64_t until_ns);
/* The calling thread sleeps; false: its member ended. */
bool sim_sleep_until(uint64_t at_ns);
uint64_t sim_local_ns(const struct sim_member *m, uint64_t at_ns);
void sim_run_tasks(struct sim_member *m);
/* Never NULL: without memory the schedule ends. */
void *sim_zalloc(size_t n);
void sim_free(void *p);

/* ---- sim_nats ---- */
void sim_nats_init(void);
void sim_nats_fini(void);
void sim_nats_lose(void);
/* Tells members whether they have NATS. */
void sim_nats_links(void);
/* The state in NATS, or NULL; the caller destroys it. */
struct desired *sim_nats_state(void);
bool sim_nats_held(uint32_t member, uint64_t *fence);
/* The highest fence that a member knows. */
uint64_t sim_nats_known(uint32_t member);

/* ---- sim_member ---- */
void sim_member_start(uint32_t i);
void sim_member_end(uint32_t i);
/* It was there long enough to tell others what it knows. */
bool sim_is_heard(const struct sim_member *m);
/* NULL: it has none of that sum. */
static inline struct sim_loaded *sim_member_model(const struct sim_member *m, const uint8_t *sum)
{
    struct sim_loaded *k = m->models;
    while (k && memcmp(k->model.sum, sum, SHA256_BYTES) != 0)
        k = k->next;
    return k;
}

static inline void sim_version_sum(uint8_t out[SHA256_BYTES], uint8_t version)
{
    memset(out, 0, SHA256_BYTES);
    out[0] = version;
}
void sim_check_members(void);

/* ---- sim_stream ---- */
void sim_stream_init(void);
void sim_stream_fini(void);
void sim_stream_free(void);
void sim_stream_told(uint32_t node);
/* The node's process has ended. */
void sim_stream_ended(uint32_t node);
uint64_t sim_stream_oldest(uint32_t node);
uint64_t sim_stream_held(void);
void sim_stream_client(void);
uint32_t sim_stream_open(void);

/* ---- sim_show ---- */
/* Logs the state of the shoal, once a simulated second, at the level debug. */
void sim_show(void);

#endif
