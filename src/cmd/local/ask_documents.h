/* ask_documents.h - the collections behind `shoal ask --documents`, and the model that reads them.
 *
 * Thread:    the main thread.
 * Ownership: open/close over the caller's storage; a zeroed struct may be closed. Close after
 *            local_close: the model is lent.
 * Failure:   SHOAL_E* with a text. */
#ifndef SHOAL_CMD_LOCAL_ASK_DOCUMENTS_H
#define SHOAL_CMD_LOCAL_ASK_DOCUMENTS_H

#include "cmd/local/local.h"
#include "knowledge/documents_app.h"

struct ask_documents {
    struct documents_app app;
    struct collections *collections;
    struct shoal_engine *engines[DOCUMENTS_APP_MAX]; /* one for each embedding model */
    uint32_t n_engines;
};

/* From now on l asks the collections of these names what its application leaves open. models: the
 * folder of the included models, or NULL. */
SHOAL_MUST_CHECK int ask_documents_open(struct ask_documents *d, struct local *l,
                                        const char *const *names, size_t n, const char *models,
                                        struct err *e);
void ask_documents_close(struct ask_documents *d);

#endif
