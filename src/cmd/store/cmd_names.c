/* cmd_names.c - shoal list, show, rm, cp, gc and shoal store tag: the models of the store by name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes_text.h"
#include "base/plural.h"
#include "cmd/local/stored.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"
#include "host/pack.h"
#include "wire/json_out.h"

cmd_fn cmd_list, cmd_show, cmd_rm, cmd_cp, cmd_store_tag, cmd_gc;

#define MAX_OUTPUT_BYTES ((size_t)64 << 20)
#define HEX_BYTES (2u * SHA256_BYTES + 1u)
#define GC_SPARE_S 600u

static const struct opts_def defs[] = {
    STORED_DIR_DEF,
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};
static const struct opts_def gc_defs[] = {
    {"all", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "also what was used within the last ten minutes; only while nothing is pulled"},
};

static const struct opts_page list_page = {
    .command = "list",
    .arguments = "",
    .summary = "Lists the models that were pulled, and those that come with Shoal.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal list\n  shoal list --json\n",
};
static const struct opts_page show_page = {
    .command = "show",
    .arguments = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Shows what is known about a model: of the store, or one that comes with Shoal.",
    .details = "shoal model show has what is in a model's file.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal show reply\n"
                "  shoal show smollm2\n",
};
static const struct opts_page rm_page = {
    .command = "rm",
    .arguments = "MODEL...",
    .min_args = 1,
    .max_args = 1024,
    .summary = "Removes names, and the models that have no other name.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal rm smollm2\n",
};
static const struct opts_page cp_page = {
    .command = "cp",
    .arguments = "MODEL NAME",
    .min_args = 2,
    .max_args = 2,
    .summary = "Gives a model of the store a second name; its files are not copied.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cp smollm2 assistant\n",
};
static const struct opts_page tag_page = {
    .command = "store tag",
    .arguments = "MODEL TAG",
    .min_args = 2,
    .max_args = 2,
    .summary = "Gives a model of the store another tag: smollm2:135m also becomes smollm2:TAG.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal store tag smollm2:135m-instruct prod\n",
};
static const struct opts_page gc_page = {
    .command = "gc",
    .arguments = "",
    .summary = "Removes models without a name, and leftovers of interrupted pulls.",
    .details = "A model that a running node serves stays; one that a node will need again is "
               "fetched again.",
    .groups = {OPTS_GROUP("Options", defs), OPTS_GROUP("What", gc_defs)},
    .examples = "  shoal gc\n",
};

static int print_buf(const struct opts *o, struct buf *b)
{
    int rc = b->rc < 0 ? cmd_fail(o->page, "%s", err_text(b->rc)) : cmd_print(o->page, b);
    buf_fini(b);
    return rc;
}

/* ---- list ---- */

struct listing {
    const struct opts *o;
    struct model_store *store;
    struct buf b;
    struct json_out j;
    bool json;
};

static void put_row(struct listing *l, const char *name, const uint8_t *sum, uint64_t bytes,
                    uint64_t added_s, const char *source, const char *state, const char *signer)
{
    char hex[HEX_BYTES] = "", size[32], when[24] = "-";
    struct tm tm;
    time_t t = (time_t)added_s;
    if (sum)
        sha256_hex(hex, sum);
    if (l->json) {
        json_out_object(&l->j);
        json_out_member_str(&l->j, "name", name);
        json_out_member_str(&l->j, "sha256", hex);
        json_out_member_uint(&l->j, "bytes", bytes);
        json_out_member_uint(&l->j, "added_s", added_s);
        json_out_member_str(&l->j, "source", source);
        json_out_member_str(&l->j, "state", state);
        if (signer)
            json_out_member_str(&l->j, "signer", signer);
        json_out_object_end(&l->j);
        return;
    }
    if (added_s && gmtime_r(&t, &tm))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
    buf_printf(&l->b, "%-32s %-12.12s %10s  %-16s  %s%s%s\n", name, hex[0] ? hex : "-",
               bytes_text(size, (double)bytes), when, source,
               strcmp(state, "ready") == 0 ? "" : ", ", strcmp(state, "ready") == 0 ? "" : state);
}

