/* cmd_ca.c - shoal ca: the certificates of a shoal's members. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/trust/ca.h"
#include "cluster/trust/roles.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

cmd_fn cmd_ca_init, cmd_ca_rotate, cmd_ca_issue, cmd_ca_list, cmd_ca_show, cmd_ca_revoke;

#define MAX_OUTPUT_BYTES ((size_t)256 << 20)

#define DIR_DEF                                                                                    \
    {                                                                                              \
        "dir", 'd', OPTS_TEXT, "DIR", "ca", 0, 0, "folder of the CA"                               \
    }
#define JSON_DEF                                                                                   \
    {                                                                                              \
        "json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"                                       \
    }
#define NAME_DEF                                                                                   \
    {                                                                                              \
        "name", 0, OPTS_TEXT, "NAME", "Shoal CA", 0, 0, "name of the CA in certificates"           \
    }
#define CA_DAYS_DEF                                                                                \
    {                                                                                              \
        "days", 0, OPTS_UINT, "N", "3650", 1, CA_MAX_DAYS, "how long the CA is valid"              \
    }

static const struct opts_def init_defs[] = {
    DIR_DEF,
    NAME_DEF,
    CA_DAYS_DEF,
    {"force", 0, OPTS_FLAG, NULL, NULL, 0, 0, "replace a CA: all its certificates become invalid"},
    JSON_DEF};
static const struct opts_def issue_defs[] = {
    DIR_DEF,
    {"role", 'r', OPTS_TEXT, "ROLES", NULL, 0, 0,
     "roles: gateway, node, controller, admin, broker (a NATS server), separated by commas"},
    {"host", 0, OPTS_LIST, "HOST", NULL, 0, 0,
     "name or address it is reached at; may be given several times"},
    {"days", 0, OPTS_UINT, "N", "365", 1, CA_MAX_DAYS, "how long the certificate is valid"},
    {"force", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "replace a certificate and its key; roles and hosts stay unless given"},
    JSON_DEF};
static const struct opts_def list_defs[] = {DIR_DEF, JSON_DEF};
static const struct opts_def revoke_defs[] = {
    DIR_DEF,
    {"serial", 0, OPTS_TEXT, "HEX", NULL, 0, 0, "only the certificate with this serial number"},
    JSON_DEF};
static const struct opts_def rotate_defs[] = {
    DIR_DEF,
    NAME_DEF,
    CA_DAYS_DEF,
    {"finish", 0, OPTS_FLAG, NULL, NULL, 0, 0, "end a rotation: the old CA is no longer trusted"},
    {"force", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "with --finish: even if the old CA signed certificates that are in use"},
    JSON_DEF};

static const struct opts_page init_page = {
    .command = "ca init",
    .arguments = "",
    .summary = "Creates a private certificate authority in a folder.",
    .details = "Keep the folder on a machine that is not a member, and back it up: anyone with "
               "ca.key\ncan create members.",
    .groups = {OPTS_GROUP("Options", init_defs)},
    .examples = "  shoal ca init\n"
                "  shoal ca init --dir /etc/shoal/ca --name \"Shoal of the workshop\"\n",
};
static const struct opts_page issue_page = {
    .command = "ca issue",
    .arguments = "NAME",
    .min_args = 1,
    .max_args = 1,
    .summary = "Issues the certificate of a member.",
    .details = "Writes DIR/members/NAME/ with cert.pem, key.pem, ca.pem and crl.pem.  Copy that "
               "folder to the\nmachine.  A running member uses changed files at its next "
               "connection.",
    .groups = {OPTS_GROUP("Options", issue_defs)},
    .examples = "  shoal ca issue node-a --role node --host 10.0.0.5\n"
                "  shoal ca issue front --role gateway,controller --host front.example --days 90\n"
                "  shoal ca issue node-a --force      # renew it, with its roles and hosts\n",
};
static const struct opts_page list_page = {
    .command = "ca list",
    .arguments = "",
    .summary = "Lists the certificates that the CA issued.",
    .groups = {OPTS_GROUP("Options", list_defs)},
    .examples = "  shoal ca list\n"
                "  shoal ca list --json | jq '.certificates[] | select(.state == \"expired\")'\n",
};
static const struct opts_page revoke_page = {
    .command = "ca revoke",
    .arguments = "NAME",
    .min_args = 1,
    .max_args = 1,
    .summary = "Revokes the certificates of a member.",
    .details = "Writes DIR/crl.pem and the crl.pem of every member's folder.  Copy it to the "
               "machines: they\nrefuse the member at its next connection.",
    .groups = {OPTS_GROUP("Options", revoke_defs)},
    .examples = "  shoal ca revoke node-a\n"
                "  shoal ca revoke node-a --serial 5D41402ABC4B2A76B9719D911017C592\n",
};
static const struct opts_page rotate_page = {
    .command = "ca rotate",
    .arguments = "",
    .summary = "Replaces the CA's key without dropping a connection.",
    .details = "1. shoal ca rotate            a new key signs, the old CA stays trusted\n"
               "2. copy ca.pem and crl.pem of each member's folder to its machine\n"
               "3. shoal ca issue NAME --force, for each member, and copy its folder\n"
               "4. shoal ca rotate --finish, and copy ca.pem and crl.pem again\n"
               "In 2 and 3, machines may be updated in any order.",
    .groups = {OPTS_GROUP("Options", rotate_defs)},
    .examples = "  shoal ca rotate\n"
                "  shoal ca rotate --finish\n",
};
static const struct opts_page show_page = {
    .command = "ca show",
    .arguments = "[NAME|FILE]",
    .max_args = 1,
    .summary = "Shows the CA, a member's certificate or a certificate file.",
    .details = "The exit code is 1 if the certificate is expired, revoked or not of this CA.",
    .groups = {OPTS_GROUP("Options", list_defs)},
    .examples = "  shoal ca show\n"
                "  shoal ca show node-a --json\n"
                "  shoal ca show /etc/shoal/cert.pem\n",
};

/* ---- output ---- */

