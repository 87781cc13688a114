/* node_health.h - how well a member is: its clock, its certificate, its disk, its temperature.
 *
 * Thread:    any; files are read every few seconds, however often it is asked.
 * Ownership: init/fini over the caller's storage.
 * Failure:   what cannot be found out is 0. */
#ifndef SHOAL_CLUSTER_MACHINE_NODE_HEALTH_H
#define SHOAL_CLUSTER_MACHINE_NODE_HEALTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum node_clock { NODE_CLOCK_UNKNOWN, NODE_CLOCK_KEPT, NODE_CLOCK_FREE }; /* by NTP, or not */

struct node_health {
    uint64_t clock_ms; /* time of day there, when it was sent */
    enum node_clock clock;
    int64_t cert_until_s;           /* end of its certificate, since 1970 */
    uint64_t disk_free, disk_bytes; /* where it writes, the disk with the least free space */
    double celsius, celsius_limit;  /* limit: from when on it slows down */
    bool throttled;                 /* it has slowed down within the last minute */
};

#define NODE_HEALTH_FOLDERS 2u

struct node_health_watch {
    pthread_mutex_t lock;
    const char *cert;                         /* file; NULL: none */
    const char *folders[NODE_HEALTH_FOLDERS]; /* where it writes; NULL: none */
    struct node_health last;
    uint64_t read_ns, n_throttled, throttled_ns;
};

/* Sets nothing but the lock; the rest is the caller's. */
void node_health_init(struct node_health_watch *w);
void node_health_fini(struct node_health_watch *w);
void node_health_get(struct node_health_watch *w, struct node_health *out);

#endif