static void put_ref(void *ctx, const struct model_ref *ref)
{
    struct listing *l = ctx;
    struct model_manifest m;
    char path[PATH_MAX];
    model_manifest_init(&m);
    bool there = ref->stored && model_store_find(l->store, ref->sha256, path, NULL) == 0 &&
                 model_store_manifest(l->store, ref->sha256, &m, NULL) == 0;
    put_row(l, ref->name, ref->stored ? ref->sha256 : NULL, there ? model_manifest_bytes(&m) : 0,
            ref->added_s,
            ref->source ? ref->source
            : ref->path ? ref->path
                        : "",
            there || !ref->stored ? "ready" : "missing", ref->signer);
    model_manifest_fini(&m);
}

static void put_pack(struct listing *l)
{
    struct pack *p = NULL;
    if (pack_open(&p, NULL, NULL) < 0)
        return;
    for (uint32_t i = 0; i < p->n_models; i++) {
        uint64_t bytes = 0;
        for (uint32_t k = 0; k < p->models[i].n_files; k++)
            bytes += p->models[i].files[k].bytes;
        put_row(l, p->models[i].name,
                p->models[i].n_files == 1 ? p->models[i].files[0].sha256 : NULL, bytes, 0,
                "included", "ready", NULL);
    }
    pack_close(p);
}

static int list(const struct opts *o, struct model_store *s, struct model_refs *refs)
{
    struct listing l = {.o = o, .store = s, .json = opts_flag(o, "json")};
    buf_init(&l.b, MAX_OUTPUT_BYTES);
    l.j = json_out_make(&l.b);
    if (l.json) {
        json_out_object(&l.j);
        json_out_member_str(&l.j, "store", model_store_dir(s));
        json_out_member_array(&l.j, "models");
    } else {
        buf_printf(&l.b, "%-32s %-12s %10s  %-16s  %s\n", "NAME", "SHA-256", "SIZE", "ADDED (UTC)",
                   "SOURCE");
    }
    model_refs_each(refs, put_ref, &l);
    put_pack(&l);
    if (l.json) {
        json_out_array_end(&l.j);
        json_out_object_end(&l.j);
        buf_putc(&l.b, '\n');
    }
    return print_buf(o, &l.b);
}

/* ---- show ---- */

struct naming { /* the names of one model */
    const uint8_t *sum;
    const char *but;
    struct buf names;
    uint32_t n;
};

static void add_name(void *ctx, const struct model_ref *ref)
{
    struct naming *x = ctx;
    if (!ref->stored || memcmp(ref->sha256, x->sum, SHA256_BYTES) != 0 ||
        (x->but && strcmp(ref->name, x->but) == 0))
        return;
    buf_printf(&x->names, "%s%s", x->n++ ? ", " : "", ref->name);
}

static void put_fact(struct listing *l, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    if (l->json)
        json_out_member_str(&l->j, key, value);
    else
        buf_printf(&l->b, "%-12s %s\n", key, value);
}

static void put_files(struct listing *l, const struct model_manifest *m)
{
    char size[32], hex[HEX_BYTES];
    if (l->json) {
        json_out_member_uint(&l->j, "bytes", model_manifest_bytes(m));
        json_out_member_array(&l->j, "files");
    } else {
        buf_printf(&l->b, "%-12s %s\n", "size", bytes_text(size, (double)model_manifest_bytes(m)));
    }
    for (uint32_t i = 0; i < m->n_files; i++) {
        sha256_hex(hex, m->files[i].sum);
        if (l->json) {
            json_out_object(&l->j);
            json_out_member_str(&l->j, "name", m->files[i].name);
            json_out_member_uint(&l->j, "bytes", m->files[i].bytes);
            json_out_member_str(&l->j, "sha256", hex);
            json_out_object_end(&l->j);
        } else {
            buf_printf(&l->b, "%-12s %s, %s, %.12s\n", i ? "" : "files", m->files[i].name,
                       bytes_text(size, (double)m->files[i].bytes), hex);
        }
    }
    if (l->json)
        json_out_array_end(&l->j);
}

