/* cmd_store.c - shoal store: the models on this machine's disk, by SHA-256. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes_text.h"
#include "base/thread/executor_queue.h"
#include "base/mem.h"
#include "base/plural.h"
#include "cluster/trust/cert.h"
#include "cluster/store/model_fetch.h"
#include "depot/store/model_put.h"
#include "depot/store/model_store.h"
#include "cmd/local/stored.h"
#include "net/tls.h"
#include "wire/json_out.h"

cmd_fn cmd_store_list, cmd_store_add, cmd_store_fetch, cmd_store_verify, cmd_store_remove,
    cmd_store_gc;

#define MAX_OUTPUT_BYTES ((size_t)64 << 20)
#define HEX_DIGITS (2u * SHA256_BYTES)
#define MIN_PREFIX 6u

static const struct opts_def store_defs[] = {
    STORED_DIR_DEF,
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_def gc_defs[] = {
    {"limit", 0, OPTS_UINT, "MIB", "0", 0, 0,
     "size limit of the store in MiB; 0: only leftovers of fetches are removed"},
};

static const struct opts_def fetch_defs[] = {
    {"from", 'f', OPTS_LIST, "SOURCE", NULL, 0, 0,
     "HOST:PORT of a node, https://, http:// or file:// URL; several in order of preference"},
    {"certs", 0, OPTS_TEXT, "DIR", NULL, 0, 0,
     "folder with this machine's certificate, for nodes; its role is node or controller"},
    {"ca", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "PEM file with the CAs to trust for https://; default: those of the system"},
    {"rate", 0, OPTS_UINT, "KIB", "0", 0, 0, "rate limit in KiB per second; 0: no limit"},
};

static const struct opts_page list_page = {
    .command = "store list",
    .arguments = "",
    .max_args = 0,
    .summary = "Lists the models of the store, the last used first.",
    .groups = {OPTS_GROUP("Options", store_defs)},
    .examples = "  shoal store list\n  shoal store list --json\n",
};
static const struct opts_page add_page = {
    .command = "store add",
    .arguments = "PATH",
    .min_args = 1,
    .max_args = 1,
    .summary = "Copies a model, a file or a folder, into the store and prints its SHA-256.",
    .groups = {OPTS_GROUP("Options", store_defs)},
    .examples = "  shoal store add models/reply.gguf\n",
};
static const struct opts_page fetch_page = {
    .command = "store fetch",
    .arguments = "SHA256",
    .min_args = 1,
    .max_args = 1,
    .summary = "Fetches a model into the store, verifies it and prints its path.",
    .details =
        "An interrupted fetch resumes where it stopped.  A URL that ends with / is a folder in the "
        "store's\nformat: any web server that serves the store's folder models/ is a source.",
    .groups = {OPTS_GROUP("Options", store_defs), OPTS_GROUP("Sources", fetch_defs)},
    .examples = "  shoal store fetch 4f2a... --from 10.0.0.2:9191 --certs ca/members/node1\n"
                "  shoal store fetch 4f2a... --from https://models.example/reply.gguf\n",
};
static const struct opts_page verify_page = {
    .command = "store verify",
    .arguments = "[SHA256...]",
    .max_args = 1024,
    .summary = "Reads models of the store and compares them with their SHA-256.",
    .details = "Without an argument, all of them.  Exit status 3: some are damaged.",
    .groups = {OPTS_GROUP("Options", store_defs)},
    .examples = "  shoal store verify\n  shoal store verify 4f2a91\n",
};
static const struct opts_page remove_page = {
    .command = "store remove",
    .arguments = "SHA256...",
    .min_args = 1,
    .max_args = 1024,
    .summary = "Removes models from the store, unless a node serves them.",
    .groups = {OPTS_GROUP("Options", store_defs)},
    .examples = "  shoal store remove 4f2a91\n",
};
static const struct opts_page gc_page = {
    .command = "store gc",
    .arguments = "",
    .max_args = 0,
    .summary = "Removes leftovers of interrupted fetches, and the least recently used models.",
    .groups = {OPTS_GROUP("Options", store_defs), OPTS_GROUP("Limits", gc_defs)},
    .examples = "  shoal store gc\n  shoal store gc --limit 20480\n",
};

/* ---- shared ---- */

static int print_buf(const struct opts *o, struct buf *b)
{
    int rc = b->rc < 0 ? cmd_fail(o->page, "%s", err_text(b->rc)) : cmd_print(o->page, b);
    buf_fini(b);
    return rc;
}

