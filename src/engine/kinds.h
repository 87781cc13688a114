/* kinds.h - the kinds of work that a model can do, by name. */
#ifndef SHOAL_ENGINE_KINDS_H
#define SHOAL_ENGINE_KINDS_H

#include "base/err.h"
#include "shoal/shoal.h"

/* Fails with SHOAL_EUNSUPPORTED; the message lists what the model can do. */
int kinds_lack(unsigned have, enum shoal_kind wanted, struct err *e);

#endif
