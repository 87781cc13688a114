/* cmd_index.c - shoal index: collections of documents, found by meaning and by words. */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes_text.h"
#include "base/file/file_read.h"
#include "base/file/tree_watch.h"
#include "base/mem.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/index/index_site.h"
#include "knowledge/folder_sync.h"
#include "knowledge/hit_json.h"
#include "knowledge/ingest.h"
#include "knowledge/retrieval.h"

cmd_fn cmd_index_add, cmd_index_query, cmd_index_stats, cmd_index_remove;

#define MAX_OUTPUT_BYTES ((size_t)256 << 20)
#define MAX_FILES 100000u
#define MAX_WATCHED 64u
#define QUIET_MS 300
#define SHOWN_DOCS 20u /* names that stats prints without --all */

static const struct opts_def add_defs[] = {
    {"model", 'm', OPTS_TEXT, "MODEL", "embed", 0, 0,
     "a new collection: the model that embeds its passages"},
    {"chunk-tokens", 0, OPTS_UINT, "N", "160", 16, 8192,
     "a new collection: maximum tokens of a passage"},
    {"overlap", 0, OPTS_UINT, "N", "32", 0, 4096,
     "a new collection: tokens repeated from the previous passage"},
    {"format", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "text, markdown, html, jsonl or pdf; default: by file extension"},
    {"name", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "name of the document in the collection; default: the path.  Only for one file"},
    {"title", 0, OPTS_TEXT, "TEXT", NULL, 0, 0, "title; default: the document's own"},
    {"watch", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "folders: go on adding, replacing and removing documents with their files, until Ctrl-C"},
};
static const struct opts_def query_defs[] = {
    {"top", 'n', OPTS_UINT, "N", "5", 1, COLLECTION_MAX_HITS, "how many passages"},
    {"by", 0, OPTS_CHOICE, "both|meaning|words", "both", 0, 0, "how to search"},
    {"rerank", 0, OPTS_TEXT, "MODEL", NULL, 0, 0,
     "a cross-encoder that reads query and passage together and re-sorts them"},
};
static const struct opts_def stats_defs[] = {
    {"all", 0, OPTS_FLAG, NULL, NULL, 0, 0, "name all documents, not only the first 20"},
};
static const struct opts_def remove_defs[] = {
    {"all", 0, OPTS_FLAG, NULL, NULL, 0, 0, "remove the whole collection and its file"},
};

static const struct opts_page add_page = {
    .command = "index add",
    .arguments = "COLLECTION FILE|FOLDER...",
    .min_args = 2,
    .max_args = MAX_FILES,
    .summary = "Adds documents to a collection, or replaces them.",
    .details = "A missing collection is created.  A file that is already there with the same bytes "
               "is skipped.\nA folder stands for the documents in it and below it (text, Markdown, "
               "HTML, JSON lines, PDF): files\nthat are gone leave the collection, and one that "
               "cannot be read is reported (exit code 3).\nJSON lines have \"text\", and may have "
               "\"id\", \"title\" and "
               "\"page\".  PDF needs pdftotext (poppler-utils).",
    .groups = {OPTS_GROUP("Documents", add_defs), &index_site_group, &index_site_model_group},
    .examples = "  shoal index add manuals pump.pdf notes.md\n"
                "  shoal index add manuals ~/manuals --watch\n"
                "  shoal index add faq --format jsonl questions.txt\n"
                "  cat report.txt | shoal index add reports --name today -\n",
};
static const struct opts_page query_page = {
    .command = "index query",
    .arguments = "COLLECTION QUERY",
    .min_args = 2,
    .max_args = 2,
    .summary = "Finds the passages of a collection that best match a query.",
    .details = "Two rankings, by meaning (vectors) and by words, are fused by reciprocal rank.",
    .groups = {OPTS_GROUP("Search", query_defs), &index_site_group, &index_site_model_group},
    .examples = "  shoal index query manuals \"the pump is too hot\"\n"
                "  shoal index query manuals --by words -n 10 --json \"error E42\"\n",
};
static const struct opts_page stats_page = {
    .command = "index stats",
    .arguments = "[COLLECTION]",
    .max_args = 1,
    .summary = "Shows the collections, or one of them with its documents.",
    .groups = {OPTS_GROUP("What", stats_defs), &index_site_group},
    .examples = "  shoal index stats\n  shoal index stats manuals --all\n"
                "  shoal index stats manuals --json\n",
};
static const struct opts_page remove_page = {
    .command = "index remove",
    .arguments = "COLLECTION [DOCUMENT...]",
    .min_args = 1,
    .max_args = MAX_FILES,
    .summary = "Removes documents from a collection, or the collection itself.",
    .groups = {OPTS_GROUP("What", remove_defs), &index_site_group},
    .examples = "  shoal index remove manuals pump.pdf\n  shoal index remove manuals --all\n",
};

