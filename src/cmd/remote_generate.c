/* remote_generate.c - see remote_generate.h. */
#include "cmd/remote_generate.h"

#include <stdio.h>
#include <unistd.h>

#include "base/plural.h"
#include "cmd/remote.h"

#define MAX_BYTES ((size_t)256 << 20)

struct remote_text {
    bool json;
    struct buf text;
};

static void on_text(void *ctx, const char *p, size_t n)
{
    struct remote_text *t = ctx;
    buf_put(&t->text, p, n);
    if (t->json)
        return;
    fwrite(p, 1, n, stdout);
    fflush(stdout);
}

static void put_result(struct buf *b, const struct remote_model *r, const struct buf *text)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "model", r->model);
    json_out_member_strn(&j, "text", buf_str(text), text->len);
    json_out_member_str(&j, "finish", r->finish);
    json_out_member_uint(&j, "prompt_tokens", r->prompt_tokens);
    json_out_member_uint(&j, "cached_tokens", r->cached_tokens);
    json_out_member_uint(&j, "generated_tokens", r->generated_tokens);
    json_out_member_num(&j, "first_token_ms", (double)r->first_token_ns / 1e6);
    json_out_member_num(&j, "total_ms", (double)r->total_ns / 1e6);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static int conclude(const struct opts *o, const struct remote_model *r, const struct remote_text *t)
{
    int rc = CMD_OK;
    if (t->json) {
        struct buf b;
        buf_init(&b, MAX_BYTES);
        put_result(&b, r, &t->text);
        rc = cmd_print(o->page, &b);
        buf_fini(&b);
    } else if (isatty(STDOUT_FILENO) && t->text.len > 0 && t->text.data[t->text.len - 1] != '\n') {
        putchar('\n');
    }
    if (rc == CMD_OK && (fflush(stdout) != 0 || ferror(stdout)))
        rc = cmd_fail(o->page, "cannot write: %m");
    if (opts_flag(o, "stats"))
        fprintf(stderr, "%u prompt token%s (%u cached), %u generated, first after %.1f ms, %s\n",
                r->prompt_tokens, plural(r->prompt_tokens), r->cached_tokens, r->generated_tokens,
                (double)r->first_token_ns / 1e6, r->finish);
    return rc == CMD_OK && r->cancelled ? CMD_INTERRUPTED : rc;
}

int remote_generate(const struct opts *o, const struct buf *prompt, int interrupt_fd)
{
    static const char *const not_there[] = {"tokens",   "continued", "special",     "ignore-end",
                                            "logprobs", "stream",    "deadline-ms", "json-schema",
                                            "grammar",  "regex",     "choice"};
    struct remote_text t = {.json = opts_flag(o, "json")};
    struct remote_model r;
    struct buf body;
    struct err e = {0};
    for (size_t i = 0; i < sizeof(not_there) / sizeof(not_there[0]); i++)
        if (opts_given(o, not_there[i]))
            return opts_usage(o->page,
                              "--%s works with a model of this process: leave it out, or leave out "
                              "the server",
                              not_there[i]);
    int rc = remote_init(&r, o, interrupt_fd);
    buf_init(&body, MAX_BYTES);
    buf_init(&t.text, MAX_BYTES);
    if (rc == CMD_OK) {
        struct json_out j = json_out_make(&body);
        json_out_object(&j);
        json_out_member_strn(&j, "prompt", buf_str(prompt), prompt->len);
        remote_put_options(&j, o);
        json_out_object_end(&j);
        r.text = on_text;
        r.ctx = &t;
        if (opts_flag(o, "echo") && !t.json)
            fwrite(buf_str(prompt), 1, prompt->len, stdout);
        rc = remote_run(&r, "/v1/completions", &body, &e) < 0 ? cmd_fail(o->page, "%s", e.msg)
                                                              : conclude(o, &r, &t);
    }
    buf_fini(&t.text);
    buf_fini(&body);
    remote_fini(&r);
    return rc;
}
