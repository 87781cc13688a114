/* cmd_init.c - shoal init: writes a configuration file for the models found. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes_text.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "config/config.h"
#include "format/model_open.h"
#include "host/pack.h"

cmd_fn cmd_init;

#define MAX_OUTPUT_BYTES ((size_t)1 << 20)
#define MAX_FOUND 64u /* as many as a file may have */

static const struct opts_def defs[] = {
    {"output", 'o', OPTS_TEXT, "FILE", "shoal.yaml", 0, 0, "file to write; -: stdout"},
    {"force", 0, OPTS_FLAG, NULL, NULL, 0, 0, "replace a file that exists"},
};

static const struct opts_page page = {
    .command = "init",
    .arguments = "[FOLDER]",
    .max_args = 1,
    .summary = "Writes a configuration file, with comments, for the models of a folder.",
    .details =
        "Looks for GGUF files and Hugging Face folders in FOLDER (default: the current one).  "
        "Without\nany, the file has the models included with Shoal.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal init && shoal serve --config shoal.yaml\n"
                "  shoal init /srv/models -o /etc/shoal/shoal.yaml\n",
};

struct found {
    char name[128], path[PATH_MAX], what[160];
};

struct finds {
    struct found *v;
    uint32_t n;
    uint32_t n_left_out;
};

/* ---- looking ---- */

static bool is_model_path(const char *folder, const char *entry, char path[PATH_MAX])
{
    char config[PATH_MAX + 16];
    struct stat st;
    for (const char *p = entry; *p; p++)
        if ((unsigned char)*p < ' ')
            return false; /* it would need more than quotes */
    if (entry[0] == '.' || snprintf(path, PATH_MAX, "%s/%s", folder, entry) >= PATH_MAX ||
        stat(path, &st) < 0)
        return false;
    if (S_ISREG(st.st_mode))
        return str_ends_with(entry, ".gguf");
    snprintf(config, sizeof(config), "%s/config.json", path);
    return S_ISDIR(st.st_mode) && access(config, R_OK) == 0;
}

