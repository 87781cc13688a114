/* cmd_model_show.c - shoal model show: the contents of a model and its memory needs. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes_text.h"
#include "cmd/cmd.h"
#include "format/model_open.h"
#include "model/decoder.h"
#include "model/encoder.h"
#include "model/t5.h"
#include "text/tokenizer/tokenizer.h"
#include "wire/json_out.h"

cmd_fn cmd_model_show;

#define MAX_OUTPUT_BYTES ((size_t)1 << 30)
#define MAX_TYPES 64u
#define SHOWN_ELEMS 8u   /* elements shown of an array, unless --kv is used */
#define SHOWN_BYTES 160u /* bytes shown bytes shown bytes shown of a text */

static const struct opts_def defs[] = {
    {"tensors", 0, OPTS_FLAG, NULL, NULL, 0, 0, "list every tensor"},
    {"kv", 0, OPTS_TEXT, "KEY", NULL, 0, 0, "print the complete value of one metadata key"},
    {"ctx", 'c', OPTS_UINT, "N", "0", 0, 16777216,
     "show memory needs for this context length; 0: the default"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object with all metadata"},
};

static const struct opts_page page = {
    .command = "model show",
    .arguments = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Shows metadata, architecture, tokenizer and tensors of a model.",
    .details = "MODEL is a GGUF file or a Hugging Face folder; a folder is shown as 'shoal model "
               "convert'\nwould convert it.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal model show model.gguf\n"
                "  shoal model show model.gguf --kv tokenizer.chat_template\n"
                "  shoal model show model.gguf --tensors --json | jq '.tensors[0]'\n",
};

struct facts {
    const struct model_file *file;
    const char *path;
    struct tokenizer *t; /* NULL: see t_error */
    struct err t_error;
    const char *kind;           /* "decoder", "encoder", "image encoder" or "encoder-decoder" */
    uint64_t image_size, patch; /* of an image encoder: pixels on a side */
    char arch[32];              /* of an encoder, for config.arch */
    struct decoder_config config;
    bool has_config;
    struct err config_error;
    struct decoder_sizes sizes;
    bool has_sizes;
    struct err sizes_error;
    uint64_t n_params, tensor_bytes;
    struct {
        enum quant_type type;
        uint64_t n, bytes, params;
    } types[MAX_TYPES];
    size_t n_types;
};

static uint64_t n_values(const struct model_file_tensor *t)
{
    return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

/* Reads the sizes of models other than decoders; all architectures use the same keys. */
static void gather_shape(struct facts *f, struct str name)
{
    struct decoder_config *c = &f->config;
    const struct {
        const char *key;
        uint32_t *to;
    } keys[] = {{"context_length", &c->n_ctx_train},  {"embedding_length", &c->dim},
                {"block_count", &c->n_layers},        {"attention.head_count", &c->n_heads},
                {"feed_forward_length", &c->ffn_dim}, {"attention.key_length", &c->head_dim}};
    f->has_config = true;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char key[128];
        uint64_t v;
        snprintf(key, sizeof(key), "%.*s.%s", (int)name.n, name.p, keys[i].key);
        if (model_file_get_u64(f->file, key, &v) && v <= UINT32_MAX)
            *keys[i].to = (uint32_t)v;
        else if (i < 5 && f->has_config) {
            err_set(&f->config_error, SHOAL_EFORMAT, "metadata key %s is missing", key);
            f->has_config = false;
        }
    }
    c->n_kv_heads = c->n_heads;
    if (c->head_dim == 0 && c->n_heads)
        c->head_dim = c->dim / c->n_heads;
}

static void gather_image(struct facts *f, const char *name, uint64_t *to)
{
    char key[128];
    snprintf(key, sizeof(key), "%s.vision.%s", f->arch, name);
    (void)model_file_get_u64(f->file, key, to);
}

static void gather_model(struct facts *f, struct str name, uint32_t n_ctx)
{
    const struct model_file_tensor *embd = model_file_find_tensor(f->file, "token_embd.weight");
    const struct arch *arch = arch_find(name.p, name.n);
    if (arch) {
        struct decoder_opts d = {.n_ctx = n_ctx, .n_threads = 1};
        f->kind = "decoder";
        f->config.arch = arch->name;
        f->has_config = arch->configure(&f->config, f->file, &f->config_error) == 0;
        f->has_sizes =
            f->has_config && decoder_measure(&f->sizes, f->file, &d, &f->sizes_error) == 0;
    } else if (encoder_knows(f->file)) {
        struct encoder_opts eo = {.n_threads = 1};
        struct encoder_sizes es;
        f->kind = encoder_sees(f->file) ? "image encoder" : "encoder";
        snprintf(f->arch, sizeof(f->arch), "%.*s", (int)name.n, name.p);
        f->config.arch = f->arch;
        gather_shape(f, name);
        if (encoder_sees(f->file)) {
            gather_image(f, "image_size", &f->image_size);
            gather_image(f, "patch_size", &f->patch);
        }
        f->has_sizes = f->has_config && encoder_measure(&es, f->file, &eo, &f->sizes_error) == 0;
        if (f->has_sizes)
            f->sizes = (struct decoder_sizes){
                .weights = es.weights, .scratch = es.scratch, .n_ctx = es.n_ctx};
    } else if (t5_knows(f->file)) {
        struct t5_opts to = {.n_threads = 1, .n_ctx = n_ctx};
        struct t5_sizes ts;
        f->kind = "encoder-decoder";
        snprintf(f->arch, sizeof(f->arch), "%.*s", (int)name.n, name.p);
        f->config.arch = f->arch;
        gather_shape(f, name);
        f->has_sizes = f->has_config && t5_measure(&ts, f->file, &to, &f->sizes_error) == 0;
        if (f->has_sizes)
            f->sizes = (struct decoder_sizes){.weights = ts.weights,
                                              .scratch = ts.scratch,
                                              .kv_page = ts.kv_page,
                                              .n_ctx = ts.n_ctx};
    } else {
        err_set(&f->config_error, SHOAL_EUNSUPPORTED, "architecture %.*s is not supported",
                (int)(name.n < 40 ? name.n : 40), name.p);
    }
    if (f->config.n_vocab == 0 && embd)
        f->config.n_vocab = (uint32_t)embd->dims[1];
}

static void gather(struct facts *f, const struct opts *o)
{
    struct str name;
    for (size_t i = 0; i < f->file->n_tensors; i++) {
        const struct model_file_tensor *t = &f->file->tensors[i];
        size_t k = 0;
        while (k < f->n_types && f->types[k].type != t->type)
            k++;
        if (k == MAX_TYPES)
            continue;
        f->n_types += k == f->n_types;
        f->types[k].type = t->type;
        f->types[k].n++;
        f->types[k].bytes += t->n_bytes;
        f->types[k].params += n_values(t);
        f->n_params += n_values(t);
        f->tensor_bytes += t->n_bytes;
    }
    if (tokenizer_create(&f->t, f->file, &f->t_error) < 0)
        f->t = NULL;
    if (model_file_get_str(f->file, "general.architecture", &name))
        gather_model(f, name, opts_u32(o, "ctx"));
    else
        err_set(&f->config_error, SHOAL_EFORMAT, "the file does not name an architecture");
}

/* ---- metadata values ------------------------------------------------------------------------ */

/* One element as JSON. */
static void put_elem(struct json_out *j, const struct model_file_value *kv, uint64_t i)
{
    enum model_file_type type = kv->type == MODEL_FILE_ARRAY ? kv->elem_type : kv->type;
    int64_t n;
    double d;
    if (type == MODEL_FILE_BOOL && kv->n_bytes > i)
        json_out_bool(j, kv->data[i] != 0);
    else if (type != MODEL_FILE_F32 && type != MODEL_FILE_F64 && model_file_i64_at(kv, i, &n))
        json_out_int(j, n);
    else if (type == MODEL_FILE_F32 && model_file_f64_at(kv, i, &d))
        json_out_float(j, (float)d);
    else if (model_file_f64_at(kv, i, &d))
        json_out_num(j, d);
    else
        json_out_null(j);
}

static void put_value(struct json_out *j, const struct model_file *file,
                      const struct model_file_value *kv, uint64_t max_elems)
{
    char key[256];
    struct str s;
    uint64_t u;
    if (kv->type == MODEL_FILE_ARRAY) {
        struct model_file_strings strings = model_file_strings(kv);
        json_out_array(j);
        for (uint64_t i = 0; i < kv->n_elems && i < max_elems; i++)
            if (model_file_strings_next(&strings, &s))
                json_out_strn(j, s.p, s.n);
            else
                put_elem(j, kv, i);
        json_out_array_end(j);
        return;
    }
    snprintf(key, sizeof(key), "%.*s", (int)(kv->key.n < 255 ? kv->key.n : 255), kv->key.p);
    if (kv->type == MODEL_FILE_STRING && model_file_get_str(file, key, &s))
        json_out_strn(j, s.p, s.n);
    else if (kv->type == MODEL_FILE_U64 && model_file_get_u64(file, key, &u))
        json_out_uint(j, u);
    else
        put_elem(j, kv, 0);
}

static int print_key(const struct opts *o, const struct model_file *file)
{
    const char *key = opts_text(o, "kv");
    const struct model_file_value *kv = model_file_find(file, key);
    struct str s;
    struct buf b;
    if (!kv)
        return cmd_fail(o->page, "%s has no metadata key %s", o->args[0], key);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (kv->type == MODEL_FILE_STRING && !opts_flag(o, "json") &&
        model_file_get_str(file, key, &s)) {
        buf_put(&b, s.p, s.n);
    } else {
        struct json_out j = json_out_make(&b);
        put_value(&j, file, kv, UINT64_MAX);
    }
    buf_putc(&b, '\n');
    return cmd_print_end(o->page, &b);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_uints(struct json_out *j, const char *const *names, const uint64_t *values,
                       size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_out_member_uint(j, names[i], values[i]);
}

static void json_tokenizer(struct json_out *j, const struct facts *f)
{
    json_out_member_object(j, "tokenizer");
    if (!f->t) {
        json_out_member_str(j, "error", f->t_error.msg);
        json_out_object_end(j);
        return;
    }
    const struct tokenizer_info *i = tokenizer_info(f->t);
    json_out_member_str(j, "kind", tokenizer_kind_name(i->kind));
    json_out_member_str(j, "model", i->model);
    json_out_member_str(j, "pre", i->pre);
    json_out_member_uint(j, "n_vocab", i->n_vocab);
    json_out_member_int(j, "bos", i->bos);
    json_out_member_int(j, "eos", i->eos);
    json_out_member_bool(j, "add_bos", i->add_bos);
    json_out_member_bool(j, "chat_template", i->chat_template != NULL);
    json_out_object_end(j);
}

static void json_tensors(struct json_out *j, const struct model_file *file)
{
    json_out_member_array(j, "tensors");
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct model_file_tensor *t = &file->tensors[i];
        json_out_object(j);
        json_out_member_strn(j, "name", t->name.p, t->name.n);
        json_out_member_str(j, "type", quant_info(t->type)->name);
        json_out_member_array(j, "dims");
        for (uint32_t d = 0; d < t->n_dims; d++)
            json_out_uint(j, t->dims[d]);
        json_out_array_end(j);
        json_out_member_uint(j, "bytes", t->n_bytes);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void json_model(struct json_out *j, const struct facts *f)
{
    static const char *const names[] = {"n_vocab",    "n_ctx_train", "n_layers", "dim",   "n_heads",
                                        "n_kv_heads", "head_dim",    "ffn_dim",  "window"};
    json_out_member_object(j, "architecture");
    if (f->has_config) {
        const struct decoder_config *c = &f->config;
        const uint64_t values[] = {c->n_vocab,    c->n_ctx_train, c->n_layers, c->dim,   c->n_heads,
                                   c->n_kv_heads, c->head_dim,    c->ffn_dim,  c->window};
        json_out_member_str(j, "name", c->arch);
        json_out_member_str(j, "kind", f->kind);
        json_uints(j, names, values, sizeof(values) / sizeof(values[0]));
        if (f->image_size) {
            json_out_member_uint(j, "image_size", f->image_size);
            json_out_member_uint(j, "patch_size", f->patch);
        }
    } else {
        json_out_member_str(j, "error", f->config_error.msg);
    }
    json_out_object_end(j);
    json_out_member_object(j, "memory");
    if (f->has_sizes) {
        static const char *const keys[] = {"weights_bytes", "scratch_bytes", "kv_bytes_per_token",
                                           "n_ctx"};
        const uint64_t values[] = {f->sizes.weights, f->sizes.scratch, f->sizes.kv_page / KERN_PAGE,
                                   f->sizes.n_ctx};
        json_uints(j, keys, values, 4);
    } else {
        json_out_member_str(j, "error", f->has_config ? f->sizes_error.msg : f->config_error.msg);
    }
    json_out_object_end(j);
}

static void put_json(struct buf *b, const struct opts *o, const struct facts *f)
{
    static const char *const names[] = {"file_bytes", "version", "n_params", "tensor_bytes",
                                        "n_tensors"};
    const uint64_t values[] = {f->file->n_bytes, f->file->gguf_version, f->n_params,
                               f->tensor_bytes, f->file->n_tensors};
    struct json_out json = json_out_make(b), *j = &json;
    json_out_object(j);
    json_out_member_str(j, "file", f->path);
    json_uints(j, names, values, 5);
    json_model(j, f);
    json_tokenizer(j, f);
    json_out_member_array(j, "types");
    for (size_t i = 0; i < f->n_types; i++) {
        json_out_object(j);
        json_out_member_str(j, "type", quant_info(f->types[i].type)->name);
        json_out_member_uint(j, "tensors", f->types[i].n);
        json_out_member_uint(j, "params", f->types[i].params);
        json_out_member_uint(j, "bytes", f->types[i].bytes);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_member_object(j, "metadata");
    for (size_t i = 0; i < f->file->n_values; i++) {
        const struct model_file_value *kv = &f->file->values[i];
        char key[256];
        /* Vocabularies are long: show only their length; --kv shows them. */
        bool whole = kv->type != MODEL_FILE_ARRAY || kv->n_elems <= 64;
        snprintf(key, sizeof(key), "%.*s", (int)(kv->key.n < 255 ? kv->key.n : 255), kv->key.p);
        json_out_key(j, key);
        if (whole) {
            put_value(j, f->file, kv, UINT64_MAX);
        } else {
            json_out_object(j);
            json_out_member_uint(j, "elements", kv->n_elems);
            json_out_object_end(j);
        }
    }
    json_out_object_end(j);
    if (opts_flag(o, "tensors"))
        json_tensors(j, f->file);
    json_out_object_end(j);
    buf_putc(b, '\n');
}

/* ---- text ----------------------------------------------------------------------------------- */

static void text_model(struct buf *b, const struct facts *f)
{
    char w[32], s[32], k[32], all[32];
    const struct decoder_config *c = &f->config;
    if (!f->has_config) {
        buf_printf(b, "architecture   %s\n", f->config_error.msg);
        return;
    }
    buf_printf(b, "architecture   %s, %u layers of %u, %u heads (%u for keys and values) of %u\n",
               c->arch, c->n_layers, c->dim, c->n_heads, c->n_kv_heads, c->head_dim);
    if (f->image_size)
        buf_printf(
            b, "               feed-forward %u, images of %llu x %llu pixels in patches of %llu",
            c->ffn_dim, (unsigned long long)f->image_size, (unsigned long long)f->image_size,
            (unsigned long long)f->patch);
    else
        buf_printf(b, "               feed-forward %u, vocabulary %u, trained for %u tokens",
                   c->ffn_dim, c->n_vocab, c->n_ctx_train);
    if (c->window)
        buf_printf(b, ", window of %u", c->window);
    buf_putc(b, '\n');
    if (!f->has_sizes) {
        buf_printf(b, "memory         %s\n", f->sizes_error.msg);
        return;
    }
    if (f->sizes.kv_page == 0) {
        buf_printf(b, "memory         weights %s + scratch %s = %s\n",
                   bytes_text(w, (double)f->sizes.weights), bytes_text(s, (double)f->sizes.scratch),
                   bytes_text(all, (double)f->sizes.weights + (double)f->sizes.scratch));
        return;
    }
    double kv = (double)f->sizes.kv_page / KERN_PAGE * f->sizes.n_ctx;
    buf_printf(b, "memory         weights %s + scratch %s + cache %s (%u tokens) = %s\n",
               bytes_text(w, (double)f->sizes.weights), bytes_text(s, (double)f->sizes.scratch),
               bytes_text(k, kv), f->sizes.n_ctx,
               bytes_text(all, (double)f->sizes.weights + (double)f->sizes.scratch + kv));
}

static void text_tokenizer(struct buf *b, const struct facts *f)
{
    if (!f->t && f->image_size) {
        buf_puts(b, "tokenizer      none: it reads images\n");
        return;
    }
    if (!f->t) {
        buf_printf(b, "tokenizer      %s\n", f->t_error.msg);
        return;
    }
    const struct tokenizer_info *i = tokenizer_info(f->t);
    buf_printf(b, "tokenizer      %s%s%s, %u tokens, BOS %d%s, EOS %d, chat template: %s\n",
               tokenizer_kind_name(i->kind), i->pre[0] ? " " : "", i->pre, i->n_vocab, i->bos,
               i->add_bos ? " (added)" : "", i->eos, i->chat_template ? "yes" : "no");
}

static void text_metadata(struct buf *b, const struct model_file *file)
{
    struct buf value;
    buf_init(&value, MAX_OUTPUT_BYTES);
    buf_printf(b, "metadata\n");
    for (size_t i = 0; i < file->n_values; i++) {
        const struct model_file_value *kv = &file->values[i];
        struct json_out j = json_out_make(&value);
        bool array = kv->type == MODEL_FILE_ARRAY;
        buf_clear(&value);
        put_value(&j, file, kv, SHOWN_ELEMS);
        buf_printf(b, "  %.*s = ", (int)(kv->key.n < 200 ? kv->key.n : 200), kv->key.p);
        bool cut = value.len > SHOWN_BYTES;
        buf_put(b, buf_str(&value),
                cut ? utf8_valid_prefix(buf_str(&value), SHOWN_BYTES) : value.len);
        if (array && kv->n_elems > SHOWN_ELEMS)
            buf_printf(b, "... (%" PRIu64 " in total)", kv->n_elems);
        else if (cut)
            buf_puts(b, "...");
        buf_putc(b, '\n');
    }
    buf_fini(&value);
}

static void put_text(struct buf *b, const struct opts *o, const struct facts *f)
{
    char x[32];
    if (f->file->gguf_version)
        buf_printf(b, "%s\nfile           GGUF v%u", f->path, f->file->gguf_version);
    else
        buf_printf(b, "%s\nfolder         Hugging Face, %zu safetensors file%s", f->path,
                   f->file->n_maps, f->file->n_maps == 1 ? "" : "s");
    buf_printf(b, ", %s, %.1f M parameters\n", bytes_text(x, (double)f->file->n_bytes),
               (double)f->n_params / 1e6);
    text_model(b, f);
    text_tokenizer(b, f);
    for (size_t i = 0; i < f->n_types; i++)
        buf_printf(b, "%-14s %-8s %4" PRIu64 " tensors %10s %6.2f bits per weight\n",
                   i ? "" : "tensors", quant_info(f->types[i].type)->name, f->types[i].n,
                   bytes_text(x, (double)f->types[i].bytes),
                   (double)f->types[i].bytes * 8 / (double)f->types[i].params);
    text_metadata(b, f->file);
    if (!opts_flag(o, "tensors"))
        return;
    buf_printf(b, "tensors\n");
    for (size_t i = 0; i < f->file->n_tensors; i++) {
        const struct model_file_tensor *t = &f->file->tensors[i];
        char dims[96] = "";
        size_t at = 0;
        for (uint32_t d = 0; d < t->n_dims && at < sizeof(dims); d++)
            at += (size_t)snprintf(dims + at, sizeof(dims) - at, d ? " x %" PRIu64 : "%" PRIu64,
                                   t->dims[d]);
        buf_printf(b, "  %-40.*s %-8s %20s %10s\n", (int)(t->name.n < 200 ? t->name.n : 200),
                   t->name.p, quant_info(t->type)->name, dims, bytes_text(x, (double)t->n_bytes));
    }
}

int cmd_model_show(int argc, const char *const *argv)
{
    struct opts o;
    struct model_file *file = NULL;
    struct err e = {0};
    struct buf b;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (model_open(&file, o.args[0], &e) < 0) {
        rc = cmd_fail(&page, "%s", e.msg);
    } else if (opts_text(&o, "kv")) {
        rc = print_key(&o, file);
    } else {
        struct facts f = {.file = file, .path = o.args[0]};
        gather(&f, &o);
        if (opts_flag(&o, "json"))
            put_json(&b, &o, &f);
        else
            put_text(&b, &o, &f);
        rc = cmd_print(&page, &b);
        tokenizer_destroy(f.t);
    }
    model_file_close(file);
    buf_fini(&b);
    opts_fini(&o);
    return rc;
}