/* A whole hash, or the first digits of one that the store has. */
static int find_hash(struct model_store *s, const char *text, uint8_t out[SHA256_BYTES],
                     struct err *e)
{
    struct model_store_entry *list = NULL;
    char hex[HEX_DIGITS + 1];
    size_t n = 0, found = 0, len = strlen(text);
    if (strspn(text, "0123456789abcdefABCDEF") != len || len > HEX_DIGITS || len < MIN_PREFIX)
        return err_set(e, SHOAL_EINVAL,
                       "'%.80s' is not a SHA-256: give its 64 digits, or at least the first %u",
                       text, MIN_PREFIX);
    if (len == HEX_DIGITS)
        return sha256_read_hex(out, text) ? 0 : SHOAL_EINVAL;
    int rc = model_store_list(s, &list, &n, e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        sha256_hex(hex, list[i].sha256);
        if (strncasecmp(hex, text, len) != 0)
            continue;
        memcpy(out, list[i].sha256, SHA256_BYTES);
        found++;
    }
    mem_free(list);
    if (rc == 0 && found != 1)
        rc = err_set(e, SHOAL_ENOTFOUND,
                     found ? "%s matches several models: give more digits"
                           : "no model in the store begins with %s: see shoal store list",
                     text);
    return rc;
}

static void put_hash(struct json_out *j, const uint8_t sum[SHA256_BYTES])
{
    char hex[HEX_DIGITS + 1];
    sha256_hex(hex, sum);
    json_out_member_str(j, "sha256", hex);
}

/* ---- list ---- */

static const char *state_of(const struct model_store_entry *x)
{
    return x->damaged                 ? "damaged"
           : x->incoming && x->pinned ? "fetching"
           : x->incoming              ? "incomplete"
           : x->pinned                ? "in use"
                                      : "idle";
}

static void put_entry(struct json_out *j, const struct model_store_entry *x)
{
    json_out_object(j);
    put_hash(j, x->sha256);
    json_out_member_str(j, "state", state_of(x));
    json_out_member_uint(j, "bytes", x->bytes);
    json_out_member_uint(j, "total_bytes", x->total_bytes);
    json_out_member_uint(j, "files", x->n_files);
    json_out_member_str(j, "open", x->open);
    json_out_member_uint(j, "used_s", x->used_s);
    json_out_object_end(j);
}

static void print_entry(struct buf *b, const struct model_store_entry *x)
{
    char hex[HEX_DIGITS + 1], size[32], when[40] = "";
    struct tm tm;
    time_t t = (time_t)x->used_s;
    sha256_hex(hex, x->sha256);
    if (x->used_s && gmtime_r(&t, &tm))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
    buf_printf(b, "%.16s  %-10s %10s  %-20s  %s\n", hex, state_of(x),
               bytes_text(size, (double)x->bytes), when,
               x->open[0]   ? x->open
               : x->n_files ? "(folder)"
                            : "");
}

static int list(const struct opts *o, struct model_store *s)
{
    struct model_store_entry *entries = NULL;
    struct err e = {0};
    struct buf b;
    size_t n = 0;
    if (model_store_list(s, &entries, &n, &e) < 0)
        return stored_fail(o, &e);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_str(&j, "store", model_store_dir(s));
        json_out_member_array(&j, "models");
        for (size_t i = 0; i < n; i++)
            put_entry(&j, &entries[i]);
        json_out_array_end(&j);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b, "%-16s  %-10s %10s  %-20s  %s\n", "SHA-256", "STATE", "SIZE", "LAST USED",
                   "FILE");
        for (size_t i = 0; i < n; i++)
            print_entry(&b, &entries[i]);
    }
    mem_free(entries);
    return print_buf(o, &b);
}

/* ---- add and fetch ---- */

static int print_model(const struct opts *o, const uint8_t sum[SHA256_BYTES], const char *path,
                       bool show_path)
{
    char hex[HEX_DIGITS + 1];
    struct buf b;
    sha256_hex(hex, sum);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        put_hash(&j, sum);
        json_out_member_str(&j, "path", path);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b, "%s\n", show_path ? path : hex);
    }
    return print_buf(o, &b);
}

static int add(const struct opts *o, struct model_store *s)
{
    uint8_t sum[SHA256_BYTES];
    char path[PATH_MAX];
    struct err e = {0};
    int rc = model_put(s, o->args[0], NULL, sum, &stored_stop, &e);
    if (rc == 0)
        rc = model_store_find(s, sum, path, &e);
    return rc < 0 ? stored_fail(o, &e) : print_model(o, sum, path, false);
}