/* ---- add ---- */

struct adding {
    struct index_site *site;
    struct ingest ingest;
    struct term_progress bar;
    bool over;
    int exit_code;
    struct buf out;
    uint32_t n_added, n_unchanged, n_removed, n_failed;
    uint64_t n_chunks;
    struct index_folder *folders;
    uint32_t n_folders;
};

static void put_added(struct adding *a, const struct ingest *x)
{
    if (!opts_flag(a->site->o, "json"))
        return;
    struct json_out j = json_out_make(&a->out);
    json_out_object(&j);
    json_out_member_str(&j, "document", x->name);
    json_out_member_uint(&j, "passages", x->n_chunks);
    json_out_member_uint(&j, "tokens", x->n_tokens);
    json_out_member_bool(&j, "unchanged", x->unchanged);
    json_out_object_end(&j);
    buf_putc(&a->out, '\n');
}

static void on_added(struct ingest *x, const struct failure *f)
{
    struct adding *a = EXECUTOR_OF(x, struct adding, ingest);
    a->over = true;
    term_progress_end(&a->bar);
    if (f) {
        a->exit_code =
            a->site->interrupted ? CMD_INTERRUPTED : cmd_fail(a->site->o->page, "%s", f->message);
        return;
    }
    a->n_added += !x->unchanged;
    a->n_unchanged += x->unchanged;
    a->n_chunks += x->n_chunks;
    put_added(a, x);
}

static void on_progress(struct ingest *x, uint32_t n, uint32_t all)
{
    struct adding *a = EXECUTOR_OF(x, struct adding, ingest);
    term_progress_show(&a->bar, (double)n / all, x->name);
}

static void cancel_adding(void *ctx)
{
    ingest_cancel(&((struct adding *)ctx)->ingest);
}

static int add_file(struct adding *a, const char *collection, const char *path)
{
    const struct opts *o = a->site->o;
    const char *name = opts_text(o, "name"), *format = opts_text(o, "format");
    enum doc_format f = doc_format_of(path);
    struct buf bytes;
    struct err e = {0};
    if (format && !doc_format_find(format, &f))
        return opts_usage(o->page, "unknown format '%s': text, markdown, html, jsonl or pdf",
                          format);
    buf_init(&bytes, DOC_MAX_BYTES);
    if (file_read(path, &bytes, &e) < 0) {
        buf_fini(&bytes);
        return cmd_fail(o->page, "%s", e.msg);
    }
    a->ingest = (struct ingest){.owner = &a->site->local.owner,
                                .collections = a->site->collections,
                                .collection = collection,
                                .name = name ? name : path,
                                .title = opts_text(o, "title"),
                                .format = f,
                                .bytes = buf_str(&bytes),
                                .n_bytes = bytes.len,
                                .done = on_added,
                                .progress = on_progress};
    a->over = false;
    term_progress_init(&a->bar, "embedding");
    ingest_run(&a->ingest);
    index_site_run(a->site, &a->over, cancel_adding, a);
    buf_fini(&bytes);
    return a->exit_code;
}

/* ---- folders ---- */

struct index_folder {
    struct folder_sync sync;
    struct adding *adding;
    struct tree_watch *watch; /* with --watch */
    char *path;
};

static void on_file(struct folder_sync *x, const struct ingest *i, const struct failure *f)
{
    struct adding *a = EXECUTOR_OF(x, struct index_folder, sync)->adding;
    if (!f) {
        put_added(a, i);
        return;
    }
    term_progress_end(&a->bar);
    fprintf(stderr, "shoal index add: %s is left out: %s\n", i->name, f->message);
}

static void on_removed(struct folder_sync *x, const char *name)
{
    struct adding *a = EXECUTOR_OF(x, struct index_folder, sync)->adding;
    if (!opts_flag(a->site->o, "json"))
        return;
    struct json_out j = json_out_make(&a->out);
    json_out_object(&j);
    json_out_member_str(&j, "document", name);
    json_out_member_bool(&j, "removed", true);
    json_out_object_end(&j);
    buf_putc(&a->out, '\n');
}

