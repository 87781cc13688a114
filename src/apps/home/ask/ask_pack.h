/* ask_pack.h - opens the home flow from a pack (host/pack.h: the folder of models that comes with
 * Shoal): the table and the models it names, each checked against the manifest.
 *
 * Thread:    one thread opens and closes.
 * Ownership: open gives, close takes back; no request may be left then. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_PACK_H
#define SHOAL_APPS_HOME_ASK_ASK_PACK_H

#include "apps/home/ask/ask.h"
#include "apps/home/table/home_table.h"

struct ask_pack {
    struct home_table *table;
    struct shoal_engine *reader, *reply; /* reply NULL: actions only */
    bool lent_reader, lent_reply;        /* the caller's: not closed here */
    struct ask *ask;                     /* NULL with parts_only */
};

struct ask_pack_opts {
    const char *dir;   /* NULL: where pack_open looks */
    const char *table; /* this file instead of the pack's table; NULL: the pack's */
    /* use these, do not open the pack's; NULL: open */
    struct shoal_engine *reader, *reply;
    const char *home; /* a home file, which says the language; NULL: with the pack's table its demo
                         home, else none */
    const char *language; /* that texts may be in beside that of the home file, "de"; NULL: none */
    bool no_reply;
    bool parts_only; /* table and engines; ask stays NULL */
    uint32_t n_threads;
    bool (*progress)(void *ctx, double part); /* as in shoal_engine_opts */
    void *progress_ctx;
};

SHOAL_MUST_CHECK int ask_pack_open(struct ask_pack *p, const struct ask_pack_opts *o,
                                   struct err *e);
void ask_pack_close(struct ask_pack *p);

/* The table alone: the file at path, or with NULL the one of the pack in dir for the language of a
 * home file, and those of all other languages of the pack (home_table_in); home NULL: English. */
SHOAL_MUST_CHECK int ask_pack_table(struct home_table **out, const char *dir, const char *path,
                                    const char *home, struct err *e);

#endif