static const char *state_name(enum ca_state s)
{
    return s == CA_VALID     ? "valid"
           : s == CA_EXPIRED ? "expired"
           : s == CA_REVOKED ? "revoked"
                             : "foreign";
}

static void put_cert(struct json_out *j, const struct cert_info *c, bool member)
{
    char date[40], roles[64];
    json_out_member_str(j, "name", c->id.name);
    if (member) {
        json_out_member_array(j, "roles");
        roles_text(roles, sizeof(roles), c->id.roles);
        for (const char *p = roles; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
            json_out_strn(j, p, strcspn(p, ","));
        json_out_array_end(j);
        json_out_member_array(j, "hosts");
        for (const char *p = c->hosts; *p; p += strcspn(p, " ") + (p[strcspn(p, " ")] == ' '))
            json_out_strn(j, p, strcspn(p, " "));
        json_out_array_end(j);
    }
    json_out_member_str(j, "serial", c->serial);
    json_out_member_str(j, "issuer", c->issuer);
    cert_date(date, sizeof(date), c->not_before_s);
    json_out_member_str(j, "not_before", date);
    cert_date(date, sizeof(date), c->not_after_s);
    json_out_member_str(j, "not_after", date);
    json_out_member_int(j, "not_after_s", c->not_after_s);
    json_out_member_str(j, "sha256", c->sha256);
}

static void print_cert(struct buf *b, const struct cert_info *c, bool member)
{
    char from[40], to[40], roles[64];
    cert_date(from, sizeof(from), c->not_before_s);
    cert_date(to, sizeof(to), c->not_after_s);
    roles_text(roles, sizeof(roles), c->id.roles);
    buf_printf(b, "name       %s\n", c->id.name);
    if (member)
        buf_printf(b, "roles      %s\nhosts      %s\nissuer     %s\n", roles[0] ? roles : "none",
                   c->hosts[0] ? c->hosts : "none", c->issuer);
    buf_printf(b, "serial     %s\nvalid      %s to %s\nsha-256    %s\n", c->serial, from, to,
               c->sha256);
}

static int print_buf(const struct opts_page *page, struct buf *b)
{
    int rc = b->rc < 0 ? cmd_fail(page, "%s", err_text(b->rc)) : cmd_print(page, b);
    buf_fini(b);
    return rc;
}

/* Opens the CA; reports errors. */
static struct ca *open_ca(const struct opts *o)
{
    struct ca *ca = NULL;
    struct err e = {0};
    if (ca_open(&ca, opts_text(o, "dir"), &e) < 0)
        (void)cmd_fail(o->page, "%s", e.msg);
    return ca;
}

/* ---- init and rotate ---- */

static void put_ca(struct json_out *j, const struct ca *ca)
{
    struct cert_info c;
    json_out_member_object(j, "ca");
    ca_current(ca, &c);
    put_cert(j, &c, false);
    json_out_object_end(j);
    json_out_key(j, "previous");
    if (ca_previous(ca, &c)) {
        json_out_object(j);
        put_cert(j, &c, false);
        json_out_object_end(j);
    } else {
        json_out_null(j);
    }
}

/* Prints the CA: as JSON, or `done` for people. */
static int print_ca(const struct opts *o, const struct ca *ca, const char *done)
{
    struct buf b;
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        put_ca(&j, ca);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        struct cert_info c;
        buf_puts(&b, done);
        ca_current(ca, &c);
        print_cert(&b, &c, false);
        if (ca_previous(ca, &c)) {
            buf_puts(&b, "\nA rotation is in progress; this CA is also trusted:\n");
            print_cert(&b, &c, false);
        }
    }
    return print_buf(o->page, &b);
}

