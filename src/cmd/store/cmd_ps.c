/* cmd_ps.c - shoal ps: the models that a running server has in memory. */
#include <string.h>

#include "base/bytes_text.h"
#include "cmd/server_ask.h"

cmd_fn cmd_ps;

#define MAX_OUTPUT_BYTES ((size_t)16 << 20)

static const struct opts_def defs[] = {SERVER_ASK_DEFS};

static const struct opts_page page = {
    .command = "ps",
    .arguments = "",
    .summary = "Lists the models that a running server has in memory.",
    .groups = {OPTS_GROUP("Server", defs)},
    .examples = "  shoal ps\n  shoal ps --server http://10.0.0.2:8080\n",
};

static int print(const struct server_ask *r)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(r->json, "models"), *m;
    struct buf b;
    char size[32];
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(r->o, "json")) {
        buf_put(&b, buf_str(&r->body), r->body.len);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b, "%-32s %-12s %10s %8s  %s\n", "NAME", "SHA-256", "MEMORY", "CONTEXT",
                   "UNTIL (UTC)");
        cJSON_ArrayForEach(m, list)
        {
            const char *until = server_ask_text(m, "expires_at");
            buf_printf(&b, "%-32s %-12.12s %10s %8.0f  %.16s\n", server_ask_text(m, "name"),
                       server_ask_text(m, "digest"),
                       bytes_text(size, server_ask_number(m, "size_memory")),
                       server_ask_number(m, "context_length"),
                       strncmp(until, "2300", 4) == 0 ? "needed" : until);
        }
    }
    int rc = b.rc < 0 ? cmd_fail(r->o->page, "%s", err_text(b.rc)) : cmd_print(r->o->page, &b);
    buf_fini(&b);
    return rc;
}

int cmd_ps(int argc, const char *const *argv)
{
    struct server_ask r;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    server_ask_init(&r, &o);
    rc = server_ask(&r, "/api/ps", "models", NULL, 0);
    if (rc == CMD_OK)
        rc = print(&r);
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}
