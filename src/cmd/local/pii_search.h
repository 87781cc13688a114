/* pii_search.h - personal data in the texts of a command: by rules, and by a model if names are
 * looked for.
 *
 * Thread:    the main thread.
 * Ownership: open/close over the caller's storage.  Hits are valid until the next search.
 * Failure:   messages go to stderr; exit codes as of cmd.h. */
#ifndef SHOAL_CMD_LOCAL_PII_SEARCH_H
#define SHOAL_CMD_LOCAL_PII_SEARCH_H

#include "base/err.h"
#include "cmd/cli/opts.h"
#include "privacy/pii.h"

struct shoal_engine;

struct pii_search {
    unsigned kinds;
    struct shoal_engine *engine; /* NULL: only rules */
    struct pii_hit *hits;        /* of the last search, in order */
    uint32_t n, cap;
    int rc;
};

/* --find, -m and how the model runs: for all commands that search. */
extern const struct opts_group pii_search_group;

/* CMD_OK, or an exit code after a message. */
int pii_search_open(struct pii_search *s, const struct opts *o);
void pii_search_close(struct pii_search *s);
SHOAL_MUST_CHECK int pii_search_run(struct pii_search *s, const char *text, size_t n,
                                    struct err *e);

#endif
