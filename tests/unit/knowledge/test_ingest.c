/* test_ingest.c - documents and folders in a collection.  The test is the embedding model: it sees
 * each text that is embedded, and may refuse or wait.  Folders change in random steps, and what the
 * collection has is compared with what is in the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* a member of sink_ops */

#include "base/log.h"
#include "base/thread/executor_queue.h"
#include "flow/dispatch.h"
#include "flow/failure.h"
#include "host/registry.h"
#include "knowledge/folder_sync.h"
#include "support/dice.h"

#define N_FILES 6u
#define N(list) (sizeof(list) / sizeof((list)[0]))

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct collections *collections;
    char dir[64], folder[96];
} site;

/* ---- the model ---- */

static struct {
    char texts[4096]; /* "text|" of each that was embedded */
    uint32_t n_requests, n_dims;
    int code;   /* how it fails; 0: not */
    bool waits; /* until it is cancelled */
    struct flow_job job;
    struct flow_owner *owner;
    struct request *request;
    struct sink *sink;
} model;

static void on_cancel(struct flow_job *j)
{
    (void)j;
    model.sink->job = NULL;
    model.sink->ops->closed(model.sink);
    flow_give_request(model.owner, model.request);
}

static void embed(struct sink *s, const struct request_infer *q)
{
    static const float v[8] = {1};
    const struct sink_start start = {.model = "embedder", .version = "v1"};
    s->ops->start(s, &start);
    for (uint32_t i = 0; i < q->n_inputs; i++) {
        size_t n = strlen(model.texts);
        snprintf(model.texts + n, sizeof(model.texts) - n, "%.*s|", (int)q->inputs[i].text_bytes,
                 q->inputs[i].text);
        struct shoal_result one = {
            .kind = SHOAL_KIND_EMBED, .n_tokens = 3, .vector = v, .n_dims = model.n_dims};
        const struct sink_result e = {.index = i, .result = &one, .last = i + 1 == q->n_inputs};
        s->ops->result(s, &e);
    }
}

static bool take(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, NULL};
    struct failure f;
    (void)d;
    assert_int_equal(r->infer.kind, SHOAL_KIND_EMBED);
    assert_string_equal(r->model, "embedder");
    assert_string_equal(r->client.name, "ann");
    assert_string_equal(r->id, "id-1");
    assert_int_equal(r->priority, -3);
    size_t bytes = 0;
    for (uint32_t i = 0; i < r->infer.n_inputs; i++)
        bytes += r->infer.inputs[i].text_bytes;
    assert_int_equal(r->input_bytes, bytes);
    assert_true(r->infer.n_inputs <= 64);
    model.n_requests++;
    if (model.waits) {
        model.job.ops = &ops;
        model.owner = o;
        model.request = r;
        model.sink = s;
        s->job = &model.job;
        return true;
    }
    if (model.code) {
        failure_of(&f, model.code, "the model refuses");
        s->ops->fail(s, &f);
    } else
        embed(s, &r->infer);
    s->ops->closed(s);
    flow_give_request(o, r);
    return true;
}

static const struct embedding_who who = {.client = {.name = "ann"}, .id = "id-1", .priority = -3};

/* ---- the collection ---- */

