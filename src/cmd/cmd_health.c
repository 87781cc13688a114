/* cmd_health.c - shoal health: checks whether a server or node accepts requests, for probes in
 * container images without a shell. */
#include <stdio.h>

#include "base/buf.h"
#include "cmd/cmd.h"
#include "cmd/server_ask.h"
#include "net/http_ask.h"

cmd_fn cmd_health;

#define MAX_ANSWER ((size_t)64 << 10)

static const struct opts_def defs[] = {
    SERVER_ASK_ADDRESS_DEF,
    {"live", 0, OPTS_FLAG, NULL, NULL, 0, 0, "only check that the process is alive"},
    {"timeout", 0, OPTS_REAL, "S", "5", 0.1, 3600, "seconds to wait for the answer"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page page = {
    .command = "health",
    .arguments = "",
    .summary = "Checks whether a server accepts requests: for health checks and scripts.",
    .details = "Exit code 0: it does.  1: it cannot be reached.  3: it is alive but not ready yet, "
               "or draining.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal health\n"
                "  shoal health --server unix:/run/shoal/http.sock --timeout 1\n"
                "  until shoal health; do sleep 1; done\n",
};

static int ask(const struct opts *o)
{
    bool live = opts_flag(o, "live");
    struct err e = {0};
    struct buf answer;
    int status = 0;
    struct http_ask a = {.server = server_ask_address(o),
                         .method = "GET",
                         .path = live ? "/healthz" : "/readyz",
                         .timeout_ms = (uint32_t)(opts_real(o, "timeout") * 1000.0)};
    buf_init(&answer, MAX_ANSWER);
    int rc = http_ask(&a, &status, &answer, &e);
    buf_fini(&answer);
    bool well = rc == 0 && status == 200;
    const char *state = rc < 0 ? "away" : !well ? "not ready" : live ? "alive" : "ready";
    if (opts_flag(o, "json"))
        printf("{\"state\":\"%s\",\"status\":%d}\n", state, status);
    else if (rc == 0)
        printf("%s\n", state);
    if (rc < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return well ? CMD_OK : CMD_NOT_WELL;
}

int cmd_health(int argc, const char *const *argv)
{
    return cmd_page(&page, argc, argv, ask);
}
