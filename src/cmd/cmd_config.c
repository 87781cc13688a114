/* cmd_config.c - shoal config: checks and explains the configuration file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "config/config.h"
#include "config/config_describe.h"
#include "gateway/server/gateway.h"
#include "wire/json_out.h"

cmd_fn cmd_config_check, cmd_config_explain, cmd_config_schema, cmd_config_reference;

#define MAX_OUTPUT_BYTES ((size_t)16 << 20)

static const struct opts_def json_defs[] = {{"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"}};

static const struct opts_page check_page = {
    .command = "config check",
    .arguments = "FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Checks a configuration file: keys, values, addresses, certificates, models.",
    .details = "Exit code 1: the file has an error, which is printed with line and column.",
    .groups = {OPTS_GROUP("Options", json_defs)},
    .examples = "  shoal config check shoal.yaml\n"
                "  shoal config check shoal.yaml --json\n",
};
static const struct opts_page explain_page = {
    .command = "config explain",
    .arguments = "[KEY]",
    .max_args = 1,
    .summary = "Explains a key of the configuration file; without one, lists them all.",
    .groups = {OPTS_GROUP("Options", json_defs)},
    .examples = "  shoal config explain limits.body\n"
                "  shoal config explain models\n",
};
static const struct opts_page schema_page = {
    .command = "config schema",
    .arguments = "",
    .summary = "Prints a JSON Schema of the configuration file, for editors.",
    .examples = "  shoal config schema > shoal.schema.json\n",
};
static const struct opts_page reference_page = {
    .command = "config reference",
    .arguments = "",
    .summary = "Prints all keys of the configuration file as Markdown: docs/CONFIG.md.",
    .examples = "  shoal config reference > CONFIG.md\n",
};

/* ---- check ---- */

/* "file:line:column: message" in its parts; a message without a position has line 0. */
static void put_error(struct buf *b, const char *file, const char *msg)
{
    struct json_out j = json_out_make(b);
    unsigned long line = 0, column = 0;
    size_t n = strlen(file);
    const char *text = msg;
    if (strncmp(msg, file, n) == 0 && msg[n] == ':') {
        char *end;
        line = strtoul(msg + n + 1, &end, 10);
        if (*end == ':')
            column = strtoul(end + 1, &end, 10);
        if (strncmp(end, ": ", 2) == 0)
            text = end + 2;
    }
    json_out_object(&j);
    json_out_member_bool(&j, "valid", false);
    json_out_member_str(&j, "file", file);
    json_out_member_uint(&j, "line", line);
    json_out_member_uint(&j, "column", column);
    json_out_member_str(&j, "error", text);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void put_valid(struct buf *b, const char *file, const struct config *c, bool json)
{
    struct json_out j = json_out_make(b);
    if (!json) {
        buf_printf(b, "%s is valid: %u %s set, %u model%s\n", file, c->set.n,
                   c->set.n == 1 ? "key is" : "keys are", c->n_models, c->n_models == 1 ? "" : "s");
        return;
    }
    json_out_object(&j);
    json_out_member_bool(&j, "valid", true);
    json_out_member_str(&j, "file", file);
    json_out_member_object(&j, "keys");
    for (uint32_t i = 0; i < c->set.n; i++)
        json_out_member_str(&j, c->set.v[i].path,
                            c->set.v[i].key->secret ? "(hidden)" : c->set.v[i].value);
    json_out_object_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

int cmd_config_check(int argc, const char *const *argv)
{
    struct opts o;
    struct buf b;
    struct err e = {0};
    struct config *c = NULL;
    int code;
    if (!cmd_begin(&o, &check_page, argc, argv, &code))
        return code;
    const char *file = o.args[0];
    bool json = opts_flag(&o, "json");
    buf_init(&b, MAX_OUTPUT_BYTES);
    int rc = config_create(&c, &e);
    if (rc == 0)
        rc = config_load(c, file, &e);
    if (rc == 0)
        rc = gateway_check(c, &e);
    if (rc == 0)
        put_valid(&b, file, c, json);
    else if (json)
        put_error(&b, file, e.msg);
    if (rc < 0 && !json)
        code = cmd_fail(&check_page, "%s", e.msg);
    else
        code = cmd_print(&check_page, &b);
    if (rc < 0 && code == CMD_OK)
        code = CMD_FAILED;
    config_unref(c);
    buf_fini(&b);
    opts_fini(&o);
    return code;
}

/* ---- what the table says ---- */

static void put_all(struct buf *b, bool json)
{
    for (size_t i = 0; i < config_n_keys; i++)
        if (json)
            config_describe_json(b, &config_keys[i]);
        else
            buf_printf(b, "%-28s %.*s\n", config_keys[i].path,
                       (int)strcspn(config_keys[i].text, ".") + 1, config_keys[i].text);
}

int cmd_config_explain(int argc, const char *const *argv)
{
    struct opts o;
    struct buf b;
    const char *near = NULL;
    int code;
    if (!cmd_begin(&o, &explain_page, argc, argv, &code))
        return code;
    const struct config_key *k = o.n_args ? config_describe_find(o.args[0], &near) : NULL;
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (o.n_args && !k) {
        code = cmd_fail(
            &explain_page, "there is no key '%.80s'%s%s%s; 'shoal config explain' lists all",
            o.args[0], near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    } else {
        if (!k)
            put_all(&b, opts_flag(&o, "json"));
        else if (opts_flag(&o, "json"))
            config_describe_json(&b, k);
        else
            config_describe_key(&b, k);
        code = cmd_print(&explain_page, &b);
    }
    buf_fini(&b);
    opts_fini(&o);
    return code;
}

static int print_all(const struct opts_page *page, int argc, const char *const *argv,
                     void (*put)(struct buf *b))
{
    struct opts o;
    struct buf b;
    int code;
    if (!cmd_begin(&o, page, argc, argv, &code))
        return code;
    buf_init(&b, MAX_OUTPUT_BYTES);
    put(&b);
    code = cmd_print(page, &b);
    buf_fini(&b);
    opts_fini(&o);
    return code;
}

int cmd_config_schema(int argc, const char *const *argv)
{
    return print_all(&schema_page, argc, argv, config_describe_schema);
}

int cmd_config_reference(int argc, const char *const *argv)
{
    return print_all(&reference_page, argc, argv, config_describe_reference);
}
