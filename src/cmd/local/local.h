/* local.h - runs the requests of a command in this process.
 *
 * A command is a codec, like those of the gateway: it fills a struct request (flow/request.h) and
 * implements a sink (flow/sink.h).  It lends the engines that it has opened, and the main thread is
 * the owner of the requests.
 *
 * Thread:    the main thread.
 * Ownership: open/close over the caller's storage.  Engines and the table belong to the command,
 *            which closes them after local_close.
 * Failure:   SHOAL_E* with a text. */
#ifndef SHOAL_CMD_LOCAL_LOCAL_H
#define SHOAL_CMD_LOCAL_LOCAL_H

#include "base/thread/executor_queue.h"
#include "flow/flow.h"

struct local {
    struct executor_queue queue;
    struct flow flow;
    struct flow_owner owner;
    bool opened;
    struct shoal_adapter *adapter; /* of local_adapt */
};

SHOAL_MUST_CHECK int local_open(struct local *l, struct err *e);
/* All sinks must be closed.  A zeroed struct is fine. */
void local_close(struct local *l);
/* From now on the engine answers requests for the model of this name.  labels: the label set that
 * the name implies, or NULL. */
SHOAL_MUST_CHECK int local_lend(struct local *l, const char *name, const char *labels,
                                struct shoal_engine *engine, struct err *e);
/* Its answers are those with the LoRA adapter PATH or NAME=PATH (NULL: none), which local_close
 * closes: before the engine. */
SHOAL_MUST_CHECK int local_adapt(struct local *l, const char *name, const char *adapter,
                                 struct shoal_engine *engine, struct err *e);
/* Finds the version of a lent model, opened from this path: stored vectors need it. If that fails,
 * it is logged and the version stays unknown. */
void local_identify(struct local *l, const char *name, const char *path);

/* Handles pending events; if there are none, waits for one or for Ctrl-C (interrupt_fd: see
 * term_catch_interrupt). True: Ctrl-C was pressed. */
bool local_turn(struct local *l, int interrupt_fd);
/* Runs the request until *closed, which its sink sets.  Ctrl-C cancels it; true: that happened. */
bool local_run(struct local *l, struct request *r, struct sink *s, const bool *closed,
               int interrupt_fd);

#endif