struct fetched {
    bool over;
    int rc;
    char path[PATH_MAX];
    struct err e;
};

static void on_done(void *ctx, int rc, const char *path, const struct err *e)
{
    struct fetched *f = ctx;
    f->over = true;
    f->rc = rc;
    f->e = *e;
    snprintf(f->path, sizeof(f->path), "%s", path);
}

static int open_certs(const struct opts *o, struct tls_client **out, struct err *e)
{
    const char *folder = opts_text(o, "certs");
    struct cert_files f;
    if (!folder)
        return 0;
    int rc = cert_files_in(&f, folder, e);
    const struct tls_opts to = {.cert = f.cert, .key = f.key, .ca = f.ca, .crl = f.crl};
    return rc < 0 ? rc : tls_client_open(out, &to, e);
}

static int wait_fetch(struct executor_queue *q, struct model_fetcher *f, const struct opts *o,
                      const uint8_t sum[SHA256_BYTES], struct fetched *out, struct err *e)
{
    struct model_fetch_source sources[MODEL_FETCH_MAX_SOURCES];
    const struct model_fetch_watch w = {.ctx = out, .done = on_done};
    const char *const *from;
    struct model_fetch *job;
    char name[20];
    size_t n = opts_list(o, "from", &from);
    if (n == 0 || n > MODEL_FETCH_MAX_SOURCES)
        return err_set(e, SHOAL_EINVAL, "give 1 to %u sources with --from",
                       MODEL_FETCH_MAX_SOURCES);
    for (size_t i = 0; i < n; i++)
        sources[i] = (struct model_fetch_source){.address = from[i]};
    snprintf(name, sizeof(name), "%.16s", o->args[0]);
    int rc = model_fetch_start(&job, f, name, sum, sources, n, &w, e);
    while (rc == 0 && !out->over) {
        (void)executor_queue_turn(q, 100);
        if (stored_stop)
            model_fetch_cancel(job);
    }
    if (rc == 0 && out->rc < 0)
        *e = out->e;
    return rc < 0 ? rc : out->rc;
}

static int fetch(const struct opts *o, struct model_store *s)
{
    static const char *const everywhere[] = {
        "/"}; /* no restriction: the user may read these files anyway */
    struct model_fetcher_opts fo = {.store = s,
                                    .ca = opts_text(o, "ca"),
                                    .folders = everywhere,
                                    .n_folders = 1,
                                    .bytes_per_s = opts_uint(o, "rate") << 10};
    struct model_fetcher *f = NULL;
    struct tls_client *tls = NULL;
    struct executor_queue q;
    struct fetched out = {0};
    struct err e = {0};
    uint8_t sum[SHA256_BYTES];
    int rc = strlen(o->args[0]) == HEX_DIGITS && sha256_read_hex(sum, o->args[0])
                 ? open_certs(o, &tls, &e)
                 : err_set(&e, SHOAL_EINVAL, "'%.80s' is no SHA-256: it has 64 digits", o->args[0]);
    if (rc == 0)
        rc = executor_queue_init(&q, &e);
    if (rc < 0) {
        tls_client_close(tls);
        return stored_fail(o, &e);
    }
    fo.executor = &q.executor;
    fo.tls = tls;
    rc = model_fetcher_create(&f, &fo, &e);
    if (rc == 0)
        rc = wait_fetch(&q, f, o, sum, &out, &e);
    model_fetcher_destroy(f);
    (void)executor_queue_run(&q);
    executor_queue_fini(&q);
    tls_client_close(tls);
    return rc < 0 ? stored_fail(o, &e) : print_model(o, sum, out.path, true);
}

/* ---- verify, remove, gc ---- */

struct outcome {
    uint8_t sum[SHA256_BYTES];
    int rc;
    char error[sizeof(((struct err *)0)->msg)];
};

static int print_outcomes(const struct opts *o, const struct outcome *list, size_t n,
                          const char *good, const char *bad)
{
    struct buf b;
    char hex[HEX_DIGITS + 1];
    int worst = CMD_OK;
    buf_init(&b, MAX_OUTPUT_BYTES);
    struct json_out j = json_out_make(&b);
    bool json = opts_flag(o, "json");
    if (json)
        json_out_array(&j);
    for (size_t i = 0; i < n; i++) {
        const struct outcome *x = &list[i];
        if (x->rc < 0)
            worst = CMD_NOT_WELL;
        sha256_hex(hex, x->sum);
        if (json) {
            json_out_object(&j);
            put_hash(&j, x->sum);
            json_out_member_str(&j, "state", x->rc < 0 ? bad : good);
            json_out_member_str(&j, "error", x->error);
            json_out_object_end(&j);
        } else {
            buf_printf(&b, "%.16s  %s%s%s\n", hex, x->rc < 0 ? bad : good, x->rc < 0 ? ": " : "",
                       x->error);
        }
    }
    if (json) {
        json_out_array_end(&j);
        buf_putc(&b, '\n');
    }
    int rc = print_buf(o, &b);
    return rc == CMD_OK ? worst : rc;
}

