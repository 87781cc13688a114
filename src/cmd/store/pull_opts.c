/* pull_opts.c - see pull_opts.h. */
#include "cmd/store/pull_opts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes_text.h"
#include "base/clock.h"
#include "cmd/store/package_tools.h"
#include "depot/model_pull.h"
#include "wire/json_out.h"

#define MAX_LINE_BYTES ((size_t)64 << 10)
#define EVENT_NS 200000000u

static const struct opts_def defs[] = {
    STORED_DIR_DEF,
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print an event per line, as JSON"},
    {"token", 0, OPTS_TEXT, "TOKEN", NULL, 0, 0,
     "access token of the hub or registry; default: $HF_TOKEN for a hub, else $SHOAL_TOKEN"},
    {"hub", 0, OPTS_TEXT, "URL", NULL, 0, 0,
     "hub for ORG/REPO; default: $HF_ENDPOINT, or https://huggingface.co"},
    {"recipes", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "file with more recipes; default: $SHOAL_RECIPES"},
    {"ca", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "PEM file with the CAs to trust for https://; default: those of the system"},
    {"plain-http", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "registries speak HTTP; those of this machine do in any case"},
    {"allow-private", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "follow redirects to addresses of this machine and of private networks"},
};
const struct opts_group pull_opts_group = OPTS_GROUP_INIT("Options", defs);

static void event(struct pull_report *r, void (*put)(struct json_out *j, const void *arg),
                  const char *name, const void *arg)
{
    struct buf b;
    buf_init(&b, MAX_LINE_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_member_str(&j, "event", name);
    put(&j, arg);
    json_out_object_end(&j);
    buf_putc(&b, '\n');
    (void)cmd_print(r->o->page, &b);
    fflush(stdout);
    buf_fini(&b);
}

static void put_progress(struct json_out *j, const void *arg)
{
    const struct model_progress *p = arg;
    json_out_member_str(j, "file", p->what);
    if (p->digest[0])
        json_out_member_str(j, "digest", p->digest);
    json_out_member_uint(j, "completed", p->done);
    json_out_member_uint(j, "total", p->total);
}

static void put_note(struct json_out *j, const void *arg)
{
    json_out_member_str(j, "message", arg);
}

static void put_error(struct json_out *j, const void *arg)
{
    const struct err *e = arg;
    json_out_member_str(j, "code", err_name(e->code));
    json_out_member_str(j, "message", e->msg);
}

static void put_model(struct json_out *j, const void *arg)
{
    const struct model_pulled *m = arg;
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, m->sha256);
    json_out_member_str(j, "name", m->name);
    json_out_member_str(j, "sha256", hex);
    json_out_member_uint(j, "bytes", m->bytes);
    if (m->path[0])
        json_out_member_str(j, "path", m->path);
    json_out_member_bool(j, "had", m->had);
}

void pull_report_rest(struct pull_report *r)
{
    if (r->bar_open)
        term_progress_end(&r->bar);
    r->bar_open = false;
}

static void on_progress(void *ctx, const struct model_progress *p)
{
    struct pull_report *r = ctx;
    uint64_t now = clock_ns();
    bool begins = strncmp(r->what, p->what, sizeof(r->what) - 1) != 0;
    if (begins) {
        pull_report_rest(r);
        snprintf(r->what, sizeof(r->what), "%s", p->what);
        r->begin_ns = now;
        r->begin_bytes = p->done;
        r->shown_ns = 0;
        if (!r->json)
            term_progress_init(&r->bar, r->what);
        r->bar_open = !r->json;
    }
    if (p->done < p->total && now - r->shown_ns < EVENT_NS)
        return;
    r->shown_ns = now;
    if (r->json) {
        event(r, put_progress, "progress", p);
        return;
    }
    char done[32], total[32], rate[32], note[128];
    double s = (double)(now - r->begin_ns) / 1e9;
    bytes_text(done, (double)p->done);
    bytes_text(total, (double)p->total);
    bytes_text(rate, s > 0 ? (double)(p->done - r->begin_bytes) / s : 0);
    snprintf(note, sizeof(note), "%s of %s, %s/s", done, total, rate);
    term_progress_show(&r->bar, p->total ? (double)p->done / (double)p->total : 1, note);
}

static void on_note(void *ctx, const char *text)
{
    struct pull_report *r = ctx;
    pull_report_rest(r);
    r->what[0] = '\0';
    if (r->json)
        event(r, put_note, "note", text);
    else
        fprintf(stderr, "%s\n", text);
}

static const char *text_or_env(const struct opts *o, const char *option, const char *variable)
{
    const char *s = opts_text(o, option);
    if (!s)
        s = getenv(variable);
    return s && s[0] ? s : NULL;
}

void pull_report_init(struct pull_report *r, const struct opts *o, struct model_store *s)
{
    *r = (struct pull_report){.o = o, .json = opts_flag(o, "json")};
    r->source = (struct model_source_opts){.store = s,
                                           .stop = &stored_stop,
                                           .ca = opts_text(o, "ca"),
                                           .hub = text_or_env(o, "hub", "HF_ENDPOINT"),
                                           .token = text_or_env(o, "token", "SHOAL_TOKEN"),
                                           .recipes = text_or_env(o, "recipes", "SHOAL_RECIPES"),
                                           .find_index = package_tools_index,
                                           .plain_http = opts_flag(o, "plain-http"),
                                           .private_ok = opts_flag(o, "allow-private"),
                                           .progress = on_progress,
                                           .note = on_note,
                                           .ctx = r};
}

int pull_report_end(struct pull_report *r, int rc, const struct model_pulled *m, const char *done,
                    const struct err *e)
{
    char size[32], hex[2 * SHA256_BYTES + 1];
    pull_report_rest(r);
    if (rc < 0) {
        if (r->json)
            event(r, put_error, "error", e);
        if (rc == SHOAL_ECANCELLED)
            fprintf(stderr, "shoal %s: interrupted; the next call resumes\n", r->o->page->command);
        else
            (void)cmd_fail(r->o->page, "%s", e->msg);
        return rc == SHOAL_ECANCELLED ? CMD_INTERRUPTED : CMD_FAILED;
    }
    if (r->json) {
        event(r, put_model, "done", m);
        return CMD_OK;
    }
    sha256_hex(hex, m->sha256);
    printf("%s %s (%s, sha256 %.12s)\n", m->had ? "the store had" : done, m->name,
           bytes_text(size, (double)m->bytes), hex);
    return CMD_OK;
}
