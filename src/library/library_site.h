/* library_site.h - a flow of a configuration file with all it needs in this process: models,
 * collections, the home; and the thread that runs it.
 *
 * Thread:    open and close: the caller's.  `owner` and all requests: the site's own thread, which
 *            other threads reach through queue.executor.
 * Ownership: open/close over the caller's storage; close also after a failed open.
 * Failure:   SHOAL_E* with a text. */
#ifndef SHOAL_LIBRARY_LIBRARY_SITE_H
#define SHOAL_LIBRARY_LIBRARY_SITE_H

#include <pthread.h>

#include "apps/home/ask/ask_run.h"
#include "base/thread/executor_queue.h"
#include "config/config.h"
#include "flow/flow.h"
#include "host/model_name.h"
#include "pipeline/pipeline_run.h"
#include "shoal/shoal_flow.h"

#define LIBRARY_SITE_MODELS 32u

struct collections;

struct library_site {
    struct config *config;
    struct graph *graph;
    struct executor_queue queue;
    struct flow flow;
    struct flow_owner owner;
    struct pipeline_site pipeline;
    struct collections *collections;
    struct ask_app home;
    struct shoal_engine *engines[LIBRARY_SITE_MODELS];
    const char *lent[LIBRARY_SITE_MODELS]; /* their names */
    uint32_t n_engines;
    const struct shoal_flow_opts *opts; /* while it opens */
    struct err *e;                      /* likewise */
    bool has_queue, has_owner, has_thread;
    pthread_t thread;
    bool stop;                       /* the site's thread */
    uint32_t n_running;              /* likewise: requests that are not closed */
    struct executor_task stop_later; /* posted by close */
};

SHOAL_MUST_CHECK int library_site_open(struct library_site *s, const char *path,
                                       const struct shoal_flow_opts *o, struct err *e);
/* Waits for the requests that are left. */
void library_site_close(struct library_site *s);

#endif