/* Names of all documents, each with a '|' behind it. */
static void docs_of(char *out, size_t cap)
{
    struct collection *c;
    struct arena a;
    const char **names;
    uint32_t n;
    struct err e;
    arena_init(&a, 1 << 20);
    assert_int_equal(collections_hold(site.collections, "docs", &c, &e), 0);
    assert_int_equal(collection_docs(c, "", 1000, &a, &names, &n, &e), 0);
    out[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        snprintf(out + strlen(out), cap - strlen(out), "%s|", names[i]);
    collections_release(site.collections, c);
    arena_fini(&a);
}

static uint64_t n_chunks(void)
{
    struct collection *c;
    struct collection_info info;
    struct err e;
    assert_int_equal(collections_hold(site.collections, "docs", &c, &e), 0);
    assert_int_equal(collection_info(c, &info, &e), 0);
    collections_release(site.collections, c);
    return info.n_chunks;
}

/* ---- one document ---- */

static struct {
    uint32_t n_done, n_progress, at, all;
    bool failed;
    struct failure why;
} told;

static void on_done(struct ingest *x, const struct failure *f)
{
    (void)x;
    told.n_done++;
    told.failed = f != NULL;
    if (f)
        told.why = *f;
}

static void on_progress(struct ingest *x, uint32_t n, uint32_t all)
{
    (void)x;
    assert_true(n <= all && n >= told.at);
    told.n_progress++;
    told.at = n;
    told.all = all;
}

/* Runs until it is done, or as far as a model that waits. */
static void run(struct ingest *x)
{
    memset(&told, 0, sizeof(told));
    model.texts[0] = '\0';
    model.n_requests = 0;
    model.sink = NULL;
    ingest_run(x);
    while (told.n_done == 0 && !model.sink)
        assert_true(executor_queue_run(&site.executor));
}

static struct ingest document(const char *name, const char *title, enum doc_format format,
                              const char *text)
{
    return (struct ingest){.owner = &site.owner,
                           .who = who,
                           .collections = site.collections,
                           .collection = "docs",
                           .name = name,
                           .title = title,
                           .format = format,
                           .bytes = text,
                           .n_bytes = strlen(text),
                           .done = on_done,
                           .progress = on_progress};
}

static struct ingest add(const char *name, const char *title, enum doc_format format,
                         const char *text)
{
    struct ingest x = document(name, title, format, text);
    run(&x);
    assert_int_equal(told.n_done, 1);
    assert_int_equal(site.owner.n_jobs, 0);
    return x;
}

static void title_of(const char *query, char *out, size_t cap)
{
    const struct collection_query q = {.text = query, .n_results = 1};
    struct collection *c;
    struct collection_hit *hits;
    struct arena a;
    uint32_t n;
    struct err e;
    arena_init(&a, 1 << 20);
    assert_int_equal(collections_hold(site.collections, "docs", &c, &e), 0);
    assert_int_equal(collection_search(c, &q, &a, &hits, &n, &e), 0);
    assert_int_equal(n, 1);
    snprintf(out, cap, "%s", hits[0].title);
    collections_release(site.collections, c);
    arena_fini(&a);
}

/* The model reads a passage with its heading, else with the title; the same bytes are not read
 * twice, others replace them. */
static void test_a_document(void **state)
{
    char names[256], title[64];
    (void)state;
    struct ingest x = add("a.txt", NULL, DOC_TEXT, "Pumps need oil.");
    assert_false(told.failed);
    assert_false(x.unchanged);
    assert_int_equal(x.n_chunks, 1);
    assert_int_equal(x.n_tokens, 3);
    assert_int_equal(told.n_progress, 1);
    assert_int_equal(told.at, 1);
    assert_int_equal(told.all, 1);
    assert_string_equal(model.texts, "Pumps need oil.: Pumps need oil.|"); /* its title first */
    x = add("a.txt", NULL, DOC_TEXT, "Pumps need oil.");
    assert_true(x.unchanged);
    assert_int_equal(model.n_requests, 0);
    assert_int_equal(n_chunks(), 1);
    x = add("a.txt", NULL, DOC_MARKDOWN, "Pumps need oil."); /* another reading of these bytes */
    assert_false(x.unchanged);
    assert_int_equal(n_chunks(), 1);
    x = add("b.md", NULL, DOC_MARKDOWN, "# Valves\n\nThey open.\n\n## Seals\n\nThey leak.\n");
    assert_int_equal(x.n_chunks, 2);
    assert_int_equal(x.n_tokens, 6);
    assert_int_equal(model.n_requests, 1);
    assert_non_null(strstr(model.texts, "Valves: They open.|"));
    assert_non_null(strstr(model.texts, "Seals: They leak.|"));
    assert_int_equal(n_chunks(), 3);
    docs_of(names, sizeof(names));
    assert_string_equal(names, "a.txt|b.md|");
    title_of("leak", title, sizeof(title));
    assert_string_equal(title, "Valves");
    add("b.md", "Mine", DOC_MARKDOWN, "# Valves\n\nThey leak.\n");
    title_of("leak", title, sizeof(title));
    assert_string_equal(title, "Mine");
    add("b.md", "", DOC_MARKDOWN, "# Valves\n\nThey leak oil.\n");
    title_of("leak", title, sizeof(title));
    assert_string_equal(title, "Valves");
}

/* More texts than one request takes. */
static void test_a_long_document(void **state)
{
    static char text[1 << 14];
    (void)state;
    for (int i = 0; i < 150; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "# H%d\n\nWord %d.\n\n", i, i);
    struct ingest x = add("long.md", NULL, DOC_MARKDOWN, text);
    assert_false(told.failed);
    assert_int_equal(x.n_chunks, 150);
    assert_int_equal(x.n_tokens, 450);
    assert_int_equal(model.n_requests, 3);
    assert_int_equal(told.n_progress, 3);
    assert_int_equal(told.at, 150);
    assert_int_equal(n_chunks(), 150);
}

/* A failure says why and leaves the collection as it was. */
static void test_failures(void **state)
{
    static const struct {
        const char *collection, *text, *why;
        uint64_t max_chunks;
        int code, want;
        uint32_t n_dims;
    } rows[] = {
        {"none", "Text.", "none", 0, 0, SHOAL_ENOTFOUND, 8},
        {"docs", " \n ", "x.md has no text", 0, 0, SHOAL_EFORMAT, 8},
        {"docs", "Text.", "the model refuses", 0, SHOAL_EBUSY, SHOAL_EBUSY, 8},
        {"docs", "Text.", "no room for the vectors", 0, 0, SHOAL_EINTERNAL, 0},
        {"docs", "# A\n\nOne.\n\n# B\n\nTwo.\n", "passages", 1, 0, SHOAL_ELIMIT, 8},
        {"docs", "Text.", "dim", 0, 0, SHOAL_EINVAL, 4}, /* another model than before */
    };
    (void)state;
    add("first.txt", NULL, DOC_TEXT, "First.");
    for (size_t i = 0; i < N(rows); i++) {
        struct ingest x = document("x.md", NULL, DOC_MARKDOWN, rows[i].text);
        x.collection = rows[i].collection;
        x.max_chunks = rows[i].max_chunks;
        model.code = rows[i].code;
        model.n_dims = rows[i].n_dims;
        run(&x);
        assert_true(told.failed);
        assert_int_equal(told.why.code, rows[i].want);
        if (!strstr(told.why.message, rows[i].why))
            print_error("%zu: %s\n", i, told.why.message);
        assert_non_null(strstr(told.why.message, rows[i].why));
        assert_int_equal(n_chunks(), 1);
        assert_int_equal(site.owner.n_jobs, 0);
    }
}

static void test_a_cancelled_document(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct ingest x = document("x.txt", NULL, DOC_TEXT, "Text.");
        memset(&told, 0, sizeof(told));
        model.waits = late;
        if (late) {
            run(&x);
            assert_int_equal(told.n_done, 0);
            ingest_cancel(&x); /* the model waits */
        } else {
            ingest_run(&x);
            ingest_cancel(&x); /* nothing has come back yet */
            while (told.n_done == 0)
                assert_true(executor_queue_run(&site.executor));
            assert_int_equal(model.n_requests, 0);
        }
        assert_int_equal(told.n_done, 1);
        assert_true(told.failed);
        assert_int_equal(told.why.code, SHOAL_ECANCELLED);
        assert_int_equal(n_chunks(), 0);
        assert_int_equal(site.owner.n_jobs, 0);
    }
}