/* A model that comes with Shoal is in no store. e: why the store has none of that name. */
static int show_included(const struct opts *o, struct err *e)
{
    struct listing l = {.o = o, .json = opts_flag(o, "json")};
    struct pack *p = NULL;
    char size[32];
    uint64_t bytes = 0;
    const struct pack_model *m = pack_open(&p, NULL, NULL) == 0 ? pack_find(p, o->args[0]) : NULL;
    if (!m) {
        pack_close(p);
        return stored_fail(o, e);
    }
    for (uint32_t i = 0; i < m->n_files; i++)
        bytes += m->files[i].bytes;
    buf_init(&l.b, MAX_OUTPUT_BYTES);
    l.j = json_out_make(&l.b);
    if (l.json)
        json_out_object(&l.j);
    put_fact(&l, "name", m->name);
    if (l.json)
        json_out_member_uint(&l.j, "bytes", bytes);
    else
        put_fact(&l, "size", bytes_text(size, (double)bytes));
    put_fact(&l, "path", m->open);
    put_fact(&l, "source", "included");
    put_fact(&l, "task", m->task);
    put_fact(&l, "license", m->licence);
    put_fact(&l, "card", m->card);
    if (l.json) {
        json_out_object_end(&l.j);
        buf_putc(&l.b, '\n');
    }
    pack_close(p);
    return print_buf(o, &l.b);
}

static int show(const struct opts *o, struct model_store *s, struct model_refs *refs)
{
    struct listing l = {.o = o, .store = s, .json = opts_flag(o, "json")};
    struct model_manifest m;
    const struct model_ref *ref;
    struct err e = {0};
    char path[PATH_MAX] = "", hex[HEX_BYTES];
    if (model_refs_get(refs, o->args[0], &ref, &e) < 0)
        return show_included(o, &e);
    struct naming x = {.sum = ref->sha256, .but = ref->name};
    model_manifest_init(&m);
    int rc = ref->stored ? model_store_find(s, ref->sha256, path, &e) : 0;
    if (rc == 0 && ref->stored)
        rc = model_store_manifest(s, ref->sha256, &m, &e);
    if (rc < 0) {
        model_manifest_fini(&m);
        return stored_fail(o, &e);
    }
    buf_init(&l.b, MAX_OUTPUT_BYTES);
    buf_init(&x.names, MAX_OUTPUT_BYTES);
    l.j = json_out_make(&l.b);
    if (l.json)
        json_out_object(&l.j);
    put_fact(&l, "name", ref->name);
    if (ref->stored) {
        sha256_hex(hex, ref->sha256);
        put_fact(&l, "sha256", hex);
        model_refs_each(refs, add_name, &x);
        put_fact(&l, "also", buf_str(&x.names));
        put_files(&l, &m);
    }
    put_fact(&l, "path", ref->stored ? path : ref->path);
    put_fact(&l, "source", ref->source);
    put_fact(&l, "signer", ref->signer);
    put_fact(&l, "from", ref->from);
    put_fact(&l, "task", ref->task);
    put_fact(&l, "system", ref->system);
    put_fact(&l, "template", ref->template);
    put_fact(&l, "parameters", ref->parameters);
    put_fact(&l, "license", ref->license);
    put_fact(&l, "messages", ref->messages);
    if (l.json) {
        json_out_object_end(&l.j);
        buf_putc(&l.b, '\n');
    }
    buf_fini(&x.names);
    model_manifest_fini(&m);
    return print_buf(o, &l.b);
}

/* ---- rm, cp, tag, gc ---- */

/* refs was read before: it still has the name. */
static int remove_one(struct model_store *s, const struct model_refs *refs, const char *name,
                      struct err *e)
{
    const struct model_ref *ref;
    int rc = model_refs_get(refs, name, &ref, e);
    if (rc < 0)
        return rc;
    struct naming x = {.sum = ref->sha256, .but = ref->name};
    buf_init(&x.names, MAX_OUTPUT_BYTES);
    rc = model_refs_remove(model_store_dir(s), ref->name, e);
    if (rc == 0 && ref->stored)
        model_refs_each(refs, add_name, &x);
    if (rc == 0 && ref->stored && x.n == 0) {
        rc = model_store_remove(s, ref->sha256, e);
        if (rc == SHOAL_EBUSY)
            rc = err_set(e, rc, "%s has no name any more, but is in use: shoal gc removes it later",
                         ref->name);
        else if (rc == SHOAL_ENOTFOUND)
            rc = 0;
    }
    buf_fini(&x.names);
    return rc;
}