static void on_folder_progress(struct folder_sync *x, uint32_t at, uint32_t n, double part,
                               const char *name)
{
    struct adding *a = EXECUTOR_OF(x, struct index_folder, sync)->adding;
    char note[256];
    snprintf(note, sizeof(note), "%u of %u files: %s", at + 1, n, name);
    term_progress_show(&a->bar, (at + part) / n, note);
}

static void on_folder(struct folder_sync *x, const struct failure *f)
{
    struct adding *a = EXECUTOR_OF(x, struct index_folder, sync)->adding;
    a->over = true;
    term_progress_end(&a->bar);
    a->n_added += x->n_added;
    a->n_unchanged += x->n_unchanged;
    a->n_removed += x->n_removed;
    a->n_failed += x->n_failed;
    a->n_chunks += x->n_chunks;
    if (f)
        a->exit_code =
            a->site->interrupted ? CMD_INTERRUPTED : cmd_fail(a->site->o->page, "%s", f->message);
}

static void cancel_folder(void *ctx)
{
    folder_sync_cancel(&((struct index_folder *)ctx)->sync);
}

static int sync_folder(struct adding *a, struct index_folder *f)
{
    a->over = false;
    term_progress_init(&a->bar, "adding");
    folder_sync_run(&f->sync);
    index_site_run(a->site, &a->over, cancel_folder, f);
    return a->exit_code;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int add_folder(struct adding *a, const char *collection, const char *path)
{
    const struct opts *o = a->site->o;
    struct err e = {0};
    static const char *const of_files[] = {"name", "title", "format"};
    for (size_t i = 0; i < sizeof(of_files) / sizeof(of_files[0]); i++)
        if (opts_text(o, of_files[i]))
            return opts_usage(o->page, "--%s is for a file, and %s is a folder", of_files[i], path);
    struct index_folder *f = &a->folders[a->n_folders++];
    f->adding = a;
    f->path = mem_strdup(path);
    if (!f->path)
        return cmd_fail(o->page, "out of memory");
    for (size_t n = strlen(f->path); n > 1 && f->path[n - 1] == '/'; n--)
        f->path[n - 1] = '\0';
    f->sync = (struct folder_sync){.owner = &a->site->local.owner,
                                   .collections = a->site->collections,
                                   .collection = collection,
                                   .folder = f->path,
                                   .file = on_file,
                                   .progress = on_folder_progress,
                                   .removed = on_removed,
                                   .done = on_folder};
    /* before it is read, so that no change is missed */
    if (opts_flag(o, "watch") && tree_watch_open(&f->watch, f->path, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return sync_folder(a, f);
}

static int put_summary(struct adding *a)
{
    if (!opts_flag(a->site->o, "json")) {
        buf_printf(&a->out, "%u added (%" PRIu64 " passage%s), %u unchanged", a->n_added,
                   a->n_chunks, plural(a->n_chunks), a->n_unchanged);
        if (a->n_removed > 0)
            buf_printf(&a->out, ", %u removed", a->n_removed);
        if (a->n_failed > 0)
            buf_printf(&a->out, ", %u left out", a->n_failed);
        buf_putc(&a->out, '\n');
    }
    int rc = cmd_print(a->site->o->page, &a->out);
    buf_clear(&a->out);
    fflush(stdout);
    return rc;
}

/* Waits for changes; false: Ctrl-C. */
static bool wait_for_change(struct adding *a)
{
    struct pollfd fds[MAX_WATCHED + 1] = {{.fd = a->site->interrupt_fd, .events = POLLIN}};
    for (uint32_t i = 0; i < a->n_folders; i++)
        fds[i + 1] = (struct pollfd){.fd = tree_watch_fd(a->folders[i].watch), .events = POLLIN};
    bool changed = false;
    for (;;) { /* until nothing happens for a moment: copies of many files are one change */
        int n = poll(fds, a->n_folders + 1, changed ? QUIET_MS : -1);
        if (n < 0 || fds[0].revents)
            return false;
        if (n == 0)
            return true;
        for (uint32_t i = 0; i < a->n_folders; i++)
            changed |= fds[i + 1].revents && tree_watch_changed(a->folders[i].watch);
    }
}

/* Until Ctrl-C, which is how it ends. */
static int follow(struct adding *a)
{
    int rc = CMD_OK;
    fprintf(stderr, "watching: Ctrl-C ends it\n");
    while (rc == CMD_OK && wait_for_change(a)) {
        a->n_added = a->n_unchanged = a->n_removed = a->n_failed = 0;
        a->n_chunks = 0;
        for (uint32_t i = 0; i < a->n_folders && rc == CMD_OK; i++)
            rc = sync_folder(a, &a->folders[i]);
        if (rc == CMD_OK && a->n_added + a->n_removed + a->n_failed > 0)
            rc = put_summary(a);
    }
    return rc == CMD_INTERRUPTED ? CMD_OK : rc;
}

static int add_all(struct adding *a, const struct opts *o)
{
    uint32_t n = 0;
    int rc = CMD_OK;
    for (size_t i = 1; i < o->n_args; i++)
        n += is_folder(o->args[i]);
    if (opts_flag(o, "watch") && (n == 0 || n > MAX_WATCHED))
        return opts_usage(o->page, "--watch needs 1 to %u folders", MAX_WATCHED);
    a->folders = mem_zalloc_n(n + 1, sizeof(*a->folders));
    if (!a->folders)
        return cmd_fail(o->page, "out of memory");
    for (size_t i = 1; i < o->n_args && rc == CMD_OK; i++)
        rc = is_folder(o->args[i]) ? add_folder(a, o->args[0], o->args[i])
                                   : add_file(a, o->args[0], o->args[i]);
    if (rc != CMD_OK) {
        (void)!cmd_print(o->page, &a->out); /* what was added before */
        return rc;
    }
    rc = put_summary(a);
    if (rc == CMD_OK && opts_flag(o, "watch"))
        return follow(a);
    return rc == CMD_OK && a->n_failed > 0 ? CMD_NOT_WELL : rc;
}

static void adding_fini(struct adding *a)
{
    for (uint32_t i = 0; i < a->n_folders; i++) {
        folder_sync_fini(&a->folders[i].sync);
        tree_watch_close(a->folders[i].watch);
        mem_free(a->folders[i].path);
    }
    mem_free(a->folders);
    buf_fini(&a->out);
}

/* Creates a missing collection. */
static int make_if_missing(struct index_site *s, const char *name)
{
    const struct collection_settings set = {.model = opts_text(s->o, "model"),
                                            .max_tokens = opts_u32(s->o, "chunk-tokens"),
                                            .overlap = opts_u32(s->o, "overlap")};
    struct collection *c = NULL;
    struct err e = {0};
    int rc = collections_hold(s->collections, name, &c, &e);
    collections_release(s->collections, c);
    if (rc == SHOAL_ENOTFOUND) {
        if (set.overlap * 2 >= set.max_tokens)
            return opts_usage(s->o->page, "--overlap must be less than half of --chunk-tokens");
        rc = collections_make(s->collections, name, &set, &e);
    } else if (rc == 0 && (opts_given(s->o, "model") || opts_given(s->o, "chunk-tokens") ||
                           opts_given(s->o, "overlap"))) {
        struct collection_info info;
        if (index_site_info(s, name, &info) != CMD_OK)
            return CMD_FAILED;
        if (opts_given(s->o, "model") && strcmp(info.model, set.model) != 0)
            return cmd_fail(
                s->o->page,
                "the passages of '%s' are embedded by %s: create another collection for %s", name,
                info.model, set.model);
    }
    return rc < 0 ? cmd_fail(s->o->page, "%s", e.msg) : CMD_OK;
}

int cmd_index_add(int argc, const char *const *argv)
{
    struct opts o;
    struct index_site s;
    struct collection_info info = {.model = ""};
    int rc;
    if (!cmd_begin(&o, &add_page, argc, argv, &rc))
        return rc;
    if (opts_text(&o, "name") && o.n_args > 2) {
        rc = opts_usage(&add_page, "--name is for one file");
        opts_fini(&o);
        return rc;
    }
    rc = index_site_open(&s, &o);
    if (rc == CMD_OK)
        rc = make_if_missing(&s, o.args[0]);
    if (rc == CMD_OK)
        rc = index_site_info(&s, o.args[0], &info);
    if (rc == CMD_OK)
        rc = index_site_lend(&s, info.model);
    struct adding a = {.site = &s};
    buf_init(&a.out, MAX_OUTPUT_BYTES);
    if (rc == CMD_OK)
        rc = add_all(&a, &o);
    adding_fini(&a);
    index_site_close(&s);
    opts_fini(&o);
    return rc;
}

/* ---- query ---- */

struct asking {
    struct retrieval retrieval;
    struct index_site *site;
    bool over;
    int exit_code;
};

static void print_hit(struct buf *b, uint32_t i, const struct collection_hit *h)
{
    buf_printf(b, "%u. [%" PRId64 "] %s", i + 1, h->id, h->doc);
    if (h->page)
        buf_printf(b, ", page %u", h->page);
    if (h->heading[0])
        buf_printf(b, ": %s", h->heading);
    buf_printf(b, "  (score %.4f", h->score);
    if (!isnan(h->similarity))
        buf_printf(b, ", similarity %.3f", (double)h->similarity);
    buf_puts(b, ")\n   ");
    for (const char *p = h->text; *p; p++) /* one paragraph, indented */
        if (*p == '\n')
            buf_puts(b, "\n   ");
        else
            buf_putc(b, *p);
    buf_puts(b, "\n");
}

static void on_found(struct retrieval *x, const struct failure *f)
{
    struct asking *a = EXECUTOR_OF(x, struct asking, retrieval);
    struct buf b;
    a->over = true;
    if (f) {
        a->exit_code =
            a->site->interrupted ? CMD_INTERRUPTED : cmd_fail(a->site->o->page, "%s", f->message);
        return;
    }
    buf_init(&b, MAX_OUTPUT_BYTES);
    for (uint32_t i = 0; i < x->n_hits; i++) {
        if (!opts_flag(a->site->o, "json")) {
            print_hit(&b, i, &x->hits[i]);
            continue;
        }
        struct json_out j = json_out_make(&b);
        hit_json_put(&j, &x->hits[i], true);
        buf_putc(&b, '\n');
    }
    if (x->n_hits == 0 && !opts_flag(a->site->o, "json"))
        fprintf(stderr, "nothing was found\n");
    a->exit_code = cmd_print(a->site->o->page, &b);
    buf_fini(&b);
}

static void cancel_asking(void *ctx)
{
    retrieval_cancel(&((struct asking *)ctx)->retrieval);
}

int cmd_index_query(int argc, const char *const *argv)
{
    struct opts o;
    struct index_site s;
    struct collection_info info = {.model = ""};
    struct asking a = {.site = &s};
    int rc;
    if (!cmd_begin(&o, &query_page, argc, argv, &rc))
        return rc;
    rc = index_site_open(&s, &o);
    a.retrieval = (struct retrieval){.owner = &s.local.owner,
                                     .collections = s.collections,
                                     .collection = o.args[0],
                                     .query = o.args[1],
                                     .n_results = opts_u32(&o, "top"),
                                     .reranker = opts_text(&o, "rerank"),
                                     .done = on_found};
    if (rc == CMD_OK && !retrieval_mode_find(opts_text(&o, "by"), &a.retrieval.mode))
        rc = CMD_USAGE;
    if (rc == CMD_OK)
        rc = index_site_info(&s, o.args[0], &info);
    if (rc == CMD_OK && a.retrieval.mode != RETRIEVAL_WORDS)
        rc = index_site_lend(&s, info.model);
    if (rc == CMD_OK && a.retrieval.reranker)
        rc = index_site_lend(&s, a.retrieval.reranker);
    if (rc == CMD_OK) {
        retrieval_run(&a.retrieval);
        index_site_run(&s, &a.over, cancel_asking, &a);
        rc = a.exit_code;
        retrieval_fini(&a.retrieval);
    }
    index_site_close(&s);
    opts_fini(&o);
    return rc;
}

/* ---- stats ---- */

/* most: how many names; j NULL: as text. */
static int put_docs(struct index_site *s, const char *name, uint64_t most, struct buf *b,
                    struct json_out *j)
{
    struct collection *c = NULL;
    struct arena arena;
    const char **names, *after = "";
    uint32_t n = 1;
    uint64_t shown = 0;
    struct err e = {0};
    int rc = collections_hold(s->collections, name, &c, &e);
    while (rc == 0 && n > 0 && shown < most) {
        arena_init(&arena, (size_t)16 << 20);
        rc = collection_docs(c, after, 1000, &arena, &names, &n, &e);
        for (uint32_t i = 0; i < n && rc == 0 && shown < most; i++, shown++)
            if (j)
                json_out_str(j, names[i]);
            else
                buf_printf(b, "  %s\n", names[i]);
        char *last = rc == 0 && n > 0 ? mem_strdup(names[n - 1]) : NULL;
        if (after[0])
            mem_free((char *)(uintptr_t)after);
        after = last ? last : "";
        arena_fini(&arena);
    }
    if (after[0])
        mem_free((char *)(uintptr_t)after);
    collections_release(s->collections, c);
    return rc < 0 ? cmd_fail(s->o->page, "%s", e.msg) : CMD_OK;
}

static int put_stats(struct index_site *s, const char *name, bool docs, struct buf *b)
{
    struct collection_info info;
    char bytes[32];
    int rc = index_site_info(s, name, &info);
    if (rc != CMD_OK)
        return rc;
    if (opts_flag(s->o, "json")) {
        struct json_out j = json_out_make(b);
        json_out_object(&j);
        hit_json_info(&j, name, &info);
        if (docs) {
            json_out_member_array(&j, "names");
            rc = put_docs(s, name, UINT64_MAX, b, &j);
            json_out_array_end(&j);
        }
        json_out_object_end(&j);
        buf_putc(b, '\n');
        return rc;
    }
    bytes_text(bytes, (double)info.file_bytes);
    buf_printf(b, "%-24s %6" PRIu64 " document%-1s %8" PRIu64 " passage%-1s %10s  %s\n", name,
               info.n_docs, plural(info.n_docs), info.n_chunks, plural(info.n_chunks), bytes,
               info.model);
    const bool all = docs && (opts_flag(s->o, "all") || info.n_docs <= SHOWN_DOCS);
    if (docs)
        rc = put_docs(s, name, all ? UINT64_MAX : SHOWN_DOCS, b, NULL);
    if (docs && !all)
        buf_printf(b, "  and %" PRIu64 " more: --all names them\n", info.n_docs - SHOWN_DOCS);
    return rc;
}

int cmd_index_stats(int argc, const char *const *argv)
{
    struct opts o;
    struct index_site s;
    struct arena arena;
    struct buf b;
    const char **names = NULL;
    struct err e = {0};
    uint32_t n = 0;
    int rc;
    if (!cmd_begin(&o, &stats_page, argc, argv, &rc))
        return rc;
    rc = index_site_open(&s, &o);
    arena_init(&arena, (size_t)4 << 20);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (rc == CMD_OK && o.n_args == 1)
        rc = put_stats(&s, o.args[0], true, &b);
    else if (rc == CMD_OK && collections_list(s.collections, &arena, &names, &n, &e) < 0)
        rc = cmd_fail(&stats_page, "%s", e.msg);
    for (uint32_t i = 0; i < n && rc == CMD_OK; i++)
        rc = put_stats(&s, names[i], false, &b);
    if (rc == CMD_OK && o.n_args == 0 && n == 0 && !opts_flag(&o, "json"))
        fprintf(stderr, "there are no collections: create one with 'shoal index add'\n");
    if (rc == CMD_OK)
        rc = cmd_print(&stats_page, &b);
    buf_fini(&b);
    arena_fini(&arena);
    index_site_close(&s);
    opts_fini(&o);
    return rc;
}

/* ---- remove ---- */

static int remove_docs(struct index_site *s, const struct opts *o)
{
    struct collection *c = NULL;
    struct err e = {0};
    int rc = collections_hold(s->collections, o->args[0], &c, &e);
    for (size_t i = 1; i < o->n_args && rc == 0; i++)
        rc = collection_remove(c, o->args[i], &e);
    collections_release(s->collections, c);
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}

int cmd_index_remove(int argc, const char *const *argv)
{
    struct opts o;
    struct index_site s;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &remove_page, argc, argv, &rc))
        return rc;
    bool all = opts_flag(&o, "all");
    if (all == (o.n_args > 1)) {
        rc = opts_usage(&remove_page, "name the documents to remove, or use --all");
        opts_fini(&o);
        return rc;
    }
    rc = index_site_open(&s, &o);
    if (rc == CMD_OK && !all)
        rc = remove_docs(&s, &o);
    else if (rc == CMD_OK && collections_delete(s.collections, o.args[0], &e) < 0)
        rc = cmd_fail(&remove_page, "%s", e.msg);
    index_site_close(&s);
    opts_fini(&o);
    return rc;
}