/* ---- a folder ---- */

static struct {
    uint32_t n_done, n_files, n_failed, n_removed, n_progress;
    char removed[1024], failed[1024];
    bool is_failed;
    struct failure why;
} synced;

static void on_file(struct folder_sync *x, const struct ingest *i, const struct failure *f)
{
    (void)x;
    synced.n_files++;
    synced.n_failed += f != NULL;
    size_t n = strlen(synced.failed);
    if (f)
        snprintf(synced.failed + n, sizeof(synced.failed) - n, "%s|", i->name);
}

static void on_sync_progress(struct folder_sync *x, uint32_t at, uint32_t n, double part,
                             const char *name)
{
    (void)x;
    assert_true(at < n && part >= 0 && part <= 1 && strncmp(name, site.folder, 10) == 0);
    synced.n_progress++;
}

static void on_removed(struct folder_sync *x, const char *name)
{
    (void)x;
    size_t n = strlen(synced.removed);
    snprintf(synced.removed + n, sizeof(synced.removed) - n, "%s|", name);
    synced.n_removed++;
}

static void on_synced(struct folder_sync *x, const struct failure *f)
{
    (void)x;
    synced.n_done++;
    synced.is_failed = f != NULL;
    if (f)
        synced.why = *f;
}

static struct folder_sync folder_sync(void)
{
    return (struct folder_sync){.owner = &site.owner,
                                .who = who,
                                .collections = site.collections,
                                .collection = "docs",
                                .folder = site.folder,
                                .file = on_file,
                                .progress = on_sync_progress,
                                .removed = on_removed,
                                .done = on_synced};
}

