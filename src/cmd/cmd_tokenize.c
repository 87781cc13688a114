/* cmd_tokenize.c - shoal tokenize and detokenize.  They read only the vocabulary, so files
 * without weights work too. */
#include <string.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "host/model_name.h"
#include "engine/onnx/onnx_files.h"
#include "text/tokenizer/tokenizer.h"
#include "wire/json_out.h"

cmd_fn cmd_tokenize, cmd_detokenize;

#define MAX_TOKENS ((size_t)1 << 28)
#define MAX_OUTPUT_BYTES ((size_t)4 << 30)

static const struct opts_def encode_defs[] = {
    {"model", 'm', OPTS_TEXT, "MODEL", NULL, 0, 0,
     "model file, folder or name (required); only its vocabulary is read"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the text from FILE; - means stdin"},
    {"special", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "parse special tokens in the text, such as \"<|im_end|>\""},
    {"no-bos", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "do not add BOS and EOS, even if the model requires them"},
    {"pieces", 'p', OPTS_FLAG, NULL, NULL, 0, 0,
     "print one token per line: id, tab, its text as JSON"},
    {"count", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print only the number of tokens"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object with ids and pieces"},
};

static const struct opts_page encode_page = {
    .command = "tokenize",
    .arguments = "[TEXT]",
    .max_args = 1,
    .summary = "Converts a text to a model's tokens.",
    .details = "The text is the argument, the contents of -f FILE, or stdin, without any change.",
    .groups = {OPTS_GROUP("Options", encode_defs)},
    .examples = "  shoal tokenize -m model.gguf \"Hello world\"\n"
                "  shoal tokenize -m model.gguf --pieces -f README.md\n"
                "  cat *.txt | shoal tokenize -m model.gguf --count\n",
};

static const struct opts_def decode_defs[] = {
    {"model", 'm', OPTS_TEXT, "MODEL", NULL, 0, 0,
     "model file, folder or name (required); only its vocabulary is read"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the ids from FILE; - means stdin"},
    {"special", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print the text of special tokens"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object with the text and the pieces"},
};

static const struct opts_page decode_page = {
    .command = "detokenize",
    .arguments = "[IDS...]",
    .max_args = UINT32_MAX,
    .summary = "Converts token ids to text.",
    .details = "The ids are the arguments, the contents of -f FILE, or stdin, separated by blanks, "
               "commas or\nbrackets.",
    .groups = {OPTS_GROUP("Options", decode_defs)},
    .examples = "  shoal detokenize -m model.gguf 9707 1879\n"
                "  shoal tokenize -m model.gguf \"Hello\" | shoal detokenize -m model.gguf\n",
};

static int open_tokenizer(const struct opts *o, struct tokenizer **t)
{
    const char *path = opts_text(o, "model");
    struct model_file *file = NULL;
    struct model_name name;
    struct err e = {0};
    *t = NULL;
    if (!path)
        return opts_usage(o->page, "no model given: use -m MODEL");
    int rc = model_name_find(&name, NULL, path, &e);
    if (rc == 0)
        rc = onnx_files_view(&file, name.path, &e);
    if (rc == 0 && (rc = tokenizer_create(t, file, &e)) < 0)
        err_wrap(&e, "%s", path);
    model_file_close(file);
    model_name_fini(&name);
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}

static void put_piece(struct json_out *j, const struct tokenizer *t, int32_t id)
{
    struct str p = tokenizer_piece(t, id, TOKENIZER_RENDER_SPECIAL);
    json_out_strn(j, p.p, p.n);
}

static void put_lists(struct json_out *j, const struct tokenizer *t, const int32_t *ids, size_t n)
{
    json_out_member_uint(j, "n", n);
    json_out_member_array(j, "tokens");
    for (size_t i = 0; i < n; i++)
        json_out_int(j, ids[i]);
    json_out_array_end(j);
    json_out_member_array(j, "pieces");
    for (size_t i = 0; i < n; i++)
        put_piece(j, t, ids[i]);
    json_out_array_end(j);
}

static int print_tokens(const struct opts *o, const struct tokenizer *t, const struct tok_ids *ids)
{
    struct buf b;
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        put_lists(&j, t, ids->ids, ids->n);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else if (opts_flag(o, "count")) {
        buf_printf(&b, "%zu\n", ids->n);
    } else if (opts_flag(o, "pieces")) {
        for (size_t i = 0; i < ids->n; i++) {
            struct json_out j = json_out_make(&b);
            buf_printf(&b, "%d\t", ids->ids[i]);
            put_piece(&j, t, ids->ids[i]);
            buf_putc(&b, '\n');
        }
    } else {
        for (size_t i = 0; i < ids->n; i++)
            buf_printf(&b, i ? " %d" : "%d", ids->ids[i]);
        buf_putc(&b, '\n');
    }
    return cmd_print_end(o->page, &b);
}

int cmd_tokenize(int argc, const char *const *argv)
{
    struct opts o;
    struct tokenizer *t = NULL;
    struct tok_ids ids;
    struct buf text = {0};
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &encode_page, argc, argv, &rc))
        return rc;
    tok_ids_init(&ids, MAX_TOKENS);
    rc = open_tokenizer(&o, &t);
    if (rc == CMD_OK)
        rc = cmd_read_text(&o, o.n_args ? o.args[0] : NULL, opts_text(&o, "file"), &text);
    if (rc == CMD_OK) {
        unsigned flags = (opts_flag(&o, "special") ? TOKENIZER_PARSE_SPECIAL : 0u) |
                         (opts_flag(&o, "no-bos") ? 0u : TOKENIZER_ADD_SPECIAL);
        rc = tokenizer_encode(t, &ids, buf_str(&text), text.len, flags, &e) < 0
                 ? cmd_fail(o.page, "%s", e.msg)
                 : print_tokens(&o, t, &ids);
    }
    tok_ids_fini(&ids);
    tokenizer_destroy(t);
    buf_fini(&text);
    opts_fini(&o);
    return rc;
}

