/* config_describe.c - see config_describe.h. */
#include "config/config_describe.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "wire/json_out.h"

#define MAX_KEYS 512u
#define MAX_PATH_BYTES 160u

static const char size_pattern[] = "^[0-9]+(\\.[0-9]+)? ?(KiB|MiB|GiB|kB|MB|GB)?$";
static const char time_pattern[] = "^[0-9]+(\\.[0-9]+)? ?(ms|s|m|h)?$";
static const char share_pattern[] = "^[0-9]+(\\.[0-9]+)? ?%?$";

/* ---- words ---- */

static const char *type_text(const struct config_key *k)
{
    switch (k->type) {
    case CONFIG_BYTES:
        return "size";
    case CONFIG_MS:
        return "time";
    case CONFIG_U32:
    case CONFIG_I32:
        return "whole number";
    case CONFIG_NUM:
        return "number";
    case CONFIG_SHARE:
        return "share";
    case CONFIG_BOOL:
        return "true or false";
    case CONFIG_STR:
        return "text";
    case CONFIG_STRS:
        return "list of texts";
    case CONFIG_CHOICE:
        return "choice";
    case CONFIG_MAP:
        return "map";
    case CONFIG_ITEMS:
        return "list of maps";
    }
    return "";
}

static void put_choices(struct buf *b, const struct config_key *k, const char *quote)
{
    const char *word;
    size_t n;
    for (uint32_t i = 0; (word = config_key_choice(k, i, &n)); i++)
        buf_printf(b, "%s%s%.*s%s", i ? ", " : "", quote, (int)n, word, quote);
}

/* Limits that a reader cannot guess from the type. */
static void put_limits(struct buf *b, const struct config_key *k)
{
    if (k->type == CONFIG_STRS || k->type == CONFIG_ITEMS)
        buf_printf(b, "at most %.0f", k->max);
    else if (k->min != 0 || k->max != 0)
        buf_printf(b, "%.15g to %.15g%s", k->min, k->max, k->type == CONFIG_MS ? " ms" : "");
}

static const char *when_text(const struct config_key *k)
{
    return k->when == CONFIG_LIVE ? "reload" : "restart";
}

/* ---- JSON Schema ---- */

static void put_str(struct json_out *j, const char *key, const char *value)
{
    json_out_member_str(j, key, value);
}

static void put_types(struct json_out *j, const char *a, const char *b)
{
    json_out_member_array(j, "type");
    json_out_str(j, a);
    json_out_str(j, b);
    json_out_array_end(j);
}

static void put_range(struct json_out *j, const struct config_key *k, double min, double max)
{
    bool own = k->min != 0 || k->max != 0;
    json_out_member_num(j, "minimum", own ? k->min : min);
    json_out_member_num(j, "maximum", own ? k->max : max);
}

static void put_properties(struct json_out *j, const struct config_key *parent);

static void put_map(struct json_out *j, const struct config_key *parent)
{
    put_str(j, "type", "object");
    put_properties(j, parent);
}

/* A map, or its name alone. */
static void put_entry(struct json_out *j, const struct config_key *k)
{
    if (!k->short_form) {
        put_map(j, k);
        return;
    }
    json_out_member_array(j, "anyOf");
    json_out_object(j);
    put_types(j, "string", "number");
    json_out_object_end(j);
    json_out_object(j);
    put_map(j, k);
    json_out_object_end(j);
    json_out_array_end(j);
}

