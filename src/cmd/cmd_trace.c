/* cmd_trace.c - shoal trace: where a request of a running server spent its time, as a picture. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/cmd.h"
#include "cmd/server_ask.h"

cmd_fn cmd_trace;

#define BAR_CHARS 40
#define NAME_CHARS 30

static const struct opts_def defs[] = {
    SERVER_ASK_DEFS,
    {"limit", 'n', OPTS_UINT, "N", "20", 1, 200, "without ID: how many of the last requests"},
};

static const struct opts_page page = {
    .command = "trace",
    .arguments = "[ID]",
    .max_args = 1,
    .summary = "Shows where a request spent its time, or lists the last requests.",
    .details = "ID is that of the request (the header x-request-id, or the log) or of its trace.\n"
               "The server keeps the last ones in memory (tracing.keep): no collector is needed.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal trace\n"
                "  shoal trace req_4e3cf4a5a8ac8763\n"
                "  shoal trace req_4e3cf4a5a8ac8763 --json\n",
};

static int list(struct server_ask *r)
{
    const cJSON *one;
    char path[64];
    snprintf(path, sizeof(path), "/v1/traces?limit=%u", (unsigned)opts_uint(r->o, "limit"));
    int rc = server_ask(r, path, "traces", NULL, 0);
    if (rc != CMD_OK || opts_flag(r->o, "json")) {
        if (rc == CMD_OK)
            puts(buf_str(&r->body));
        return rc;
    }
    const cJSON *all = cJSON_GetObjectItem(r->json, "traces");
    if (cJSON_GetArraySize(all) == 0)
        puts("no requests yet");
    cJSON_ArrayForEach(one, all)
    {
        const time_t at = (time_t)(server_ask_number(one, "began_unix_ms") / 1000);
        struct tm tm;
        char when[16];
        strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&at, &tm));
        printf("%s %10.2f ms  %-24s %s%s\n", when, server_ask_number(one, "took_ms"),
               server_ask_text(one, "request"), server_ask_text(one, "name"),
               cJSON_IsTrue(cJSON_GetObjectItem(one, "failed")) ? "  failed" : "");
    }
    return CMD_OK;
}

static int depth_of(const cJSON *spans, const cJSON *span)
{
    int depth = 0;
    for (const cJSON *up = cJSON_GetObjectItem(span, "parent"); cJSON_IsNumber(up) && depth < 16;
         depth++)
        up = cJSON_GetObjectItem(cJSON_GetArrayItem(spans, up->valueint), "parent");
    return depth;
}

static void draw_bar(double start, double took, double all)
{
    char bar[BAR_CHARS + 1];
    int from = all > 0 ? (int)floor(start / all * BAR_CHARS) : 0;
    int to = all > 0 ? (int)ceil((start + took) / all * BAR_CHARS) : 0;
    from = from < 0 ? 0 : from >= BAR_CHARS ? BAR_CHARS - 1 : from;
    to = to <= from ? from + 1 : to > BAR_CHARS ? BAR_CHARS : to;
    memset(bar, ' ', BAR_CHARS);
    memset(bar + from, '#', (size_t)(to - from));
    bar[BAR_CHARS] = '\0';
    printf("|%s|", bar);
}

static void draw_notes(const cJSON *span)
{
    const cJSON *note;
    cJSON_ArrayForEach(note, cJSON_GetObjectItem(span, "attributes"))
    {
        const char *dot = strrchr(note->string, '.');
        const char *key = dot ? dot + 1 : note->string;
        if (cJSON_IsString(note))
            printf(" %s=%s", key,
                   server_ask_text(cJSON_GetObjectItem(span, "attributes"), note->string));
        else
            printf(" %s=%.0f", key, note->valuedouble);
    }
}

/* A span and those below it, in the order in which they began. */
static void draw(const cJSON *spans, int index, double all)
{
    const cJSON *span = cJSON_GetArrayItem(spans, index);
    const double start = server_ask_number(span, "start_ms"),
                 took = server_ask_number(span, "took_ms");
    const int depth = depth_of(spans, span), indent = depth * 2 < 20 ? depth * 2 : 20;
    printf("%*s%-*.*s ", indent, "", NAME_CHARS - indent, NAME_CHARS - indent,
           server_ask_text(span, "name"));
    draw_bar(start, took, all);
    printf(" %9.3f ms%s", took, cJSON_IsTrue(cJSON_GetObjectItem(span, "failed")) ? " FAILED" : "");
    draw_notes(span);
    putchar('\n');
    for (int i = index + 1; i < cJSON_GetArraySize(spans); i++) {
        const cJSON *up = cJSON_GetObjectItem(cJSON_GetArrayItem(spans, i), "parent");
        if (cJSON_IsNumber(up) && up->valueint == index)
            draw(spans, i, all);
    }
}

static int show(struct server_ask *r, const char *id)
{
    char path[160];
    if (strlen(id) > 100 || strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789._:-") != strlen(id))
        return cmd_fail(r->o->page, "'%.100s' is not the id of a request or trace", id);
    snprintf(path, sizeof(path), "/v1/traces/%s", id);
    int rc = server_ask(r, path, "spans", NULL, 0);
    if (rc != CMD_OK)
        return rc;
    if (opts_flag(r->o, "json")) {
        puts(buf_str(&r->body));
        return CMD_OK;
    }
    printf("trace %s  request %s  %.2f ms\n", server_ask_text(r->json, "trace_id"),
           server_ask_text(r->json, "request"), server_ask_number(r->json, "took_ms"));
    draw(cJSON_GetObjectItem(r->json, "spans"), 0, server_ask_number(r->json, "took_ms"));
    return CMD_OK;
}

int cmd_trace(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask r;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    server_ask_init(&r, &o);
    rc = o.n_args == 1 ? show(&r, o.args[0]) : list(&r);
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}
