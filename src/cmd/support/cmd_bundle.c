/* cmd_bundle.c - shoal bundle: a file for whoever helps, without secrets and personal data. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cluster/cluster_findings.h"
#include "cmd/cmd_doctor.h"
#include "cmd/server_ask.h"
#include "cmd/support/tar_gz.h"
#include "config/config.h"
#include "config/config_scrub.h"
#include "net/http_ask.h"
#include "privacy/scrub.h"
#include "shoal/shoal_version.h"
#include "wire/json_out.h"

cmd_fn cmd_bundle;

#define MAX_PART_BYTES ((size_t)32 << 20)
#define MAX_LOG_BYTES ((size_t)1 << 20)
#define ANSWER_MS 10000u

static const struct opts_def defs[] = {
    SERVER_ASK_ADDRESS_DEF,
    {"key", 0, OPTS_TEXT, "KEY", NULL, 0, 0,
     "API key with administration rights; default: $SHOAL_API_KEY"},
    {"output", 'o', OPTS_TEXT, "FILE", NULL, 0, 0,
     "the file to write; default: shoal-bundle-TIME.tar.gz here"},
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "a configuration file, if the server does not answer"},
    {"log", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "a log file, of which the end is taken; default: the last lines of the server"},
};

static const struct opts_page page = {
    .command = "bundle",
    .arguments = "",
    .summary = "Writes a file for whoever helps you: settings, state, figures, traces, log.",
    .details = "Prompts, answers and keys are not in it; secrets, addresses, telephone numbers and "
               "names of\nclients are taken out, in the server and again here. Names of people "
               "that nothing marks as\nsuch may be left: it is a .tar.gz of texts, so look into it "
               "before you send it.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal bundle\n"
                "  shoal bundle --server http://hub:8080 -o hub.tar.gz\n"
                "  journalctl -u shoal -o cat > log && shoal bundle --log log\n",
};

struct bundle {
    const struct opts *o;
    struct server_ask ask;
    struct tar_gz *tar;
    struct buf part, missing; /* missing: a JSON array */
    struct json_out missed;
    struct err e;
    int rc; /* of writing */
};

static void miss(struct bundle *b, const char *name, const char *why)
{
    json_out_object(&b->missed);
    json_out_member_str(&b->missed, "file", name);
    json_out_member_str(&b->missed, "why", why);
    json_out_object_end(&b->missed);
    fprintf(stderr, "shoal bundle: without %s: %s\n", name, why);
}

/* Everything goes through here. */
static void add(struct bundle *b, const char *name, const char *text, size_t n)
{
    struct buf clean;
    buf_init(&clean, 2 * MAX_PART_BYTES);
    const char *dot = strrchr(name, '.');
    const bool quoted = strncmp(dot, ".json", 5) == 0 || strcmp(name, "metrics.txt") == 0;
    (quoted ? scrub_quoted : scrub_text)(&clean, text, n);
    if (b->rc == 0 && clean.rc < 0)
        b->rc = err_set(&b->e, clean.rc, "out of memory for %s", name);
    if (b->rc == 0)
        b->rc = tar_gz_add(b->tar, name, buf_str(&clean), clean.len, &b->e);
    buf_fini(&clean);
}

/* The server's answer, in b->part; false: there is none, and `name` is missing. */
static bool get(struct bundle *b, const char *name, const char *path)
{
    struct err e = {0};
    int status = 0;
    const struct http_ask a = {.server = b->ask.server,
                               .method = "GET",
                               .path = path,
                               .key = b->ask.key,
                               .timeout_ms = ANSWER_MS};
    buf_clear(&b->part);
    int rc = http_ask(&a, &status, &b->part, &e);
    if (rc == 0 && status != 200)
        rc = err_set(&e, SHOAL_EIO, "%s answers with status %d%s", path, status,
                     status == 401 || status == 403 ? ": it needs an administrator's key, --key"
                                                    : "");
    if (rc < 0)
        miss(b, name, e.msg);
    return rc == 0;
}

static void add_from(struct bundle *b, const char *name, const char *path)
{
    if (get(b, name, path))
        add(b, name, buf_str(&b->part), b->part.len);
}

static void add_traces(struct bundle *b)
{
    struct buf all;
    if (!get(b, "traces.jsonl", "/v1/traces?limit=64"))
        return;
    cJSON *list = cJSON_ParseWithLength(buf_str(&b->part), b->part.len), *t;
    buf_init(&all, MAX_PART_BYTES);
    cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(list, "traces"))
    {
        char path[128];
        snprintf(path, sizeof(path), "/v1/traces/%.64s", server_ask_text(t, "trace_id"));
        if (!get(b, "a trace", path)) /* it was pushed out of the ring */
            continue;
        buf_put(&all, buf_str(&b->part), b->part.len);
        buf_putc(&all, '\n');
    }
    cJSON_Delete(list);
    add(b, "traces.jsonl", buf_str(&all), all.len);
    buf_fini(&all);
}

static void add_findings(struct bundle *b)
{
    struct cluster_finding *v = mem_zalloc(CLUSTER_FINDINGS_MAX * sizeof(*v));
    if (!v || !get(b, "cluster.json", "/v1/cluster")) {
        mem_free(v);
        return;
    }
    add(b, "cluster.json", buf_str(&b->part), b->part.len);
    cJSON *o = cJSON_ParseWithLength(buf_str(&b->part), b->part.len);
    const bool in_a_shoal = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(o, "nodes")) > 0;
    const size_t n = in_a_shoal ? cluster_findings(v, o, (int64_t)(clock_unix_ms() / 1000)) : 0;
    buf_clear(&b->part);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b->part, "%s %s: %s\n    -> %s\n", v[i].error ? "error" : "warning", v[i].where,
                   v[i].what, v[i].fix);
    if (in_a_shoal)
        add(b, "cluster-doctor.txt", buf_str(&b->part), b->part.len);
    cJSON_Delete(o);
    mem_free(v);
}

