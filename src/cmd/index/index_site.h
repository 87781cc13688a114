/* index_site.h - shared by the verbs of `shoal index`: the folder of collections, models of this
 * process, and the loop that runs a flow to its end.
 *
 * Thread:    the main thread.
 * Ownership: open/close over the caller's storage.
 * Failure:   an exit code after a message. */
#ifndef SHOAL_CMD_INDEX_INDEX_SITE_H
#define SHOAL_CMD_INDEX_INDEX_SITE_H

#include "cmd/cmd.h"
#include "cmd/local/local.h"
#include "host/model_name.h"
#include "knowledge/embedding.h"
#include "store/collections.h"

#define INDEX_SITE_MODELS 3u

struct index_site {
    const struct opts *o;
    struct collections *collections;
    struct local local;
    int interrupt_fd;
    bool interrupted;
    struct shoal_engine *engines[INDEX_SITE_MODELS];
    struct model_name names[INDEX_SITE_MODELS];
    uint32_t n_engines;
};

/* --dir and --json */
extern const struct opts_group index_site_group;
/* --threads and the like, without -m */
extern const struct opts_group index_site_model_group;

/* Opens the folder of --dir, or the usual one.  CMD_OK, or an exit code. */
int index_site_open(struct index_site *s, const struct opts *o);
void index_site_close(struct index_site *s);
/* Opens a model, so that requests for `model` find it. */
int index_site_lend(struct index_site *s, const char *model);
/* Runs turns until *over; Ctrl-C calls cancel(ctx). */
void index_site_run(struct index_site *s, const bool *over, void (*cancel)(void *ctx), void *ctx);
/* The settings and figures of a collection. */
int index_site_info(struct index_site *s, const char *name, struct collection_info *out);

#endif
