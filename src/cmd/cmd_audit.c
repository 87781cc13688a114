/* cmd_audit.c - shoal audit verify, shoal audit export: the audit log of a server. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "supply/audit_check.h"
#include "wire/json_out.h"

cmd_fn cmd_audit_verify, cmd_audit_export;

static const struct opts_def verify_defs[] = {
    {"key", 'k', OPTS_TEXT, "FILE", NULL, 0, 0,
     "public key of the log, from a safe place; default: audit.pub in the folder"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page verify_page = {
    .command = "audit verify",
    .arguments = "FOLDER",
    .min_args = 1,
    .max_args = 1,
    .summary = "Checks an audit log: that no line was changed, lost, added or reordered.",
    .details = "Exit code 0: it is whole; 1: it is not, and the message says which line.  Whoever "
               "can write to the\nfolder can also replace its audit.pub: keep a copy elsewhere, "
               "and give it with --key.",
    .groups = {OPTS_GROUP("Options", verify_defs)},
    .examples = "  shoal audit verify /var/lib/shoal/audit\n"
                "  shoal audit verify ./audit --key safe/audit.pub --json\n",
};

static const struct opts_def export_defs[] = {
    {"key", 'k', OPTS_TEXT, "FILE", NULL, 0, 0,
     "public key of the log; default: audit.pub in the folder"},
    {"form", 0, OPTS_TEXT, "FORM", "jsonl", 0, 0,
     "jsonl: the lines as they are; syslog: RFC 5424; loki: a body for Loki's push API"},
};

static const struct opts_page export_page = {
    .command = "audit export",
    .arguments = "FOLDER",
    .min_args = 1,
    .max_args = 1,
    .summary = "Prints an audit log in the form of another program, and checks it meanwhile.",
    .groups = {OPTS_GROUP("Options", export_defs)},
    .examples = "  shoal audit export ./audit --form syslog | nc log.local 514\n"
                "  shoal audit export ./audit --form loki >push.json\n",
};

static void put_json(struct buf *b, const struct audit_check *c, const char *error)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_bool(&j, "whole", !error);
    json_out_member_uint(&j, "files", c->n_files);
    json_out_member_uint(&j, "lines", c->n_lines);
    json_out_member_uint(&j, "first", c->first);
    json_out_member_uint(&j, "last", c->n);
    json_out_member_uint(&j, "checkpoints", c->n_checkpoints);
    json_out_member_uint(&j, "unsigned", c->n_unsigned);
    json_out_member_uint(&j, "torn", c->n_torn);
    json_out_member_uint(&j, "lost", c->n_lost);
    if (error) {
        json_out_member_str(&j, "file", c->file);
        json_out_member_uint(&j, "line", c->line);
        json_out_member_str(&j, "error", error);
    }
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static int verify(const struct opts *o)
{
    struct audit_check c;
    struct err e = {0};
    struct buf b;
    int rc = audit_check(&c, o->args[0], opts_text(o, "key"), NULL, NULL, &e);
    buf_init(&b, 65536);
    if (opts_flag(o, "json"))
        put_json(&b, &c, rc < 0 ? e.msg : NULL);
    else if (rc == 0)
        buf_printf(
            &b,
            "whole: lines %llu to %llu in %u %s, %llu checkpoints, %llu behind the last one, "
            "%llu torn, %llu not written\n",
            (unsigned long long)c.first, (unsigned long long)c.n, c.n_files,
            c.n_files == 1 ? "file" : "files", (unsigned long long)c.n_checkpoints,
            (unsigned long long)c.n_unsigned, (unsigned long long)c.n_torn,
            (unsigned long long)c.n_lost);
    int code = cmd_print(o->page, &b);
    buf_fini(&b);
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : code;
}

int cmd_audit_verify(int argc, const char *const *argv)
{
    return cmd_page(&verify_page, argc, argv, verify);
}

/* ---- export ---- */

enum form { FORM_JSONL, FORM_SYSLOG, FORM_LOKI };

struct exporting {
    enum form form;
    char host[65];
    uint64_t n;
};

static void time_of(char *out, size_t cap, const char *text, size_t n)
{
    static const char key[] = "\"time\":\"";
    const char *at = memmem(text, n, key, sizeof(key) - 1);
    size_t k = at ? strcspn(at + sizeof(key) - 1, "\"") : 0;
    snprintf(out, cap, "%.*s", at ? (int)k : 1, at ? at + sizeof(key) - 1 : "-");
}

/* Loki wants nanoseconds since 1970, and refuses lines that are older than the one before. */
static void put_loki(struct exporting *x, const char *when, const char *text, size_t n)
{
    struct tm tm = {0};
    unsigned ms = 0;
    struct buf b;
    const char *dot = strptime(when, "%Y-%m-%dT%H:%M:%S", &tm);
    if (dot)
        (void)!sscanf(dot, ".%3u", &ms);
    buf_init(&b, 4 * AUDIT_LINE_MAX);
    struct json_out j = json_out_make(&b);
    json_out_strn(&j, text, n);
    printf("%s[\"%lld%03u000000\",%s]", x->n ? "," : "", (long long)timegm(&tm), ms, buf_str(&b));
    buf_fini(&b);
}

static void each(void *ctx, const struct audit_line *l, const char *text, size_t n)
{
    struct exporting *x = ctx;
    char when[40];
    time_of(when, sizeof(when), text, n);
    if (x->form == FORM_JSONL)
        printf("%.*s\n", (int)n, text);
    else if (x->form == FORM_SYSLOG) /* facility 13: log audit; severity 6 */
        printf("<110>1 %s %s shoal - %s - %.*s\n", when, x->host, audit_kind_name(l->kind), (int)n,
               text);
    else
        put_loki(x, when, text, n);
    x->n++;
}

static int export(const struct opts *o)
{
    static const char *const forms[] = {"jsonl", "syslog", "loki"};
    struct exporting x = {.host = "-"};
    struct audit_check c;
    struct err e = {0};
    const char *form = opts_text(o, "form");
    for (x.form = 0; x.form <= FORM_LOKI && strcmp(forms[x.form], form) != 0; x.form++)
        ;
    if (x.form > FORM_LOKI)
        return cmd_fail(o->page, "unknown form '%s': use jsonl, syslog or loki", form);
    if (gethostname(x.host, sizeof(x.host) - 1) < 0 || !x.host[0])
        snprintf(x.host, sizeof(x.host), "-");
    if (x.form == FORM_LOKI)
        printf("{\"streams\":[{\"stream\":{\"job\":\"shoal-audit\",\"host\":\"%s\"},\"values\":[",
               x.host);
    int rc = audit_check(&c, o->args[0], opts_text(o, "key"), each, &x, &e);
    if (x.form == FORM_LOKI)
        printf("]}]}\n");
    if (fflush(stdout) != 0 && rc == 0)
        return cmd_fail(o->page, "cannot write");
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}

int cmd_audit_export(int argc, const char *const *argv)
{
    return cmd_page(&export_page, argc, argv, export);
}
