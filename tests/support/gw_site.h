/* gw_site.h - a gateway inside a test: one loop that the test drives, no listener. Requests and
 * responses are plain bytes. */
#ifndef SHOAL_TESTS_GW_SITE_H
#define SHOAL_TESTS_GW_SITE_H

#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "apps/home/ask/ask_pack.h"
#include "flow/pool.h"
#include "gateway/api/recall.h"
#include "gateway/call/door.h"
#include "gateway/grpc/health.h"
#include "gateway/server/routes.h"
#include "host/prompt_cache.h"
#include "net/peers.h"

static inline void gw_site_changed(void *gw)
{
    health_changed(gw);
}

static inline void gw_site_identity(void *ctx, const uint8_t *from, const uint8_t *to)
{
    struct gw *gw = ctx;
    if (gw->cache && to)
        prompt_cache_rename(gw->cache, from, to);
}

static inline int gw_site_open(struct gw *gw, size_t cache_bytes)
{
    struct registry_opts mo = {
        .cache_dir = "", .identity = gw_site_identity, .changed = gw_site_changed, .ctx = gw};
    struct gw_loop *gl = &gw->loops[0];
    *gw = (struct gw){.n_loops = 1};
    routes_set(gw);
    int rc = config_create(&gw->config, NULL);
    if (rc == 0) {
        gw->config->log_requests = false;
        gl->gw = gw;
        gl->config = gw->config;
        gl->health.fn = health_on_change;
        rc = recall_create(&gl->recall, NULL);
    }
    if (rc == 0) {
        struct admission_opts ao = config_admission(gw->config);
        rc = admission_create(&gw->admission, &ao, NULL);
    }
    if (rc == 0) {
        const struct peers_limits pl = http_peers_limits(&gw->config->limits);
        rc = peers_create(&gw->peers, &pl, NULL);
    }
    if (rc == 0)
        rc = pool_create(&gw->pool, 1, 16, NULL);
    ask_app_init(&gw->home);
    if (rc == 0)
        rc = ask_pack_table(&gw->home.table, SHOAL_TEST_DATA "/../../models", NULL, NULL, NULL);
    if (rc == 0 && cache_bytes)
        rc = prompt_cache_create(&gw->cache, cache_bytes, 0, NULL);
    if (rc == 0)
        rc = registry_create(&gw->registry, &mo, NULL);
    if (rc == 0)
        rc = loop_create(&gl->loop, NULL);
    if (rc == 0) {
        gw->flow = (struct flow){
            .registry = gw->registry, .cache = gw->cache, .pool = gw->pool, .app = &gw->home.app};
        flow_owner_init(&gl->flow, &gw->flow, loop_executor(gl->loop));
        gl->flow.load_wait_ms = gw->config->load_wait_ms;
        gl->flow.next_seed = clock_ns();
    }
    if (rc == 0)
        rc = http_server_create(&gl->http, gl->loop, NULL, door_handle, gl, NULL);
    if (rc == 0)
        http_server_share_peers(gl->http, gw->peers);
    if (rc == 0)
        http_server_set_early(gl->http, door_early);
    if (rc == 0)
        http_server_set_admit(gl->http, door_admit);
    if (rc == 0)
        http_server_set_refuse(gl->http, door_refuse);
    return rc;
}

/* Runs the loop until nothing outside of it can post any more. */
static inline void gw_site_settle(struct gw *gw)
{
    for (int i = 0; i < 60000 && gw->loops[0].flow.n_jobs > 0; i++)
        loop_turn(gw->loops[0].loop, 1);
}

static inline void gw_site_close(struct gw *gw)
{
    struct gw_loop *gl = &gw->loops[0];
    http_server_destroy(gl->http);
    if (gl->loop)
        gw_site_settle(gw);
    pool_destroy(gw->pool);
    registry_destroy(gw->registry);
    home_table_close(gw->home.table);
    prompt_cache_destroy(gw->cache);
    loop_destroy(gl->loop);
    peers_destroy(gw->peers);
    admission_destroy(gw->admission);
    recall_destroy(gl->recall);
    flow_owner_fini(&gl->flow);
    buf_fini(&gl->spare);
    config_unref(gw->config);
}

/* Sends the request on a separate connection; reads until the connection closes, the server is done
 * with it, or `enough` arrived. Returns the bytes in out, NUL-terminated. */
static inline size_t gw_site_ask(struct gw *gw, const void *request, size_t n, char *out,
                                 size_t cap, const char *enough)
{
    struct gw_loop *gl = &gw->loops[0];
    int fd[2];
    size_t have = 0;
    out[0] = '\0';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) < 0)
        return 0;
    if (http_server_adopt(gl->http, fd[1], NULL) == 0 &&
        send(fd[0], request, n, MSG_NOSIGNAL) == (ssize_t)n)
        for (int i = 0; i < 60000; i++) {
            loop_turn(gl->loop, i < 4 ? 0 : 1);
            ssize_t k = recv(fd[0], out + have, cap - 1 - have, 0);
            if (k == 0)
                break;
            have += k > 0 ? (size_t)k : 0;
            out[have] = '\0';
            if (have > 0 && (!enough || strstr(out, enough)))
                break;
        }
    close(fd[0]);
    loop_turn(gl->loop, 0);
    return have;
}

#endif
