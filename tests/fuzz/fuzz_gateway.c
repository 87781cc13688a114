/* fuzz_gateway.c - request bodies for a server without models: every body gets a response. The
 * first byte chooses the route. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/gw_site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gw gw; /* one server for all inputs: its threads cost more than a request */
    static char got[65536], request[40000];
    if (size < 1 || size > 32768 || (!gw.n_loops && gw_site_open(&gw, 0) < 0))
        return 0;
    const struct route *r = &gw.routes[(data[0] & 127) % gw.n_routes];
    int n = snprintf(request, sizeof(request),
                     "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n", r->method,
                     r->path, size - 1, data[0] & 128 ? "X-Shoal-Lenient: 1\r\n" : "");
    memcpy(request + n, data + 1, size - 1);
    size_t have = gw_site_ask(&gw, request, (size_t)n + size - 1, got, sizeof(got), NULL);
    if (have < 12 || memcmp(got, "HTTP/1.1 ", 9) != 0)
        abort(); /* no response */
    gw_site_settle(&gw);
    if (gw.loops[0].n_calls != 0 || gw.loops[0].flow.n_jobs != 0)
        abort(); /* a leak */
    return 0;
}
