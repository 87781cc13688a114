/* cmd_home.c - shoal home: checks and lists home files, and makes one from Home Assistant. */
#include <stdio.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "base/plural.h"
#include "cmd/cmd.h"
#include "apps/home/ask/ask_pack.h"
#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_import.h"
#include "apps/home/site/home_open.h"

cmd_fn cmd_home_check, cmd_home_list, cmd_home_import;

#define MAX_OUTPUT_BYTES ((size_t)64 << 20)

#define TABLE_DEFS                                                                                 \
    {"models",  0,                                                                                 \
     OPTS_TEXT, "DIR",                                                                             \
     NULL,      0,                                                                                 \
     0,         "folder of the models; default: $SHOAL_MODELS, ./models, or next to the program"}, \
    {                                                                                              \
        "table", 0, OPTS_TEXT, "FILE", NULL, 0, 0,                                                 \
            "JSON table of words and actions; default: home.json of the models folder"             \
    }
static const struct opts_def table_defs[] = {
    TABLE_DEFS, {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"}};
static const struct opts_def import_defs[] = {TABLE_DEFS};

static const struct opts_page check_page = {
    .command = "home check",
    .arguments = "FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Checks a home file: keys, ids, rooms, kinds, abilities and names.",
    .details = "Exit code 1: the file has an error, which is printed with line and column.  Two "
               "things with\nthe same name are a warning.",
    .groups = {OPTS_GROUP("Options", table_defs)},
    .examples = "  shoal home check home.yaml\n",
};
static const struct opts_page list_page = {
    .command = "home list",
    .arguments = "[FILE]",
    .max_args = 1,
    .summary = "Lists the things of a home file; without one, of the demo home.",
    .groups = {OPTS_GROUP("Options", table_defs)},
    .examples = "  shoal home list\n"
                "  shoal home list home.yaml --json | jq '.devices[].id'\n",
};
static const struct opts_page import_page = {
    .command = "home import",
    .arguments = "DIR",
    .min_args = 1,
    .max_args = 1,
    .summary = "Prints a home file made from the registries of Home Assistant.",
    .details = "DIR has core.entity_registry, and optionally core.device_registry and\n"
               "core.area_registry: the folder .storage of Home Assistant, or a copy.  Entities "
               "that are\ndisabled, hidden or only for diagnosis are left out.",
    .groups = {OPTS_GROUP("Options", import_defs)},
    .examples = "  shoal home import /config/.storage > home.yaml\n",
};

/* ---- check and list ------------------------------------------------------------------------- */

static int open_file(const struct opts *o, struct home_table **table, struct home_file **file)
{
    struct err e = {0};
    const struct home_open_opts ho = {.path = o->n_args ? o->args[0] : NULL,
                                      .models = opts_text(o, "models")};
    *file = NULL;
    int rc = ask_pack_table(table, opts_text(o, "models"), opts_text(o, "table"), ho.path, &e);
    if (rc == 0)
        rc = home_open_file(file, *table, &ho, &e);
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}

static bool shares_name(const struct home_thing *x, const struct home_thing *y)
{
    for (uint32_t i = 0; i < x->names.n; i++)
        if (home_table_lists(&y->names, x->names.w[i]))
            return x->type == y->type && x->room == y->room;
    return false;
}

/* Things that have the same name in the same room; returns how many pairs. */
static uint32_t warn_same(const struct home_file *f, bool print)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_things; i++)
        for (uint32_t k = i + 1; k < f->n_things; k++)
            if (shares_name(&f->things[i], &f->things[k]) && n++ < 20 && print)
                fprintf(stderr,
                        "warning: %s and %s have a name in common: a text cannot tell them "
                        "apart\n",
                        f->things[i].id, f->things[k].id);
    return n;
}

