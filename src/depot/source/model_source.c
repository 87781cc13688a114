/* model_source.c - see model_source.h. */
#include "depot/source/model_source.h"

bool model_source_stopped(void *opts)
{
    const struct model_source_opts *o = opts;
    return atomic_load_explicit(o->stop, memory_order_relaxed) ||
           (o->stopped && o->stopped(o->ctx));
}