/* The hashes of the arguments, or of all models; mem_free *out. */
static int choose(const struct opts *o, struct model_store *s, struct outcome **out, size_t *n,
                  struct err *e)
{
    struct model_store_entry *list = NULL;
    size_t all = 0;
    int rc = o->n_args ? 0 : model_store_list(s, &list, &all, e);
    *n = 0;
    *out = rc == 0 ? mem_zalloc_n(o->n_args + all + 1, sizeof(**out)) : NULL;
    if (rc == 0 && !*out)
        rc = err_set(e, SHOAL_ENOMEM, "list of models");
    for (size_t i = 0; rc == 0 && i < o->n_args; i++)
        rc = find_hash(s, o->args[i], (*out)[(*n)++].sum, e);
    for (size_t i = 0; rc == 0 && i < all; i++)
        if (!list[i].incoming)
            memcpy((*out)[(*n)++].sum, list[i].sha256, SHA256_BYTES);
    mem_free(list);
    return rc;
}

static int each(const struct opts *o, struct model_store *s, bool remove)
{
    struct outcome *list = NULL;
    struct err e = {0};
    size_t n = 0;
    int rc = choose(o, s, &list, &n, &e);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct outcome *x = &list[i];
        struct err why = {0};
        x->rc = remove ? model_store_remove(s, x->sum, &why)
                       : model_store_verify(s, x->sum, &stored_stop, &why);
        snprintf(x->error, sizeof(x->error), "%s", x->rc < 0 ? why.msg : "");
        if (x->rc == SHOAL_ECANCELLED)
            rc = err_set(&e, x->rc, "interrupted");
    }
    int code = rc < 0 ? stored_fail(o, &e)
                      : print_outcomes(o, list, n, remove ? "removed" : "good",
                                       remove ? "not removed" : "damaged");
    mem_free(list);
    return code;
}

static int verify(const struct opts *o, struct model_store *s)
{
    return each(o, s, false);
}

static int remove_models(const struct opts *o, struct model_store *s)
{
    return each(o, s, true);
}

static int gc(const struct opts *o, struct model_store *s)
{
    struct model_store_swept swept;
    struct err e = {0};
    struct buf b;
    char size[32];
    if (model_store_sweep(s, NULL, 0, &swept, &e) < 0)
        return stored_fail(o, &e);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json"))
        buf_printf(&b, "{\"models\":%u,\"incomplete\":%u,\"bytes\":%" PRIu64 "}\n", swept.n_models,
                   swept.n_incoming, swept.bytes);
    else
        buf_printf(&b, "Removed %u model%s and %u incomplete: %s.\n", swept.n_models,
                   plural(swept.n_models), swept.n_incoming, bytes_text(size, (double)swept.bytes));
    return print_buf(o, &b);
}

/* ---- verbs ---- */

static int run(const struct opts_page *page, int argc, const char *const *argv,
               int (*verb)(const struct opts *o, struct model_store *s))
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    struct model_store *s = stored_open(&o, page == &gc_page ? opts_uint(&o, "limit") << 20 : 0);
    rc = s ? verb(&o, s) : CMD_FAILED;
    model_store_close(s);
    opts_fini(&o);
    return rc;
}

int cmd_store_list(int argc, const char *const *argv)
{
    return run(&list_page, argc, argv, list);
}

int cmd_store_add(int argc, const char *const *argv)
{
    return run(&add_page, argc, argv, add);
}

int cmd_store_fetch(int argc, const char *const *argv)
{
    return run(&fetch_page, argc, argv, fetch);
}

int cmd_store_verify(int argc, const char *const *argv)
{
    return run(&verify_page, argc, argv, verify);
}

int cmd_store_remove(int argc, const char *const *argv)
{
    return run(&remove_page, argc, argv, remove_models);
}

int cmd_store_gc(int argc, const char *const *argv)
{
    return run(&gc_page, argc, argv, gc);
}
