/* later_site.h - schedules of the home in a server: the schedule of /v1/process, its file, and
 * delivery of results.
 *
 * A result is logged, is shown by /v1/home and /v1/scheduled, and goes to the MQTT topic
 * TOPIC/scheduled/KIND (QoS 1, kept on disk until the broker acknowledges it).
 *
 * Thread:    open, start, stop, close: main's.
 * Ownership: open gives, close takes back (NULL is fine).  What opts names outlives it.
 * Failure:   open reports a configured file that cannot be used. Without the default file the
 *            schedule is kept in memory, with a warning. */
#ifndef SHOAL_SITE_THINGS_LATER_SITE_H
#define SHOAL_SITE_THINGS_LATER_SITE_H

#include "base/err.h"

struct config;
struct home_later;
struct home_table;
struct home_things;
struct later_site;
struct mqtt;

struct later_site_opts {
    const struct config *config; /* while it opens */
    const char *cache_dir;       /* for its file, where there is no state folder */
    struct home_table *table;    /* NULL without things */
    struct home_things *things;  /* NULL: no home */
    struct mqtt *client;         /* NULL: no broker */
};

/* *out is NULL without a home, or with a table that has no words for it; after a failure it must
 * be closed. */
SHOAL_MUST_CHECK int later_site_open(struct later_site **out, const struct later_site_opts *lo,
                                     struct err *e);
/* Starts running due entries: the code that carries out actions is ready. */
SHOAL_MUST_CHECK int later_site_start(struct later_site *s, struct err *e);
/* No entry starts from now on. */
void later_site_stop(struct later_site *s);
/* Publishes the results since then. */
void later_site_settle(struct later_site *s);
/* All started entries have ended. */
void later_site_close(struct later_site *s);
/* NULL: nothing happens later here. */
struct home_later *later_site_list(struct later_site *s);

#endif