/* One text or a list of them, one map or a list of them. */
static void put_one_or_list(struct json_out *j, const struct config_key *k)
{
    json_out_member_array(j, "anyOf");
    for (int list = 0; list < 2; list++) {
        json_out_object(j);
        if (list) {
            put_str(j, "type", "array");
            json_out_member_num(j, "maxItems", k->max);
            json_out_member_object(j, "items");
        }
        if (k->type == CONFIG_ITEMS)
            put_entry(j, k);
        else
            put_types(j, "string", "number");
        if (list)
            json_out_object_end(j);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void put_choice_schema(struct json_out *j, const struct config_key *k)
{
    const char *word;
    size_t n;
    json_out_member_array(j, "enum");
    for (uint32_t i = 0; (word = config_key_choice(k, i, &n)); i++)
        json_out_strn(j, word, n);
    json_out_array_end(j);
}

static void put_bool_schema(struct json_out *j)
{
    json_out_member_array(j, "enum");
    json_out_bool(j, true);
    json_out_bool(j, false);
    json_out_str(j, "yes");
    json_out_str(j, "no");
    json_out_array_end(j);
}

static void put_unit(struct json_out *j, const struct config_key *k, const char *pattern,
                     double max)
{
    put_types(j, "number", "string");
    put_str(j, "pattern", pattern);
    put_range(j, k, 0, max);
}

static void put_value_schema(struct json_out *j, const struct config_key *k)
{
    switch (k->type) {
    case CONFIG_BYTES:
        put_unit(j, k, size_pattern, 0x1p50);
        break;
    case CONFIG_MS:
        put_unit(j, k, time_pattern, 2147483647.0);
        break;
    case CONFIG_SHARE:
        put_unit(j, k, share_pattern, 1);
        break;
    case CONFIG_U32:
        put_str(j, "type", "integer");
        put_range(j, k, 0, 2147483647.0);
        break;
    case CONFIG_I32:
        put_str(j, "type", "integer");
        put_range(j, k, -1000, 1000);
        break;
    case CONFIG_NUM:
        put_str(j, "type", "number");
        put_range(j, k, 0, 1e9);
        break;
    case CONFIG_BOOL:
        put_bool_schema(j);
        break;
    case CONFIG_STR:
        put_types(j, "string", "number");
        break;
    case CONFIG_CHOICE:
        put_choice_schema(j, k);
        break;
    case CONFIG_MAP:
        put_map(j, k);
        break;
    case CONFIG_STRS:
    case CONFIG_ITEMS:
        put_one_or_list(j, k);
        break;
    }
}

static void put_property(struct json_out *j, const struct config_key *k)
{
    char text[1024];
    json_out_member_object(j, config_key_leaf(k));
    snprintf(text, sizeof(text), "%s%s%s", k->text, k->fallback ? " Default: " : "",
             k->fallback ? k->fallback : "");
    put_str(j, "description", text);
    put_value_schema(j, k);
    json_out_object_end(j);
}

static void put_properties(struct json_out *j, const struct config_key *parent)
{
    bool any_needed = false;
    json_out_member_bool(j, "additionalProperties", false);
    json_out_member_object(j, "properties");
    for (size_t i = 0; i < config_n_keys; i++)
        if (config_key_in(&config_keys[i], parent)) {
            put_property(j, &config_keys[i]);
            any_needed |= config_keys[i].needed;
        }
    json_out_object_end(j);
    if (!any_needed)
        return;
    json_out_member_array(j, "required");
    for (size_t i = 0; i < config_n_keys; i++)
        if (config_key_in(&config_keys[i], parent) && config_keys[i].needed)
            json_out_str(j, config_key_leaf(&config_keys[i]));
    json_out_array_end(j);
}

void config_describe_schema(struct buf *b)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    put_str(&j, "$schema", "http://json-schema.org/draft-07/schema#");
    put_str(&j, "title", "Configuration of Shoal");
    put_map(&j, NULL);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* ---- docs/CONFIG.md ---- */

static void put_row(struct buf *b, const struct config_key *k)
{
    buf_printf(b, "| `%s` | %s", k->path, k->type == CONFIG_CHOICE ? "" : type_text(k));
    if (k->type == CONFIG_CHOICE)
        put_choices(b, k, "`");
    if (k->min != 0 || k->max != 0) {
        buf_puts(b, ", ");
        put_limits(b, k);
    }
    buf_puts(b, " | ");
    if (k->needed)
        buf_puts(b, "needed");
    else if (k->fallback)
        buf_printf(b, "`%s`", k->fallback);
    buf_printf(b, " | %s | %s |\n", when_text(k), k->text);
}

static const char row_head[] =
    "\n| key | value | default | takes effect | |\n|---|---|---|---|---|\n";

static void put_section(struct buf *b, const struct config_key *parent)
{
    bool head = false;
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *k = &config_keys[i];
        if (!config_key_in(k, parent) || k->type == CONFIG_MAP || k->type == CONFIG_ITEMS)
            continue;
        if (!head)
            buf_puts(b, row_head);
        head = true;
        put_row(b, k);
    }
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *k = &config_keys[i];
        if (!config_key_in(k, parent) || (k->type != CONFIG_MAP && k->type != CONFIG_ITEMS))
            continue;
        buf_printf(b, "\n## %s%s\n\n%s", k->path, k->type == CONFIG_ITEMS ? "[]" : "", k->text);
        if (k->type == CONFIG_ITEMS) {
            buf_puts(b, " A list of maps, ");
            put_limits(b, k);
            buf_puts(b, k->short_form ? "; an entry may be its name alone." : ".");
        }
        buf_putc(b, '\n');
        put_section(b, k);
    }
}