/* Opens the file and prints it, as JSON or as text. */
static int print_file(const struct opts_page *page, int argc, const char *const *argv,
                      void (*json)(struct json_out *j, const struct home_file *f),
                      void (*text)(struct buf *b, const struct opts *o, const struct home_file *f))
{
    struct opts o;
    struct home_table *table = NULL;
    struct home_file *f;
    struct buf b;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    buf_init(&b, MAX_OUTPUT_BYTES);
    rc = open_file(&o, &table, &f);
    if (rc == CMD_OK && opts_flag(&o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json(&j, f);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else if (rc == CMD_OK) {
        text(&b, &o, f);
    }
    if (rc == CMD_OK)
        rc = cmd_print(page, &b);
    buf_fini(&b);
    home_file_unref(f);
    home_table_close(table);
    opts_fini(&o);
    return rc;
}

static void put_check_json(struct json_out *j, const struct home_file *f)
{
    json_out_member_uint(j, "things", f->n_things);
    json_out_member_uint(j, "same_names", warn_same(f, false));
}

static void put_check(struct buf *b, const struct opts *o, const struct home_file *f)
{
    (void)warn_same(f, true);
    buf_printf(b, "%s: %u thing%s, no error\n", o->args[0], f->n_things, plural(f->n_things));
}

int cmd_home_check(int argc, const char *const *argv)
{
    return print_file(&check_page, argc, argv, put_check_json, put_check);
}

static void put_things(struct buf *b, const struct opts *o, const struct home_file *f)
{
    (void)o;
    buf_printf(b, "%s%s\n\n%-8s %-28s %-24s %-16s %s\n", f->name,
               f->open ? ", and things it does not list" : "", "type", "id", "name", "room",
               "abilities");
    for (uint32_t i = 0; i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        buf_printf(b, "%-8s %-28s %-24s %-16s", home_file_type_name(x->type), x->id, x->name,
                   x->room ? x->room->name : "");
        for (uint32_t k = 0; k < x->abilities.n; k++)
            buf_printf(b, "%s%s", k ? ", " : " ", x->abilities.w[k]);
        buf_putc(b, '\n');
    }
}

int cmd_home_list(int argc, const char *const *argv)
{
    return print_file(&list_page, argc, argv, home_file_json, put_things);
}

/* ---- import --------------------------------------------------------------------------------- */

/* Reads a file of the folder; a missing one stays empty. */
static int read_part(const char *dir, const char *name, bool needed, struct buf *b,
                     struct home_import_text *out, struct err *e)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set(e, SHOAL_EINVAL, "%s: the path is too long", dir);
    if (!needed && access(path, F_OK) != 0)
        return 0;
    int rc = file_read(path, b, e);
    *out = (struct home_import_text){buf_str(b), b->len};
    return rc;
}

/* The result must be a valid home file. */
static int check_made(const struct opts *o, const struct buf *b, struct err *e)
{
    struct home_table *table = NULL;
    struct home_file *f = NULL;
    int rc = ask_pack_table(&table, opts_text(o, "models"), opts_text(o, "table"), NULL, e);
    if (rc == 0)
        rc = home_file_read_text(&f, table, buf_str(b), b->len, "the new home file", e);
    home_file_unref(f);
    home_table_close(table);
    return rc;
}

int cmd_home_import(int argc, const char *const *argv)
{
    struct opts o;
    struct buf parts[3], b;
    struct home_import in = {0};
    struct home_import_report report;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &import_page, argc, argv, &rc))
        return rc;
    for (size_t i = 0; i < 3; i++)
        buf_init(&parts[i], HOME_IMPORT_MAX_BYTES);
    buf_init(&b, MAX_OUTPUT_BYTES);
    rc = read_part(o.args[0], "core.area_registry", false, &parts[0], &in.areas, &e);
    if (rc == 0)
        rc = read_part(o.args[0], "core.device_registry", false, &parts[1], &in.devices, &e);
    if (rc == 0)
        rc = read_part(o.args[0], "core.entity_registry", true, &parts[2], &in.entities, &e);
    if (rc == 0)
        rc = home_import_write(&in, &b, &report, &e);
    if (rc == 0)
        rc = check_made(&o, &b, &e);
    int exit_code = rc < 0 ? cmd_fail(&import_page, "%s", e.msg) : cmd_print(&import_page, &b);
    if (exit_code == CMD_OK)
        fprintf(stderr, "%u room%s, %u thing%s; %u %s left out\n", report.rooms,
                plural(report.rooms), report.things, plural(report.things), report.skipped,
                report.skipped == 1 ? "entity" : "entities");
    for (size_t i = 0; i < 3; i++)
        buf_fini(&parts[i]);
    buf_fini(&b);
    opts_fini(&o);
    return exit_code;
}
