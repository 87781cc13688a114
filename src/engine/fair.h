/* fair.h - shares an engine between clients, by the tokens that it computes for each.
 *
 * Each client has its own list of waiting tasks and a clock: the tokens computed for it, divided by
 * its weight. Among waiting tasks of the highest priority, the client whose clock is lowest goes
 * first; tasks of one client are ordered by task_goes_before. A task is charged its expected tokens
 * when it begins, and the charge is corrected when it ends. A client that was idle starts at the
 * clock of the client served last, so idle time earns no credit.
 *
 * Running tasks give way too: a client that runs less than its share of the tasks, or none, may
 * preempt a task of a client that runs more than its share.
 *
 * No class of priority waits forever. While tasks wait whose priority is below that of everything
 * that runs, a tenth of the computed tokens is put by for them; when enough is put by, one of them
 * is due: it goes first and keeps its place until it is that many tokens further. Clients take
 * turns at this, so that one with many tasks does not keep the others waiting; of a client it is
 * the task that has waited longest. What has to be computed again after a pause counts against the
 * share, but not as progress.
 *
 * Within a client a short task goes before longer ones that came earlier, also before one that runs
 * if it is a quarter of what that has left. Each of them is overtaken by no more work than its own,
 * so it has its turn.
 *
 * Thread:    fields and functions marked "lock": any thread, under the engine's lock.  The others:
 *            the engine's thread.
 * Ownership: clients belong to the struct fair.  A client with tasks stays; one without may be
 *            replaced when there are too many.
 * Failure:   none: without memory or room for one more client, tasks join client 0. */
#ifndef SHOAL_ENGINE_FAIR_H
#define SHOAL_ENGINE_FAIR_H

#include <stdbool.h>
#include <stdint.h>

struct shoal_task;

#define FAIR_MAX_CLIENTS 320u /* more than the number of keys in a configuration */

struct fair_who {    /* the requesting client */
    uint64_t client; /* 0: no particular client */
    float weight;    /* of the client's share; 0: 1 */
    int32_t priority;
};

/* Load that a new task sees, of all clients or only those ahead of it. For a specialist: units in
 * place of prompt tokens. */
struct fair_load {
    uint32_t n_active, n_waiting, max_active; /* tasks */
    uint64_t active_prompt, active_decode;    /* tokens to prefill, tokens expected */
    uint64_t waiting_prompt, waiting_decode;
};

struct fair_client {
    /* lock */
    uint64_t id;
    double asked_weight; /* weight of its newest task; likewise the priority */
    int32_t priority;
    uint32_t n_tasks, n_waiting; /* all, and waiting ones */
    uint64_t waiting_prompt,
        waiting_decode; /* tokens of its waiting tasks; for a specialist: units */
    uint64_t used;      /* when it last got a task, for replacement */
    /* the engine's thread */
    bool present; /* has waiting or running tasks */
    double weight, clock;
    struct shoal_task *waiting; /* best first */
    uint32_t n_active, pages;   /* of its running tasks */
    uint32_t prompt_left;       /* prompt tokens not yet computed, ... */
    uint32_t prompt_part;       /* ... and how many of them may be in this step */
    uint64_t turn;              /* when a task of it was last due; 0: never */
};

struct fair {
    /* lock */
    struct fair_client nobody; /* client 0 */
    struct fair_client *clients[FAIR_MAX_CLIENTS];
    uint32_t n_clients;
    uint64_t n_entered;
    /* the engine's thread */
    struct fair_client *present[FAIR_MAX_CLIENTS + 1];
    uint32_t n_present;
    double now;     /* clock of the client served last */
    double put_by;  /* tokens for classes that do not run */
    uint64_t n_due; /* tasks that have been due */
};

void fair_init(struct fair *f);
void fair_fini(struct fair *f);

/* Lock. The client, with one more task. weight: see task_weight. */
struct fair_client *fair_enter(struct fair *f, uint64_t id, float weight, int32_t priority);
/* Lock.  One of its tasks has ended. */
void fair_leave(struct fair_client *c);
/* Lock. Whether the client may have one more waiting task in a queue with this many slots: some are
 * reserved for others. Client 0 may use all of them. */
bool fair_has_place(const struct fair_client *c, uint32_t n_waiting, uint32_t max_queue);
/* Lock. Reduces the load to the part that a task of this client has to wait for: its own tasks, and
 * those of others that go first. */
void fair_reduce(const struct fair *f, const struct fair_who *who, struct fair_load *l);

/* t waits from now on. */
void fair_add(struct fair *f, struct shoal_task *t);
/* The link to the best waiting task; NULL: none waits. */
struct shoal_task **fair_best(struct fair *f);
/* Unlinks *at, a task in the list of its client. */
void fair_remove(struct fair *f, struct shoal_task **at);
/* The tasks in `active` have had this many tokens computed: lower classes get their share. May
 * change the order of the waiting tasks. */
void fair_age(struct fair *f, struct shoal_task *const *active, uint32_t n, uint64_t tokens);
/* Running tasks that have had what was due are like the others again: sorts them by
 * task_goes_before. */
void fair_end_due(struct fair *f, struct shoal_task **active, uint32_t n);
/* t, which is in no list, starts running. */
void fair_begin(struct fair *f, struct shoal_task *t);
/* t no longer runs: it has ended, or will wait again. */
void fair_end(struct fair *f, struct shoal_task *t);
/* Divides a budget of prompt tokens between the clients of the running tasks: sets prompt_part. */
void fair_divide_prompts(const struct fair *f, struct shoal_task *const *active, uint32_t n,
                         uint32_t budget);
/* The running task to preempt for t, so that its client gets its share, or because t is much
 * shorter than another of its client; n: none. */
uint32_t fair_victim(const struct fair *f, const struct shoal_task *t,
                     struct shoal_task *const *active, uint32_t n, uint32_t max_tasks,
                     uint32_t n_pages);

#endif
