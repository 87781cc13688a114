/* fuzz_gateway.c - bodies of requests to a server without models: whatever they are, an answer
 * comes. The first byte chooses the route. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/generate.h"
#include "gateway/gw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One server for all inputs: its threads cost more than a request. */
static struct gw *open_gw(void)
{
    static struct gw gw;
    struct models_opts mo = {0};
    struct gw_loop *gl = &gw.loops[0];
    if (gw.n_loops)
        return &gw;
    if (config_create(&gw.config, NULL) < 0 || clients_create(&gw.clients, gw.config, NULL) < 0 ||
        pool_create(&gw.pool, 1, 16, NULL) < 0 || models_create(&gw.models, &mo, NULL) < 0 ||
        loop_create(&gl->loop, NULL) < 0 ||
        http_server_create(&gl->http, gl->loop, NULL, gw_handle, gl, NULL) < 0)
        abort();
    gw.config->log_requests = false;
    gl->gw = &gw;
    gl->config = gw.config;
    gw.n_loops = 1;
    return &gw;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw *gw = open_gw();
    struct gw_loop *gl = &gw->loops[0];
    char head[256], got[65536];
    int fd[2];
    if (size < 1 || size > 32768 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) < 0)
        return 0;
    const struct route *r = &gw_routes[(data[0] & 127) % gw_n_routes];
    int n =
        snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n",
                 r->method, r->path, size - 1, data[0] & 128 ? "X-Shoal-Lenient: 1\r\n" : "");
    if (http_server_adopt(gl->http, fd[1], NULL) < 0) {
        close(fd[0]);
        return 0;
    }
    size_t have = 0;
    if (send(fd[0], head, (size_t)n, MSG_NOSIGNAL) > 0 &&
        send(fd[0], data + 1, size - 1, MSG_NOSIGNAL) >= 0)
        for (int i = 0; i < 1000 && have == 0; i++) {
            loop_turn(gl->loop, i < 4 ? 0 : 1);
            ssize_t k = recv(fd[0], got, sizeof(got), 0);
            have += k > 0 ? (size_t)k : 0;
        }
    if (have < 12 || memcmp(got, "HTTP/1.1 ", 9) != 0)
        abort(); /* no answer */
    close(fd[0]);
    loop_turn(gl->loop, 0);
    if (gl->n_calls != 0 || gl->n_jobs != 0)
        abort(); /* something stayed */
    return 0;
}