static int rm(const struct opts *o, struct model_store *s, struct model_refs *refs)
{
    struct err e = {0};
    int code = CMD_OK;
    for (size_t i = 0; i < o->n_args; i++) {
        struct model_refs *now = NULL; /* another name may have gone with the last one */
        int rc = i ? model_refs_open(&now, model_store_dir(s), &e) : 0;
        if (rc == 0)
            rc = remove_one(s, now ? now : refs, o->args[i], &e);
        model_refs_close(now);
        if (rc < 0)
            code = stored_fail(o, &e);
        else if (!opts_flag(o, "json"))
            printf("removed %s\n", o->args[i]);
        else
            printf("{\"removed\":\"%s\"}\n", o->args[i]);
    }
    return code;
}

static int copy_ref(const struct opts *o, struct model_store *s, const struct model_ref *ref,
                    const char *name)
{
    struct model_ref copy = *ref;
    struct pack *p = NULL;
    struct err e = {0};
    bool taken = pack_open(&p, NULL, NULL) == 0 && pack_find(p, name);
    pack_close(p);
    if (taken)
        return cmd_fail(o->page, "%s is a model that comes with Shoal: choose another name", name);
    copy.name = name;
    copy.added_s = 0;
    if (model_refs_put(model_store_dir(s), &copy, &e) < 0)
        return stored_fail(o, &e);
    printf(opts_flag(o, "json") ? "{\"name\":\"%s\"}\n" : "%s\n", name);
    return CMD_OK;
}

static int cp(const struct opts *o, struct model_store *s, struct model_refs *refs)
{
    const struct model_ref *ref;
    struct err e = {0};
    if (model_refs_get(refs, o->args[0], &ref, &e) < 0)
        return stored_fail(o, &e);
    return copy_ref(o, s, ref, o->args[1]);
}

static int tag(const struct opts *o, struct model_store *s, struct model_refs *refs)
{
    const struct model_ref *ref;
    struct err e = {0};
    char name[2 * MODEL_REFS_NAME_BYTES];
    if (model_refs_get(refs, o->args[0], &ref, &e) < 0)
        return stored_fail(o, &e);
    if (strpbrk(o->args[1], ":/"))
        return opts_usage(o->page, "a tag has no : and no /; shoal cp gives another name");
    const char *colon = strrchr(ref->name, ':'), *slash = strrchr(ref->name, '/');
    size_t n = colon && (!slash || colon > slash) ? (size_t)(colon - ref->name) : strlen(ref->name);
    snprintf(name, sizeof(name), "%.*s:%.100s", (int)n, ref->name, o->args[1]);
    return copy_ref(o, s, ref, name);
}

static int gc(const struct opts *o, struct model_store *s, struct model_refs *refs)
{
    struct model_store_swept swept;
    struct err e = {0};
    char size[32];
    (void)refs;
    if (model_store_gc(s, opts_flag(o, "all") ? 0 : GC_SPARE_S, &swept, &e) < 0)
        return stored_fail(o, &e);
    if (opts_flag(o, "json"))
        printf("{\"models\":%u,\"incomplete\":%u,\"bytes\":%" PRIu64 "}\n", swept.n_models,
               swept.n_incoming, swept.bytes);
    else
        printf("removed %u model%s and %u incomplete: %s\n", swept.n_models, plural(swept.n_models),
               swept.n_incoming, bytes_text(size, (double)swept.bytes));
    return CMD_OK;
}

/* ---- the commands ---- */

static int run(const struct opts_page *page, int argc, const char *const *argv,
               int (*verb)(const struct opts *o, struct model_store *s, struct model_refs *refs))
{
    struct model_refs *refs = NULL;
    struct err e = {0};
    struct opts o;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    struct model_store *s = stored_open(&o, 0);
    rc = !s                                                   ? CMD_FAILED
         : model_refs_open(&refs, model_store_dir(s), &e) < 0 ? stored_fail(&o, &e)
                                                              : verb(&o, s, refs);
    model_refs_close(refs);
    model_store_close(s);
    opts_fini(&o);
    return rc;
}

int cmd_list(int argc, const char *const *argv)
{
    return run(&list_page, argc, argv, list);
}

int cmd_show(int argc, const char *const *argv)
{
    return run(&show_page, argc, argv, show);
}

int cmd_rm(int argc, const char *const *argv)
{
    return run(&rm_page, argc, argv, rm);
}

int cmd_cp(int argc, const char *const *argv)
{
    return run(&cp_page, argc, argv, cp);
}

int cmd_store_tag(int argc, const char *const *argv)
{
    return run(&tag_page, argc, argv, tag);
}

int cmd_gc(int argc, const char *const *argv)
{
    return run(&gc_page, argc, argv, gc);
}
