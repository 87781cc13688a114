/* ask_run.h - the home as an application of flow, and the life of an ask: wait for its models,
 * submit it (ask.h), deliver the plan, the reply and the end to the sink.
 *
 * Thread:    the owner's.
 * Ownership: table and things are borrowed; they outlive all requests. */
#ifndef SHOAL_APPS_HOME_ASK_ASK_RUN_H
#define SHOAL_APPS_HOME_ASK_ASK_RUN_H

#include "flow/app.h"
#include "flow/flow.h"

struct home_table;
struct home_things;

struct ask_app {
    struct app app;             /* first; for struct flow */
    struct home_table *table;   /* words and actions; NULL: none */
    bool table_failed;          /* there is a table, but it cannot be read */
    struct home_things *things; /* the home that asks are about; NULL: none */
};

/* Asks are about nothing until the caller sets the members. */
void ask_app_init(struct ask_app *a);

#endif
