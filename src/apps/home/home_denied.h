/* home_denied.h - says in words why the gate does not let a deed pass.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_DENIED_H
#define SHOAL_APPS_HOME_HOME_DENIED_H

#include "apps/home/gate/gate.h"

/* NULL: it passes. */
const char *home_denied(struct arena *a, const struct home_table *t, const struct gate_verdict *v);

#endif
