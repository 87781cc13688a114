/* cmd_model_encrypt.c - shoal model encrypt, shoal model decrypt: models that a stolen disk does
 * not give away. */
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "cmd/cmd.h"
#include "format/model_open.h"
#include "format/sealed_file.h"

cmd_fn cmd_model_encrypt, cmd_model_decrypt;

#define KEY_HELP                                                                                   \
    "file with the key: 64 hex digits or 32 bytes, readable only by its owner (chmod 600)"
static const struct opts_def encrypt_defs[] = {
    {"output", 'o', OPTS_TEXT, "FILE", NULL, 0, 0, "where to write the encrypted model (required)"},
    {"key-file", 0, OPTS_TEXT, "FILE", NULL, 0, 0, KEY_HELP},
    {"passphrase-file", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "or file with a passphrase in a line; each load then takes 128 MiB and some tenths of a "
     "second more"},
};

static const struct opts_page encrypt_page = {
    .command = "model encrypt",
    .arguments = "FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Encrypts a GGUF file, with AES-256-GCM and a key of its own.",
    .details = "Commands and servers load the result directly, if they are given the key: "
               "--key-file FILE, or\nkey_file of the model in the configuration.  It is decrypted "
               "into memory only.",
    .groups = {OPTS_GROUP("Options", encrypt_defs)},
    .examples = "  openssl rand -hex 32 >model.key; chmod 600 model.key\n"
                "  shoal model encrypt reply.gguf -o reply.enc --key-file model.key\n"
                "  shoal generate -m reply.enc --key-file model.key \"Once upon a time\"\n",
};

static const struct opts_def decrypt_defs[] = {
    {"output", 'o', OPTS_TEXT, "FILE", NULL, 0, 0, "where to write the plain model (required)"},
    {"key-file", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "file with the key or the passphrase that it was encrypted with (required)"},
};

static const struct opts_page decrypt_page = {
    .command = "model decrypt",
    .arguments = "FILE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Writes the plain file of an encrypted model.",
    .groups = {OPTS_GROUP("Options", decrypt_defs)},
    .examples = "  shoal model decrypt reply.enc -o reply.gguf --key-file model.key\n",
};

/* Only what can be loaded again. */
static int check_model(const char *path, struct err *e)
{
    struct model_file *file;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(e, SHOAL_EINVAL,
                       "%s is a folder; make one GGUF file of it first: shoal model convert", path);
    int rc = model_open(&file, path, e);
    model_file_close(file);
    return rc;
}

static int encrypt(const struct opts *o)
{
    const char *key = opts_text(o, "key-file"), *phrase = opts_text(o, "passphrase-file");
    const char *out = opts_text(o, "output");
    const struct sealed_opts so = {.wrap = key ? SEALED_KEY_FILE : SEALED_PASSPHRASE,
                                   .key_file = key ? key : phrase};
    struct err e = {0};
    if (!key == !phrase)
        return cmd_fail(o->page, "which key? say either --key-file FILE or --passphrase-file FILE");
    if (!out)
        return cmd_fail(o->page, "where does it go? say -o FILE");
    int rc = sealed_check(o->args[0], &e);
    if (rc == 1)
        rc = err_set(&e, SHOAL_EINVAL, "%s is encrypted already", o->args[0]);
    if (rc == 0)
        rc = check_model(o->args[0], &e);
    if (rc == 0)
        rc = sealed_encrypt(o->args[0], out, &so, &e);
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}

static int decrypt(const struct opts *o)
{
    const char *key = opts_text(o, "key-file"), *out = opts_text(o, "output");
    struct err e = {0};
    if (!key || !out)
        return cmd_fail(o->page, "say --key-file FILE and -o FILE");
    return sealed_decrypt(o->args[0], out, key, &e) < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}

int cmd_model_encrypt(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &encrypt_page, argc, argv, &rc))
        return rc;
    rc = encrypt(&o);
    opts_fini(&o);
    return rc;
}

int cmd_model_decrypt(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &decrypt_page, argc, argv, &rc))
        return rc;
    rc = decrypt(&o);
    opts_fini(&o);
    return rc;
}
