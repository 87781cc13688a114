/* cmd_cluster_events.c - shoal cluster events: what happened in the shoal. */
#include <poll.h>
#include <stdio.h>

#include "cluster/control/bus.h"
#include "cluster/control/control_json.h"
#include "cluster/control/event_log.h"
#include "cmd/cli/term.h"
#include "cmd/cluster/cluster_opts.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_events;

#define MAX_LINE_BYTES 16384u
#define LOOK_EVERY_MS 500

static const struct opts_def defs[] = {
    {"last", 'n', OPTS_UINT, "N", "50", 1, 100000, "events to show"},
    {"follow", 'f', OPTS_FLAG, NULL, NULL, 0, 0, "follow new events until Ctrl-C"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object a line"},
};

static const struct opts_page page = {
    .command = "cluster events",
    .arguments = "",
    .summary = "Shows the last events: nodes that joined and left, models, rollouts, failovers.",
    .details = "Events are kept in NATS for a week, or up to 64 MiB.  Times are those of the "
               "member's own clock.",
    .groups = {OPTS_GROUP("Options", defs), &cluster_opts_nats},
    .examples = "  shoal cluster events\n"
                "  shoal cluster events --follow --json --nats nats://10.0.0.1:4222\n",
};

struct printer {
    const struct opts *o;
    struct buf line;
    int rc;
};

/* Safe for a terminal: control characters become '?'. */
static void put_plain(struct buf *b, const char *s)
{
    for (; *s; s++)
        buf_putc(b, (unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s);
}

static bool print(void *ctx, const struct event_log_entry *entry)
{
    struct printer *p = ctx;
    buf_clear(&p->line);
    if (opts_flag(p->o, "json")) {
        struct json_out j = json_out_make(&p->line);
        control_json_event(&j, entry);
    } else {
        char time[32];
        control_json_time(time, entry->at_ms);
        buf_printf(&p->line, "%s %-14s", time, event_log_kind_text(entry->kind));
        const char *const words[] = {entry->node, entry->model, entry->text};
        for (size_t i = 0; i < 3; i++)
            if (words[i][0]) {
                buf_putc(&p->line, ' ');
                put_plain(&p->line, words[i]);
            }
        buf_puts(&p->line, " (");
        put_plain(&p->line, entry->sender);
        if (entry->fence)
            buf_printf(&p->line, ", fence %llu", (unsigned long long)entry->fence);
        buf_putc(&p->line, ')');
    }
    buf_putc(&p->line, '\n');
    p->rc = cmd_print(p->o->page, &p->line);
    return p->rc == CMD_OK;
}

static int show(struct bus *b, const struct opts *o)
{
    struct printer p = {.o = o};
    struct err e = {0};
    uint64_t next = 0;
    uint32_t n_bad = 0;
    bool follow = opts_flag(o, "follow");
    int interrupt = follow ? term_catch_interrupt() : -1;
    buf_init(&p.line, MAX_LINE_BYTES);
    uint32_t n = opts_u32(o, "last");
    do {
        int rc = event_log_read(b, next, n, print, &p, &next, &n_bad, &e);
        n = UINT32_MAX;                               /* after the first batch, print everything */
        if (rc < 0 && (!follow || rc != SHOAL_EBUSY)) /* --follow waits for NATS to come back */
            p.rc = cmd_fail(o->page, "%s", e.msg);
        struct pollfd wait = {.fd = interrupt, .events = POLLIN};
        if (follow && p.rc == CMD_OK)
            poll(&wait, 1, LOOK_EVERY_MS);
        if (term_interrupted(interrupt))
            p.rc = CMD_INTERRUPTED;
    } while (follow && p.rc == CMD_OK);
    if (n_bad)
        fprintf(
            stderr,
            "shoal %s: %u events could not be read: they are damaged, or from a newer version\n",
            o->page->command, n_bad);
    term_release_interrupt(interrupt);
    buf_fini(&p.line);
    return p.rc;
}

int cmd_cluster_events(int argc, const char *const *argv)
{
    struct bus *b = NULL;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = cluster_opts_connect(&b, &o, NULL);
    if (rc == CMD_OK)
        rc = show(b, &o);
    bus_close(b);
    opts_fini(&o);
    return rc;
}
