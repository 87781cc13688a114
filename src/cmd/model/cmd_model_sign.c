/* cmd_model_sign.c - shoal model sign, shoal model verify: signatures of models. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "cmd/cmd.h"
#include "supply/minisign.h"
#include "supply/model_signing.h"
#include "supply/signer_anchor.h"
#include "wire/json_out.h"

cmd_fn cmd_model_sign, cmd_model_verify;

static const struct opts_def sign_defs[] = {
    {"key", 'k', OPTS_TEXT, "FILE", NULL, 0, 0, "private key: PEM, on P-256, P-384 or P-521"},
    {"cert", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "certificate of the key, which travels with the signature; those of authorities between may "
     "follow in the file"},
    {"output", 'o', OPTS_TEXT, "FILE", NULL, 0, 0,
     "where to write the signature; default: FOLDER/model.sig, or FILE.sig"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page sign_page = {
    .command = "model sign",
    .arguments = "PATH",
    .min_args = 1,
    .max_args = 1,
    .summary = "Signs a model: a file, or a folder with all files in it.",
    .details = "The signature is one of OpenSSF model signing: the program 'model_signing' checks "
               "it too, and\n'shoal model verify' those of that program.",
    .groups = {OPTS_GROUP("Options", sign_defs)},
    .examples = "  openssl ecparam -name prime256v1 -genkey -noout -out sign.pem\n"
                "  openssl pkey -in sign.pem -pubout -out sign.pub\n"
                "  shoal model sign ./my-model --key sign.pem\n"
                "  shoal model sign reply.gguf --key line.key --cert line.crt -o reply.sig\n",
};

static const struct opts_def verify_defs[] = {
    {"signature", 's', OPTS_TEXT, "FILE", NULL, 0, 0,
     "the signature; default: FOLDER/model.sig, FILE.sig or FILE.minisig"},
    {"key", 'k', OPTS_TEXT, "FILE", NULL, 0, 0, "public key of the signer: PEM, or minisign's"},
    {"ca", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "or authorities that the signer's certificate must lead to, with their revocation lists"},
    {"subject", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "with --ca: common name that the signer's certificate must have"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON, also if the model differs"},
};

static const struct opts_page verify_page = {
    .command = "model verify",
    .arguments = "PATH",
    .min_args = 1,
    .max_args = 1,
    .summary = "Checks who signed a model, and that it is what was signed.",
    .details = "Every file must be in the signature with its SHA-256, and every file of the "
               "signature must be\nthere.  A signature of minisign is for a single file.  Exit "
               "code 0: it is; 1: it is not, and the\nmessage says which file differs.",
    .groups = {OPTS_GROUP("Options", verify_defs)},
    .examples = "  shoal model verify ./my-model --key sign.pub\n"
                "  shoal model verify reply.gguf --signature reply.sig --ca ca.pem --subject line\n"
                "  shoal model verify reply.gguf --key minisign.pub --json\n",
};

/* Beside a file, in a folder. */
static bool place(char *out, size_t cap, const char *path, const char *ending)
{
    struct stat st;
    int n = stat(path, &st) == 0 && S_ISDIR(st.st_mode)
                ? snprintf(out, cap, "%s/%s", path, MODEL_SIGNING_FILE)
                : snprintf(out, cap, "%s%s", path, ending);
    return n > 0 && (size_t)n < cap;
}

static int sign(const struct opts *o)
{
    char at[4096];
    struct err e = {0};
    struct buf b;
    uint32_t n = 0;
    const char *out = opts_text(o, "output");
    if (!opts_text(o, "key"))
        return cmd_fail(o->page, "which key signs? say --key FILE; --help shows how to make one");
    if (!out && !place(at, sizeof(at), o->args[0], ".sig"))
        return cmd_fail(o->page, "the path is too long");
    const struct model_signing_opts so = {.path = o->args[0],
                                          .key = opts_text(o, "key"),
                                          .certificate = opts_text(o, "cert"),
                                          .out = out ? out : at};
    buf_init(&b, OMS_MAX_BYTES);
    int rc = model_signing_sign(&b, &so, &n, &e);
    if (rc == 0)
        rc = file_replace(so.out, buf_str(&b), b.len, &e);
    buf_fini(&b);
    if (rc < 0)
        return cmd_fail(o->page, "%s", e.msg);
    buf_init(&b, 65536);
    struct json_out j = json_out_make(&b);
    if (opts_flag(o, "json")) {
        json_out_object(&j);
        json_out_member_str(&j, "signature", so.out);
        json_out_member_uint(&j, "files", n);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b, "%s: %u %s signed\n", so.out, n, n == 1 ? "file" : "files");
    }
    return cmd_print_end(o->page, &b);
}