static int read_ids(const struct opts *o, int32_t **ids, size_t *n)
{
    struct err e = {0};
    struct buf text = {0};
    bool typed = o->n_args > 0 && strcmp(o->args[0], "-") != 0;
    int rc = CMD_OK;
    if (typed && opts_text(o, "file"))
        return opts_usage(o->page, "give either ids or a file, not both");
    for (size_t i = 0; typed && i < o->n_args && rc == CMD_OK; i++)
        if (cmd_parse_ids(o->args[i], strlen(o->args[i]), ids, n, &e) < 0)
            rc = opts_usage(o->page, "%s", e.msg);
    if (!typed) {
        rc = cmd_read_text(o, o->n_args ? "-" : NULL, opts_text(o, "file"), &text);
        if (rc == CMD_OK && cmd_parse_ids(buf_str(&text), text.len, ids, n, &e) < 0)
            rc = cmd_fail(o->page, "%s", e.msg);
    }
    buf_fini(&text);
    return rc;
}

static int print_text(const struct opts *o, const struct tokenizer *t, const int32_t *ids, size_t n)
{
    uint32_t n_vocab = tokenizer_info(t)->n_vocab;
    struct buf text, b;
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)ids[i] >= n_vocab)
            return cmd_fail(o->page, "token %d is not in the vocabulary of %u tokens", ids[i],
                            n_vocab);
    buf_init(&text, MAX_OUTPUT_BYTES);
    buf_init(&b, MAX_OUTPUT_BYTES);
    tokenizer_decode(t, &text, ids, n, opts_flag(o, "special") ? TOKENIZER_RENDER_SPECIAL : 0);
    int rc;
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_strn(&j, "text", buf_str(&text), text.len);
        put_lists(&j, t, ids, n);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
        rc = text.rc < 0 ? cmd_fail(o->page, "%s", err_text(text.rc)) : cmd_print(o->page, &b);
    } else {
        rc = cmd_print(o->page, &text); /* only the bytes: a text survives a round trip */
    }
    buf_fini(&text);
    buf_fini(&b);
    return rc;
}

int cmd_detokenize(int argc, const char *const *argv)
{
    struct opts o;
    struct tokenizer *t = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    int rc;
    if (!cmd_begin(&o, &decode_page, argc, argv, &rc))
        return rc;
    rc = open_tokenizer(&o, &t);
    if (rc == CMD_OK)
        rc = read_ids(&o, &ids, &n);
    if (rc == CMD_OK)
        rc = print_text(&o, t, ids, n);
    mem_free(ids);
    tokenizer_destroy(t);
    opts_fini(&o);
    return rc;
}
