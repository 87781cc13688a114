/* stored.h - the store of models (depot/store/model_store.h) as commands use it.
 *
 * Thread:    the main thread.
 * Ownership: stored_open gives, model_store_close takes back. */
#ifndef SHOAL_CMD_LOCAL_STORED_H
#define SHOAL_CMD_LOCAL_STORED_H

#include <limits.h>
#include <stdatomic.h>

#include "cmd/cmd.h"

struct model_store;

#define STORED_DIR_DEF                                                                             \
    {                                                                                              \
        "store", 0, OPTS_TEXT, "DIR", NULL, 0, 0,                                                  \
            "folder of the store; default: $SHOAL_STORE, or ~/.local/share/shoal/store"            \
    }

/* The store of --store, with a limit of its size (0: none); from now on Ctrl-C sets stored_stop
 * instead of ending the program. NULL after a message. */
struct model_store *stored_open(const struct opts *o, uint64_t max_bytes);
extern _Atomic bool stored_stop;
/* A whole command: parses options, opens the store and runs it with them. Returns its exit code. */
int stored_main(const struct opts_page *page, int argc, const char *const *argv,
                int (*run)(const struct opts *o, struct model_store *s));
/* Prints an error; the exit code. */
int stored_fail(const struct opts *o, const struct err *e);
/* Where the usual store has the model of that name. SHOAL_ENOTFOUND: it does not. */
SHOAL_MUST_CHECK int stored_path(const char *name, char path[PATH_MAX], struct err *e);

#endif