/* Characters that need no quotes in YAML; others become '-'. */
static void make_plain(char *text)
{
    for (char *p = text; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", *p))
            *p = '-';
}

/* "llama, 24.6 MiB"; "": it cannot be read as a model. */
static void describe(char out[160], const char *path)
{
    struct model_file *m = NULL;
    struct err e = {0};
    char bytes[32];
    out[0] = '\0';
    if (model_open(&m, path, &e) < 0)
        return;
    struct str arch = {"model", 5};
    char plain[65];
    (void)model_file_get_str(m, "general.architecture", &arch);
    snprintf(plain, sizeof(plain), "%.*s", (int)(arch.n < 64 ? arch.n : 64), arch.p);
    make_plain(plain);
    snprintf(out, 160, "%s, %s", plain, bytes_text(bytes, (double)m->n_bytes));
    model_file_close(m);
}

static int by_name(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The entry's name without ".gguf". */
static void name_of(char out[128], const char *entry)
{
    size_t n = strlen(entry);
    if (str_ends_with(entry, ".gguf"))
        n -= strlen(".gguf");
    snprintf(out, 128, "%.*s", (int)(n < 127 ? n : 127), entry);
    make_plain(out);
}

static void look(struct finds *f, const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *i;
    char path[PATH_MAX];
    while (d && (i = readdir(d))) {
        struct found *x = &f->v[f->n];
        if (!is_model_path(folder, i->d_name, path))
            continue;
        if (f->n == MAX_FOUND) {
            f->n_left_out++;
            continue;
        }
        describe(x->what, path);
        if (!x->what[0])
            continue;
        name_of(x->name, i->d_name);
        snprintf(x->path, sizeof(x->path), "%s", path);
        f->n++;
    }
    if (d)
        closedir(d);
    qsort(f->v, f->n, sizeof(*f->v), by_name);
}

static void look_in_pack(struct finds *f)
{
    struct pack *p = NULL;
    struct err e = {0};
    if (pack_open(&p, NULL, &e) < 0)
        return;
    for (uint32_t i = 0; i < p->n_models && f->n < MAX_FOUND; i++) {
        struct found *x = &f->v[f->n++];
        snprintf(x->name, sizeof(x->name), "%s", p->models[i].name);
        snprintf(x->what, sizeof(x->what), "%s", p->models[i].task);
    }
    pack_close(p);
}

/* ---- writing ---- */

/* A text in single quotes, as YAML has it. */
static void put_quoted(struct buf *b, const char *text)
{
    buf_putc(b, '\'');
    for (; *text; text++)
        buf_printf(b, *text == '\'' ? "''" : "%c", *text);
    buf_putc(b, '\'');
}

static void put_models(struct buf *b, const struct finds *f, const char *folder)
{
    if (f->n == 0 || !f->v[0].path[0]) { /* without `models` the server uses the pack */
        buf_puts(b, "# Models. Without this list the server has those included with Shoal");
        buf_puts(b, f->n ? ":\n" : ".\n");
        for (uint32_t i = 0; i < f->n; i++)
            buf_printf(b, "#   %s (%s)\n", f->v[i].name, f->v[i].what);
        buf_puts(b, "# models:\n#   - {name: my-model, path: /path/to/model.gguf}\n");
        return;
    }
    buf_printf(b,
               "# Models of %s. Names may be changed. With `lazy: true` a model is loaded on first "
               "use.\nmodels:\n",
               folder);
    for (uint32_t i = 0; i < f->n; i++) {
        buf_printf(b, "  - name: %s  # %s\n    path: ", f->v[i].name, f->v[i].what);
        put_quoted(b, f->v[i].path);
        buf_putc(b, '\n');
    }
    if (f->n_left_out)
        buf_printf(b, "# %u more were left out: the limit is %u.\n", f->n_left_out, MAX_FOUND);
}

/* A route over the models that were found, to be completed. */
static void put_routes(struct buf *b, const struct finds *f)
{
    bool found = f->n > 0 && f->v[0].path[0];
    buf_puts(b, "\n# Clients may use the model name `auto`: the server chooses the best model that "
                "meets the deadline. To define your own routes:\n"
                "# routes:\n"
                "#   - name: fast-or-good\n"
                "#     policy: sla\n"
                "#     models:\n");
    for (uint32_t i = 0; i < (found ? f->n : 1u); i++)
        buf_printf(b, "#       - {name: %s, quality: 0.%u}\n", found ? f->v[i].name : "my-model",
                   5 + (i < 4 ? i : 4));
}

static void put_file(struct buf *b, const struct finds *f, const char *folder)
{
    buf_puts(b, "# Configuration of Shoal, written by shoal init.\n"
                "# All keys: docs/CONFIG.md, or `shoal config explain`. Check: `shoal config check "
                "FILE`.\n"
                "# The server reads this file again when it changes.\n\n"
                "# Addresses for clients. Add 0.0.0.0:8080 to accept requests from other machines; "
                "then set keys, too.\n"
                "listen: [127.0.0.1:8080]\n\n");
    put_models(b, f, folder);
    put_routes(b, f);
    buf_puts(b, "\n# Memory of all models together. Default: what the machine has.\n"
                "# memory: 4GiB\n\n"
                "# Clients that may use the server; without keys, everyone who can reach it. The "
                "hash: printf "
                "%s KEY | sha256sum\n"
                "# keys:\n"
                "#   - {name: app, sha256: 64 hex digits, rate: 20, in_flight: 8}\n\n"
                "# Deadline of requests without their own. 0: none.\n"
                "# deadline: {default: 30s, max: 5m}\n");
}

static int write_file(const char *path, const struct buf *b, bool force)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0644);
    if (fd < 0 && errno == EEXIST)
        return cmd_fail(&page, "%s exists: --force replaces it, -o writes another", path);
    if (fd < 0)
        return cmd_fail(&page, "cannot write %s: %s", path, strerror(errno));
    size_t done = 0;
    while (done < b->len) {
        ssize_t n = write(fd, b->data + done, b->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (close(fd) < 0 || done < b->len)
        return cmd_fail(&page, "cannot write %s: %s", path, strerror(errno));
    return CMD_OK;
}

static int init(const struct opts *o, struct finds *f)
{
    char folder[PATH_MAX];
    const char *output = opts_text(o, "output"), *given = o->n_args ? o->args[0] : ".";
    struct buf b;
    if (!realpath(given, folder))
        return cmd_fail(&page, "cannot read the folder %s: %s", given, strerror(errno));
    look(f, folder);
    if (f->n == 0 && o->n_args)
        return cmd_fail(&page, "%s has no GGUF file and no folder from Hugging Face", folder);
    if (f->n == 0)
        look_in_pack(f);
    buf_init(&b, MAX_OUTPUT_BYTES);
    put_file(&b, f, folder);
    int code = b.rc < 0                   ? cmd_fail(&page, "%s", err_text(b.rc))
               : strcmp(output, "-") == 0 ? cmd_print(&page, &b)
                                          : write_file(output, &b, opts_flag(o, "force"));
    if (code == CMD_OK && strcmp(output, "-") != 0)
        printf("wrote %s; start with: shoal serve --config %s\n", output, output);
    buf_fini(&b);
    return code;
}

int cmd_init(int argc, const char *const *argv)
{
    struct opts o;
    int code;
    if (!cmd_begin(&o, &page, argc, argv, &code))
        return code;
    struct finds f = {.v = mem_zalloc_n(MAX_FOUND + 1, sizeof(*f.v))};
    code = f.v ? init(&o, &f) : cmd_fail(&page, "out of memory");
    mem_free(f.v);
    opts_fini(&o);
    return code;
}
