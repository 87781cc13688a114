/* flow_site.h - a flow of a configuration file with its models, collections and calls in this
 * process.
 *
 * Thread:    the main thread.
 * Ownership: open/close over the caller's storage.
 * Failure:   an exit code after a message. */
#ifndef SHOAL_CMD_FLOW_FLOW_SITE_H
#define SHOAL_CMD_FLOW_FLOW_SITE_H

#include "apps/home/ask/ask_run.h"
#include "cmd/cli/opts.h"
#include "cmd/local/local.h"
#include "config/config.h"
#include "host/model_name.h"
#include "pipeline/pipeline_run.h"

#define FLOW_SITE_MODELS 32u

struct collections;
struct deed_calls;

struct flow_site {
    const struct opts *o;
    struct config *config;
    struct graph *graph;
    struct local local;
    struct pipeline_site site;
    struct collections *collections;
    struct deed_calls *calls;
    struct ask_app home;
    int interrupt_fd;
    struct shoal_engine *engines[FLOW_SITE_MODELS];
    struct model_name names[FLOW_SITE_MODELS];
    const char *lent[FLOW_SITE_MODELS];
    uint32_t n_engines;
};

/* The file; *c is NULL after a failure. */
int flow_site_load(struct config **c, const struct opts *o, const char *file);
/* The flow of --flow, or the only one. */
int flow_site_choose(const struct opts *o, const struct config *c, struct graph **out);

int flow_site_open(struct flow_site *s, const struct opts *o, const char *file);
void flow_site_close(struct flow_site *s); /* also after a failed open */
/* Opens the models that the flow's steps name. */
int flow_site_lend(struct flow_site *s);
/* Until *closed; true: Ctrl-C was pressed. */
bool flow_site_run(struct flow_site *s, struct request *r, struct sink *sink, const bool *closed);

#endif
