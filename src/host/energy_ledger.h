/* energy_ledger.h - shares the machine's energy out among the requests that run.
 *
 * Between two readings each request gets the part of the energy that its compute is of the compute
 * of all; what the machine uses while none runs is idle energy.  Compute is what a model's cost
 * says of the tokens that were read and written.
 *
 * Thread:    any: a lock.
 * Ownership: an account is the caller's memory, from begin to end.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_HOST_ENERGY_LEDGER_H
#define SHOAL_HOST_ENERGY_LEDGER_H

#include "base/energy.h"
#include "base/err.h"

struct energy_ledger;

struct energy_account {
    struct energy_account *prev, *next;
    double work, shared; /* compute so far, and how much of it has got its share */
    double joules;
    bool open;
};

struct energy_figures {
    enum energy_kind kind;
    bool estimated;
    double request_joules, idle_joules, watts;
};

SHOAL_MUST_CHECK int energy_ledger_create(struct energy_ledger **out, const char *sys,
                                          const struct energy_model *m, struct err *e);
void energy_ledger_destroy(struct energy_ledger *l); /* NULL is fine; no account may be open */
/* l NULL: nothing is counted, and end gives 0. */
void energy_account_begin(struct energy_ledger *l, struct energy_account *a);
/* Its compute so far, in any unit that all requests share. */
void energy_account_work(struct energy_ledger *l, struct energy_account *a, double work);
/* The joules of the request; later calls give the same. */
double energy_account_end(struct energy_ledger *l, struct energy_account *a);
void energy_ledger_figures(struct energy_ledger *l, struct energy_figures *out);

#endif
