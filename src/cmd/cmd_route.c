/* cmd_route.c - shoal route: which model a route of a running server would choose. */
#include <stdio.h>

#include "cmd/server_ask.h"
#include "wire/json_out.h"

cmd_fn cmd_route;

#define NAME_WIDTH 20

static const struct opts_def defs[] = {
    {"route", 'r', OPTS_TEXT, "NAME", "auto", 0, 0, "the route"},
    {"explain", 0, OPTS_FLAG, NULL, NULL, 0, 0, "show all candidates, their estimates, and why"},
    {"budget", 0, OPTS_REAL, "MS", NULL, 0.001, 86400000, "latency budget of the answer"},
    {"max-tokens", 'n', OPTS_UINT, "N", NULL, 1, 1 << 24, "longest answer"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the text from a file"},
};
static const struct opts_def server_defs[] = {SERVER_ASK_DEFS};

static const struct opts_page page = {
    .command = "route",
    .arguments = "[TEXT]",
    .max_args = 1,
    .summary = "Shows which model a route of a running server would choose, without running it.",
    .groups = {OPTS_GROUP("Options", defs), OPTS_GROUP("Server", server_defs)},
    .examples = "  shoal route --explain \"turn off the lights\"\n"
                "  shoal route -r support --budget 300 --explain \"my router is broken\"\n",
};

static void put_body(struct buf *b, const struct opts *o, const struct buf *text)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "model", opts_text(o, "route"));
    json_out_member_strn(&j, "text", buf_str(text), text->len);
    if (opts_given(o, "budget"))
        json_out_member_num(&j, "latency_budget_ms", opts_real(o, "budget"));
    if (opts_given(o, "max-tokens"))
        json_out_member_uint(&j, "max_tokens", opts_uint(o, "max-tokens"));
    json_out_object_end(&j);
}

static void put_candidates(struct buf *b, const cJSON *answer)
{
    const cJSON *c;
    buf_printf(b, "\n%-*s  %-12s  %7s  %6s  %9s  %9s  %9s  %s\n", NAME_WIDTH, "MODEL", "NODE",
               "QUALITY", "COST", "QUEUE ms", "WORK ms", "TOTAL ms", "WHY");
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(answer, "candidates"))
    {
        const cJSON *x = cJSON_GetObjectItemCaseSensitive(c, "estimate");
        const char *node = server_ask_text(c, "node");
        bool known = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(x, "known"));
        buf_printf(b, "%-*.*s  %-12.12s  %7.2f  %6g  %9.1f  %9.1f  %8.1f%s  %s\n", NAME_WIDTH,
                   NAME_WIDTH, server_ask_text(c, "model"), node[0] ? node : "-",
                   server_ask_number(c, "quality"), server_ask_number(c, "cost"),
                   server_ask_number(x, "queue_ms"),
                   server_ask_number(x, "prefill_ms") + server_ask_number(x, "decode_ms"),
                   server_ask_number(x, "total_ms"), known ? " " : "?", server_ask_text(c, "why"));
    }
}

/* Its models in their order: "cascade: small, large". */
static void put_ensemble(struct buf *b, const cJSON *ensemble)
{
    const cJSON *step;
    const char *comma = "";
    buf_printf(b, "%s: ", server_ask_text(ensemble, "kind"));
    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(ensemble, "steps"))
    {
        buf_printf(b, "%s%s", comma, server_ask_text(step, "model"));
        comma = ", ";
    }
    buf_putc(b, '\n');
}

static void put_answer(struct buf *b, const cJSON *a, bool explain)
{
    const char *node = server_ask_text(a, "node"), *domain = server_ask_text(a, "domain");
    buf_printf(b, "%s", server_ask_text(a, "model"));
    if (node[0])
        buf_printf(b, " on %s", node);
    buf_printf(b, " (route %s", server_ask_text(a, "route"));
    if (server_ask_number(a, "rule") > 0)
        buf_printf(b, ", rule %.0f", server_ask_number(a, "rule"));
    if (domain[0])
        buf_printf(b, ", domain %s with %.2f", domain, server_ask_number(a, "domain_confidence"));
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "degraded")))
        buf_puts(b, ", degraded: no model meets all requirements");
    buf_puts(b, ")\n");
    const cJSON *ensemble = cJSON_GetObjectItemCaseSensitive(a, "ensemble");
    if (ensemble) {
        put_ensemble(b, ensemble);
        return;
    }
    if (!explain)
        return;
    buf_printf(b, "policy: %s; %.0f prompt tokens", server_ask_text(a, "policy"),
               server_ask_number(a, "prompt_tokens"));
    if (server_ask_number(a, "budget_ms") > 0)
        buf_printf(b, "; %.3f ms left", server_ask_number(a, "budget_ms"));
    buf_printf(b, "; decided in %.1f us\n", server_ask_number(a, "decided_us"));
    put_candidates(b, a);
}

int cmd_route(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask r;
    struct buf text, body, out;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    server_ask_init(&r, &o);
    buf_init(&text, SERVER_ASK_MAX_BYTES);
    buf_init(&body, 2 * SERVER_ASK_MAX_BYTES);
    buf_init(&out, 2 * SERVER_ASK_MAX_BYTES);
    rc = cmd_read_text(&o, o.n_args ? o.args[0] : NULL, opts_text(&o, "file"), &text);
    if (rc == CMD_OK) {
        put_body(&body, &o, &text);
        rc = server_ask(&r, "/v1/route", "candidates", buf_str(&body), body.len);
    }
    if (rc == CMD_OK && opts_flag(&o, "json"))
        buf_printf(&out, "%s\n", buf_str(&r.body));
    else if (rc == CMD_OK)
        put_answer(&out, r.json, opts_flag(&o, "explain"));
    if (rc == CMD_OK)
        rc = cmd_print(&page, &out);
    buf_fini(&text);
    buf_fini(&body);
    buf_fini(&out);
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}
