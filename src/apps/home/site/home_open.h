/* home_open.h - opens a home for the home flow: a home file, or the demo home of the pack.
 *
 * Thread:    any.
 * Ownership: gives the caller what home_things_create gives.
 * Failure:   SHOAL_E* with the file's name. */
#ifndef SHOAL_APPS_HOME_HOME_OPEN_H
#define SHOAL_APPS_HOME_HOME_OPEN_H

#include "apps/home/site/home_things.h"

struct home_open_opts {
    const char *path;       /* the home file; NULL: the demo home */
    const char *models;     /* folder of the pack; NULL: where pack_open looks */
    const char *state_path; /* file of states; NULL: none */
};

/* A pack without a demo home: SHOAL_ENOTFOUND. */
SHOAL_MUST_CHECK int home_open(struct home_things **out, const struct home_table *t,
                               const struct home_open_opts *o, struct err *e);
/* Reads only the file. */
SHOAL_MUST_CHECK int home_open_file(struct home_file **out, const struct home_table *t,
                                    const struct home_open_opts *o, struct err *e);

#endif