static void sync_now(struct folder_sync *x)
{
    memset(&synced, 0, sizeof(synced));
    model.texts[0] = '\0';
    model.n_requests = 0;
    model.sink = NULL;
    folder_sync_run(x);
    while (synced.n_done == 0 && !model.sink)
        assert_true(executor_queue_run(&site.executor));
}

static void write_file(uint32_t i, uint32_t version)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/f%u.txt", site.folder, i);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (uint32_t k = 0; k < version; k++) /* a version has its own size */
        fputs("Oil. ", f);
    fclose(f);
}

/* What the test knows of a file: version 0: it is not there; blank: it has no text. */
struct known {
    uint32_t version, stored;
};

static void test_a_folder_in_random_steps(void **state)
{
    struct known files[N_FILES] = {{0}};
    struct folder_sync x = folder_sync();
    uint32_t version = 1;
    char want[1024], got[1024], path[160];
    (void)state;
    dice_seed(3);
    add("elsewhere.txt", NULL, DOC_TEXT, "Not of the folder.");
    add("zz/f1.txt", NULL, DOC_TEXT, "Nor this.");
    for (int step = 0; step < 60; step++) {
        uint32_t n_changes = dice_below(4), n_new = 0, n_gone = 0, n_here = 0;
        const int codes[] = {0, 0, 0, SHOAL_EBUSY, SHOAL_EINVAL};
        for (uint32_t k = 0; k < n_changes; k++) {
            uint32_t i = dice_below(N_FILES);
            snprintf(path, sizeof(path), "%s/f%u.txt", site.folder, i);
            if (dice_below(3) == 0) {
                unlink(path);
                files[i].version = 0;
            } else
                write_file(i, files[i].version = version++);
        }
        model.code = codes[dice_below(N(codes))];
        sync_now(&x);
        assert_false(synced.is_failed);
        snprintf(want, sizeof(want), "%s", "");
        for (uint32_t i = 0; i < N_FILES; i++) {
            struct known *f = &files[i];
            const bool changed = f->version && f->version != f->stored;
            n_here += f->version > 0;
            n_new += changed;
            n_gone += !f->version && f->stored;
            if (changed && model.code == 0)
                f->stored = f->version;
            if (!f->version)
                f->stored = 0;
            /* a document that could not be replaced is still there */
            if (f->stored)
                snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s/f%u.txt|",
                         site.folder, i);
        }
        snprintf(want + strlen(want), sizeof(want) - strlen(want), "elsewhere.txt|zz/f1.txt|");
        docs_of(got, sizeof(got));
        assert_string_equal(got, want);
        assert_int_equal(x.n_removed, n_gone);
        assert_int_equal(synced.n_removed, n_gone);
        if (model.code != SHOAL_EINVAL) { /* a bad file is not tried again until it changes */
            assert_int_equal(x.n_added, model.code ? 0 : n_new);
            assert_int_equal(x.n_failed, model.code ? n_new : 0);
            assert_int_equal(x.n_unchanged, n_here - n_new);
            assert_int_equal(synced.n_files, n_new);
            assert_int_equal(synced.n_failed, x.n_failed);
            assert_int_equal(model.n_requests, n_new);
            assert_int_equal(x.n_tokens, model.code ? 0 : 3 * x.n_chunks);
        }
        for (uint32_t i = 0; i < N_FILES && model.code == SHOAL_EINVAL; i++)
            if (files[i].version && files[i].version != files[i].stored)
                write_file(i, files[i].version = version++); /* so that all are known again */
        assert_int_equal(site.owner.n_jobs, 0);
    }
    folder_sync_fini(&x);
    folder_sync_fini(&x); /* twice is fine */
}