void config_describe_reference(struct buf *b)
{
    buf_puts(
        b,
        "# Configuration\n\n"
        "Every key of the file that `shoal serve`, `shoal node` and `shoal gateway` read with\n"
        "`--config`. This page is written by `shoal config reference`; a test compares it with the "
        "program.\n\n"
        "- `shoal init` writes a file for the models it finds.\n"
        "- `shoal config check FILE` reports errors with line and column.\n"
        "- `shoal config explain KEY` shows one key.\n"
        "- `shoal config schema` prints a JSON Schema for editors. With the YAML language server, "
        "begin the file with\n  `# yaml-language-server: $schema=shoal.schema.json`.\n\n"
        "Every key may be left out. An unknown key is an error. A size takes KiB, MiB, GiB, kB, MB "
        "or GB, a time ms (also\nwithout a unit), s, m or h, a share a number from 0 to 1 or a "
        "percentage. A list of one may be written without\nbrackets. Flags of the command line "
        "override the file.\n\n"
        "The server reads the file again when it changes and on `SIGHUP`, and logs what changed. A "
        "file with an error changes\nnothing: the server keeps the old configuration and logs the "
        "error. Keys marked *restart* take effect when the\nserver restarts; the log names "
        "them.\n\n"
        "## The top\n");
    put_section(b, NULL);
}

/* ---- one key ---- */

void config_describe_key(struct buf *b, const struct config_key *k)
{
    buf_printf(b, "%s: %s", k->path, type_text(k));
    if (k->type == CONFIG_CHOICE) {
        buf_puts(b, " of ");
        put_choices(b, k, "");
    }
    if (k->min != 0 || k->max != 0) {
        buf_puts(b, ", ");
        put_limits(b, k);
    }
    buf_printf(b, "\n  %s\n", k->text);
    if (k->fallback)
        buf_printf(b, "  Default: %s.\n", k->fallback);
    if (k->needed)
        buf_puts(b, "  Every entry needs it.\n");
    if (k->type != CONFIG_MAP && k->type != CONFIG_ITEMS) {
        buf_printf(b, "  A change takes effect %s.\n",
                   k->when == CONFIG_LIVE ? "when the file is read again" : "after a restart");
        return;
    }
    buf_puts(b, "  Keys:\n");
    for (size_t i = 0; i < config_n_keys; i++)
        if (config_key_in(&config_keys[i], k))
            buf_printf(b, "    %-20s %s\n", config_key_leaf(&config_keys[i]), config_keys[i].text);
}

void config_describe_json(struct buf *b, const struct config_key *k)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    put_str(&j, "key", k->path);
    put_str(&j, "type", type_text(k));
    put_str(&j, "text", k->text);
    if (k->fallback)
        put_str(&j, "default", k->fallback);
    if (k->type != CONFIG_MAP && k->type != CONFIG_ITEMS)
        put_str(&j, "takes_effect", when_text(k));
    json_out_member_object(&j, "schema");
    put_value_schema(&j, k);
    json_out_object_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

/* "models[].path" and "models[reply].path" become "models.path". */
static void without_brackets(const char *path, char out[MAX_PATH_BYTES])
{
    size_t n = 0;
    for (const char *p = path; *p && n + 1 < MAX_PATH_BYTES; p++) {
        if (*p == '[') {
            const char *end = strchr(p, ']');
            p = end ? end : p;
            continue;
        }
        out[n++] = *p;
    }
    out[n] = '\0';
}

const struct config_key *config_describe_find(const char *typed, const char **near)
{
    char wanted[MAX_PATH_BYTES], path[MAX_PATH_BYTES];
    const char *paths[MAX_KEYS + 1] = {0};
    *near = NULL;
    without_brackets(typed, wanted);
    for (size_t i = 0; i < config_n_keys; i++) {
        without_brackets(config_keys[i].path, path);
        if (strcmp(path, wanted) == 0)
            return &config_keys[i];
        if (i < MAX_KEYS)
            paths[i] = config_keys[i].path;
    }
    *near = nearest_word(typed, paths);
    for (size_t i = 0; !*near && i < config_n_keys; i++) /* only the last part */
        if (strcmp(config_key_leaf(&config_keys[i]), wanted) == 0)
            *near = config_keys[i].path;
    return NULL;
}