/* ---- settings and log: of the server, or of files ---- */

static void add_config_file(struct bundle *b, const char *file)
{
    struct config *c = NULL;
    struct err e = {0};
    int rc = config_create(&c, &e);
    if (rc == 0)
        rc = config_load(c, file, &e);
    buf_clear(&b->part);
    struct json_out j = json_out_make(&b->part);
    if (rc == 0)
        config_scrub(&j, c);
    if (rc == 0)
        add(b, "config.json", buf_str(&b->part), b->part.len);
    else
        miss(b, "config.json", e.msg);
    config_unref(c);
}

/* The last bytes of a file; false: errno says why. */
static bool read_end(struct buf *out, const char *file)
{
    FILE *f = fopen(file, "re");
    if (!f)
        return false;
    if (fseek(f, -(long)MAX_LOG_BYTES, SEEK_END) != 0)
        rewind(f); /* it is shorter */
    char *to = buf_room(out, MAX_LOG_BYTES);
    if (to)
        buf_used(out, fread(to, 1, MAX_LOG_BYTES, f));
    const bool ok = to && !ferror(f);
    fclose(f);
    return ok;
}

/* The end of the file, from the beginning of a line on. */
static void add_log_file(struct bundle *b, const char *file)
{
    buf_clear(&b->part);
    if (!read_end(&b->part, file)) {
        miss(b, "log.txt", strerror(errno));
        return;
    }
    const char *text = buf_str(&b->part), *line = strchr(text, '\n');
    const size_t skip = b->part.len == MAX_LOG_BYTES && line ? (size_t)(line + 1 - text) : 0;
    add(b, "log.txt", text + skip, b->part.len - skip);
}

static void add_support(struct bundle *b, bool config, bool log)
{
    if (!get(b, "config.json and log.txt", "/admin/support"))
        return;
    cJSON *o = cJSON_ParseWithLength(buf_str(&b->part), b->part.len);
    char *settings = cJSON_Print(cJSON_GetObjectItemCaseSensitive(o, "config"));
    const char *lines = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "log"));
    if (config && settings)
        add(b, "config.json", settings, strlen(settings));
    if (log && lines)
        add(b, "log.txt", lines, strlen(lines));
    cJSON_free(settings);
    cJSON_Delete(o);
}

static void add_doctor(struct bundle *b)
{
    struct err e = {0};
    buf_clear(&b->part);
    if (cmd_doctor_put(&b->part, &e) < 0)
        miss(b, "doctor.json", e.msg);
    else
        add(b, "doctor.json", buf_str(&b->part), b->part.len);
}

static void add_manifest(struct bundle *b)
{
    buf_clear(&b->part);
    struct json_out j = json_out_make(&b->part);
    json_out_array_end(&b->missed);
    json_out_object(&j);
    json_out_member_str(&j, "version", SHOAL_VERSION);
    json_out_member_uint(&j, "made_unix_ms", clock_unix_ms());
    json_out_member_str(&j, "server", b->ask.server);
    json_out_key(&j, "missing");
    json_out_raw(&j, buf_str(&b->missing), b->missing.len);
    json_out_object_end(&j);
    add(b, "manifest.json", buf_str(&b->part), b->part.len);
}

static void add_all(struct bundle *b)
{
    const char *config = opts_text(b->o, "config"), *log = opts_text(b->o, "log");
    add_doctor(b);
    if (config)
        add_config_file(b, config);
    if (log)
        add_log_file(b, log);
    if (!config || !log)
        add_support(b, !config, !log);
    add_from(b, "metrics.txt", "/metrics");
    add_from(b, "models.json", "/admin/models");
    add_from(b, "version.json", "/api/version");
    add_findings(b);
    add_traces(b);
    add_manifest(b);
}

static void default_name(char *out, size_t cap)
{
    const time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(out, cap, "shoal-bundle-%Y%m%d-%H%M%S.tar.gz", &tm);
}

static int write_bundle(struct bundle *b)
{
    char name[64];
    const char *path = opts_text(b->o, "output");
    default_name(name, sizeof(name));
    path = path ? path : name;
    if (tar_gz_open(&b->tar, path, clock_unix_ms() / 1000, &b->e) < 0)
        return cmd_fail(&page, "%s", b->e.msg);
    add_all(b);
    const int rc = tar_gz_close(b->tar, b->rc == 0, &b->e);
    if (b->rc < 0 || rc < 0)
        return cmd_fail(&page, "%s", b->e.msg);
    buf_clear(&b->part);
    buf_printf(&b->part, "%s\n", path);
    return cmd_print(&page, &b->part);
}

int cmd_bundle(int argc, const char *const *argv)
{
    struct opts o;
    struct bundle b = {.o = &o};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    server_ask_init(&b.ask, &o);
    buf_init(&b.part, MAX_PART_BYTES);
    buf_init(&b.missing, MAX_PART_BYTES);
    b.missed = json_out_make(&b.missing);
    json_out_array(&b.missed);
    rc = write_bundle(&b);
    buf_fini(&b.part);
    buf_fini(&b.missing);
    server_ask_fini(&b.ask);
    opts_fini(&o);
    return rc;
}
