/* byte_sink.h - where the bytes of a transfer go. */
#ifndef SHOAL_DEPOT_SOURCE_BYTE_SINK_H
#define SHOAL_DEPOT_SOURCE_BYTE_SINK_H

#include <stddef.h>

#include "base/err.h"

struct byte_sink {
    void *ctx;
    int (*write)(void *ctx, const void *p, size_t n, struct err *e);
};

#endif