int cmd_ca_init(int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    char done[700];
    int rc;
    if (!cmd_begin(&o, &init_page, argc, argv, &rc))
        return rc;
    const char *dir = opts_text(&o, "dir");
    if (ca_init(dir, opts_text(&o, "name"), opts_u32(&o, "days"), opts_flag(&o, "force"), &e) < 0) {
        rc = cmd_fail(&init_page, "%s", e.msg);
    } else {
        struct ca *ca = open_ca(&o);
        snprintf(done, sizeof(done),
                 "Created a CA in %.500s.  Keep ca.key secret, and back up the folder.\n\n", dir);
        rc = ca ? print_ca(&o, ca, done) : CMD_FAILED;
        ca_close(ca);
    }
    opts_fini(&o);
    return rc;
}

int cmd_ca_rotate(int argc, const char *const *argv)
{
    static const char begun[] =
        "A new key signs; the old CA stays trusted.  Next: copy ca.pem and crl.pem of each "
        "member's folder\nto its machine, run shoal ca issue NAME --force for each member, and "
        "then shoal ca rotate --finish.\n\n";
    static const char ended[] = "The old CA is no longer trusted.  Next: copy ca.pem and "
                                "crl.pem of each member's folder to its machine.\n\n";
    struct opts o;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &rotate_page, argc, argv, &rc))
        return rc;
    bool finish = opts_flag(&o, "finish");
    struct ca *ca = open_ca(&o);
    rc = CMD_FAILED;
    if (opts_flag(&o, "force") && !finish)
        rc = opts_usage(&rotate_page, "--force needs --finish");
    else if (ca && (finish ? ca_rotate_finish(ca, opts_flag(&o, "force"), &e)
                           : ca_rotate(ca, opts_text(&o, "name"), opts_u32(&o, "days"), &e)) < 0)
        rc = cmd_fail(&rotate_page, "%s", e.msg);
    else if (ca)
        rc = print_ca(&o, ca, finish ? ended : begun);
    ca_close(ca);
    opts_fini(&o);
    return rc;
}

/* ---- issue ---- */

static int issue(const struct opts *o, struct ca *ca)
{
    struct cert_request r = {.name = o->args[0], .days = opts_u32(o, "days")};
    struct cert_info c;
    struct err e = {0};
    struct buf b;
    char folder[CERT_PATH_BYTES];
    const char *role = opts_text(o, "role");
    if (role && roles_parse(&r.roles, role, &e) < 0)
        return opts_usage(o->page, "--role: %s", e.msg);
    r.n_hosts = opts_list(o, "host", &r.hosts);
    if (ca_issue(ca, &r, opts_flag(o, "force"), &c, &e) < 0 ||
        ca_member_folder(ca, r.name, folder, sizeof(folder), &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        put_cert(&j, &c, true);
        json_out_member_str(&j, "folder", folder);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b, "Copy %s to the machine.\n\n", folder);
        print_cert(&b, &c, true);
    }
    return print_buf(o->page, &b);
}

int cmd_ca_issue(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &issue_page, argc, argv, &rc))
        return rc;
    struct ca *ca = open_ca(&o);
    rc = ca ? issue(&o, ca) : CMD_FAILED;
    ca_close(ca);
    opts_fini(&o);
    return rc;
}

/* ---- list and show ---- */

static void put_entry(struct json_out *j, const struct ca_entry *x)
{
    json_out_object(j);
    put_cert(j, &x->cert, true);
    json_out_member_str(j, "state", state_name(x->state));
    json_out_member_bool(j, "in_use", x->in_use);
    json_out_member_bool(j, "previous_ca", x->previous);
    json_out_object_end(j);
}

static void print_list(struct buf *b, const struct ca_entry *list, size_t n)
{
    char date[40], roles[64];
    buf_printf(b, "%-20s %-24s %-22s %-8s %-32s %s\n", "NAME", "ROLES", "VALID UNTIL", "STATE",
               "SERIAL", "");
    for (size_t i = 0; i < n; i++) {
        const struct cert_info *c = &list[i].cert;
        cert_date(date, sizeof(date), c->not_after_s);
        roles_text(roles, sizeof(roles), c->id.roles);
        buf_printf(b, "%-20s %-24s %-22s %-8s %-32s%s%s\n", c->id.name, roles, date,
                   state_name(list[i].state), c->serial, list[i].in_use ? "" : " replaced",
                   list[i].previous ? " old CA" : "");
    }
}