/* A file that cannot be read now is tried again; one that is bad is not, until it changes. */
static void test_which_files_are_tried_again(void **state)
{
    static const struct {
        int code;
        bool again;
    } rows[] = {{SHOAL_EBUSY, true},
                {SHOAL_ENOMEM, true},
                {SHOAL_EIO, true},
                {SHOAL_EINVAL, false},
                {SHOAL_EFORMAT, false}};
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct folder_sync x = folder_sync();
        write_file(0, 5);
        model.code = rows[i].code;
        sync_now(&x);
        assert_int_equal(x.n_failed, 1);
        assert_non_null(strstr(synced.failed, "/f0.txt|"));
        sync_now(&x);
        assert_int_equal(x.n_failed, rows[i].again);
        assert_int_equal(x.n_unchanged, !rows[i].again);
        folder_sync_fini(&x);
    }
}

/* A folder that cannot be read removes nothing; nor does one that was cancelled. */
static void test_a_folder_that_is_gone(void **state)
{
    struct folder_sync x = folder_sync();
    char path[160], got[512];
    (void)state;
    write_file(0, 1);
    sync_now(&x);
    assert_int_equal(x.n_added, 1);
    snprintf(path, sizeof(path), "%s/f0.txt", site.folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(site.folder), 0);
    sync_now(&x);
    assert_true(synced.is_failed);
    assert_int_equal(synced.why.code, SHOAL_ENOTFOUND);
    assert_int_equal(synced.n_removed, 0);
    docs_of(got, sizeof(got));
    assert_non_null(strstr(got, "f0.txt|"));
    assert_int_equal(mkdir(site.folder, 0700), 0);
    write_file(1, 1);
    model.waits = true;
    sync_now(&x);
    assert_int_equal(synced.n_done, 0);
    folder_sync_cancel(&x);
    while (synced.n_done == 0)
        assert_true(executor_queue_run(&site.executor));
    assert_true(synced.is_failed);
    assert_int_equal(synced.why.code, SHOAL_ECANCELLED);
    assert_int_equal(synced.n_removed, 0);
    docs_of(got, sizeof(got));
    assert_non_null(strstr(got, "f0.txt|"));
    assert_null(strstr(got, "f1.txt|"));
    folder_sync_fini(&x);
}

/* ---- the site ---- */

static int open_site(void **state)
{
    static const struct dispatch_ops ops = {.run = take};
    static struct dispatch dispatch = {&ops};
    const struct registry_opts ro = {.lent_only = true};
    const struct collection_settings s = {.model = "embedder", .max_tokens = 100};
    struct err e;
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    memset(&model, 0, sizeof(model));
    model.n_dims = 8;
    snprintf(site.dir, sizeof(site.dir), "/tmp/test_ingest.XXXXXX");
    if (!mkdtemp(site.dir) || executor_queue_init(&site.executor, NULL) < 0 ||
        collections_open(&site.collections, site.dir, 0, &e) < 0 ||
        collections_make(site.collections, "docs", &s, &e) < 0)
        return -1;
    snprintf(site.folder, sizeof(site.folder), "%s/folder", site.dir);
    site.flow = (struct flow){.pool = NULL};
    assert_int_equal(registry_create(&site.flow.registry, &ro, &e), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.owner.dispatch = &dispatch;
    return mkdir(site.folder, 0700);
}

static int close_site(void **state)
{
    char command[96];
    (void)state;
    collections_close(site.collections);
    registry_destroy(site.flow.registry);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    snprintf(command, sizeof(command), "rm -rf %s", site.dir);
    return system(command);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_site, close_site)
    const struct CMUnitTest tests[] = {
        TEST(test_a_document),
        TEST(test_a_long_document),
        TEST(test_failures),
        TEST(test_a_cancelled_document),
        TEST(test_a_folder_in_random_steps),
        TEST(test_which_files_are_tried_again),
        TEST(test_a_folder_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
