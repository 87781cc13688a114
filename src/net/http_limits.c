/* http_limits.c - see http.h: the limits that a server has by default.  A file of its own, so that
 * whoever only reads them does not need the server. */
#include "net/http.h"

const struct http_limits http_default_limits = {.max_header_bytes = 32 << 10,
                                                .max_body_bytes = 16 << 20,
                                                .max_headers = 100,
                                                .max_conns = 4096,
                                                .max_streams = 128,
                                                .request_ms = 15000,
                                                .idle_ms = 75000,
                                                .write_ms = 30000,
                                                .max_resets = 400};