int cmd_ca_list(int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    struct ca_entry *list = NULL;
    struct buf b;
    size_t n = 0;
    int rc;
    if (!cmd_begin(&o, &list_page, argc, argv, &rc))
        return rc;
    buf_init(&b, MAX_OUTPUT_BYTES);
    struct ca *ca = open_ca(&o);
    rc = CMD_FAILED;
    if (ca && ca_list(ca, &list, &n, &e) < 0) {
        rc = cmd_fail(&list_page, "%s", e.msg);
    } else if (ca && opts_flag(&o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        put_ca(&j, ca);
        json_out_member_array(&j, "certificates");
        for (size_t i = 0; i < n; i++)
            put_entry(&j, &list[i]);
        json_out_array_end(&j);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
        rc = print_buf(&list_page, &b);
    } else if (ca) {
        print_list(&b, list, n);
        rc = print_buf(&list_page, &b);
    }
    mem_free(list);
    ca_close(ca);
    opts_fini(&o);
    return rc;
}

/* A word with a dot or a slash is a file, anything else a member. */
static int find_cert(struct ca *ca, const char *what, struct ca_entry *out, struct err *e)
{
    char path[CERT_PATH_BYTES + 16];
    if (strpbrk(what, "./")) {
        snprintf(path, sizeof(path), "%.500s", what);
        return ca_judge(ca, path, out, e);
    }
    int rc = ca_member_folder(ca, what, path, CERT_PATH_BYTES, e);
    if (rc < 0)
        return rc;
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/cert.pem");
    rc = ca_judge(ca, path, out, e);
    return rc == SHOAL_EIO
               ? err_set(e, SHOAL_ENOTFOUND, "%s has no certificate: shoal ca issue %s creates one",
                         what, what)
               : rc;
}

/* Why a certificate cannot be used. */
static int complain(const struct opts *o, const struct ca_entry *x)
{
    const struct cert_info *c = &x->cert;
    char date[40];
    cert_date(date, sizeof(date), c->not_after_s);
    if (x->state == CA_EXPIRED)
        return cmd_fail(o->page, "certificate of %s expired on %s: run shoal ca issue %s --force",
                        c->id.name, date, c->id.name);
    if (x->state == CA_REVOKED)
        return cmd_fail(o->page,
                        "certificate of %s is revoked: run shoal ca issue %s --force if "
                        "it may be a member again",
                        c->id.name, c->id.name);
    if (x->state == CA_FOREIGN)
        return cmd_fail(o->page, "certificate of %s is signed by %s, not by this CA", c->id.name,
                        c->issuer);
    return CMD_OK;
}

static int show(const struct opts *o, struct ca *ca)
{
    struct ca_entry x;
    struct err e = {0};
    struct buf b;
    if (o->n_args == 0)
        return print_ca(o, ca, "");
    if (find_cert(ca, o->args[0], &x, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        put_entry(&j, &x);
        buf_putc(&b, '\n');
    } else {
        print_cert(&b, &x.cert, true);
        buf_printf(&b, "state      %s%s\n", state_name(x.state),
                   x.previous ? ", by the old CA" : "");
    }
    int rc = print_buf(o->page, &b);
    return rc == CMD_OK ? complain(o, &x) : rc;
}

int cmd_ca_show(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &show_page, argc, argv, &rc))
        return rc;
    struct ca *ca = open_ca(&o);
    rc = ca ? show(&o, ca) : CMD_FAILED;
    ca_close(ca);
    opts_fini(&o);
    return rc;
}

/* ---- revoke ---- */

int cmd_ca_revoke(int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    struct buf b;
    size_t n = 0;
    int rc;
    if (!cmd_begin(&o, &revoke_page, argc, argv, &rc))
        return rc;
    struct ca *ca = open_ca(&o);
    const char *name = o.args[0];
    rc = CMD_FAILED;
    if (ca && ca_revoke(ca, name, opts_text(&o, "serial"), &n, &e) < 0) {
        rc = cmd_fail(&revoke_page, "%s", e.msg);
    } else if (ca) {
        buf_init(&b, MAX_OUTPUT_BYTES);
        if (opts_flag(&o, "json"))
            buf_printf(&b, "{\"name\":\"%s\",\"revoked\":%zu}\n", name, n);
        else
            buf_printf(&b,
                       "Revoked %zu certificate%s of %s.  Copy crl.pem to every machine of the "
                       "shoal.\n",
                       n, n == 1 ? "" : "s", name);
        rc = print_buf(&revoke_page, &b);
    }
    ca_close(ca);
    opts_fini(&o);
    return rc;
}