int cmd_model_sign(int argc, const char *const *argv)
{
    return cmd_page(&sign_page, argc, argv, sign);
}

struct checking {
    const struct opts *o;
    const char *path, *signature;
    struct signer_anchor *anchor;
    struct buf text; /* the signature */
    struct signed_by by;
    struct oms_bundle bundle;
    struct model_signing_report report;
};

static int check(struct checking *c, struct err *e)
{
    struct minisign m;
    int rc = file_read(c->signature, &c->text, e);
    if (rc == 0 && minisign_is(buf_str(&c->text), c->text.len)) {
        rc = minisign_read(&m, buf_str(&c->text), c->text.len, e);
        c->report.n_checked = 1;
        return rc < 0 ? rc : signer_anchor_check_minisign(c->anchor, &m, c->path, &c->by, e);
    }
    if (rc == 0)
        rc = oms_bundle_read(&c->bundle, buf_str(&c->text), c->text.len, e);
    if (rc == 0)
        rc = signer_anchor_check(c->anchor, &c->bundle, &c->by, e);
    return rc < 0 ? rc : model_signing_compare(&c->report, &c->bundle, c->path, c->signature, e);
}

static void put_json(struct buf *b, const struct checking *c, const char *error)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_bool(&j, "verified", !error);
    json_out_member_str(&j, "signature", c->signature);
    json_out_member_str(&j, "method", signer_method_name(c->by.method));
    json_out_member_str(&j, "key", c->by.key);
    json_out_member_str(&j, "subject", c->by.subject);
    json_out_member_uint(&j, "files", c->report.n_checked);
    json_out_member_array(&j, "differences");
    for (uint32_t i = 0; i < c->report.n_differences && i < MODEL_SIGNING_MAX_SHOWN; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "file", c->report.shown[i].name);
        json_out_member_str(&j, "is", model_signing_change_name(c->report.shown[i].change));
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    if (error)
        json_out_member_str(&j, "error", error);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static int tell(const struct checking *c, int rc, const struct err *e)
{
    struct buf b;
    int code = CMD_OK;
    buf_init(&b, (size_t)1 << 20);
    if (opts_flag(c->o, "json"))
        put_json(&b, c, rc < 0 ? e->msg : NULL);
    else if (rc == 0)
        buf_printf(&b, "%s: %u %s as signed%s%s, by %s %s\n", c->path, c->report.n_checked,
                   c->report.n_checked == 1 ? "file" : "files", c->by.subject[0] ? " by " : "",
                   c->by.subject, signer_method_name(c->by.method), c->by.key);
    code = cmd_print(c->o->page, &b);
    buf_fini(&b);
    return rc < 0 ? cmd_fail(c->o->page, "%s: %s", c->path, e->msg) : code;
}

static int find_signature(struct checking *c, char *at, size_t cap)
{
    struct stat st;
    c->signature = opts_text(c->o, "signature");
    if (c->signature)
        return CMD_OK;
    c->signature = at;
    if (place(at, cap, c->path, ".sig") && stat(at, &st) == 0)
        return CMD_OK;
    if (place(at, cap, c->path, ".minisig") && stat(at, &st) == 0)
        return CMD_OK;
    return cmd_fail(c->o->page, "%s has no signature beside it; say --signature FILE", c->path);
}

static int verify(const struct opts *o)
{
    char at[4096];
    struct err e = {0};
    struct checking c = {.o = o, .path = o->args[0]};
    const struct signer_anchor_opts ao = {.key = opts_text(o, "key"),
                                          .certificates = opts_text(o, "ca"),
                                          .subject = opts_text(o, "subject")};
    if (!ao.key == !ao.certificates)
        return cmd_fail(o->page, "whose signature? say either --key FILE or --ca FILE");
    int code = find_signature(&c, at, sizeof(at));
    if (code != CMD_OK)
        return code;
    if (signer_anchor_open(&c.anchor, &ao, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    buf_init(&c.text, OMS_MAX_BYTES);
    oms_bundle_init(&c.bundle);
    model_signing_report_init(&c.report);
    code = tell(&c, check(&c, &e), &e);
    model_signing_report_fini(&c.report);
    oms_bundle_fini(&c.bundle);
    buf_fini(&c.text);
    signer_anchor_close(c.anchor);
    return code;
}

int cmd_model_verify(int argc, const char *const *argv)
{
    return cmd_page(&verify_page, argc, argv, verify);
}
