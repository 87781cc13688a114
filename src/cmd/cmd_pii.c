/* cmd_pii.c - shoal pii: finds or masks personal data in a text. */

#include "cmd/cmd.h"
#include "cmd/local/pii_search.h"
#include "wire/json_out.h"

cmd_fn cmd_pii;

#define MAX_TEXT_BYTES ((size_t)64 << 20)

static const struct opts_def defs[] = {
    {"mask", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print the text with [email] and the like in it"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the text from a file"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "pii",
    .arguments = "[TEXT]",
    .max_args = 1,
    .summary = "Finds personal data in a text, or masks it.",
    .details = "Prints a line for each: kind, form, first and last byte, and the text.  The same "
               "rules work in\n'shoal serve' where the configuration has 'privacy'.  Exit code 0, "
               "whether something was\nfound or not.",
    .groups = {OPTS_GROUP("Options", defs), &pii_search_group},
    .examples = "  shoal pii \"write to anna@example.org or call +49 171 2345678\"\n"
                "  shoal pii --mask -f letter.txt\n"
                "  shoal pii --find person,place,email --json \"Anna Schmidt lives in Berlin\"\n",
};

static void put_masked(struct buf *out, const struct pii_search *s, const char *text, size_t n)
{
    size_t at = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        buf_put(out, text + at, s->hits[i].start - at);
        buf_printf(out, "[%s]", pii_kind_name(s->hits[i].kind));
        at = s->hits[i].end;
    }
    buf_put(out, text + at, n - at);
}

static void put_json(struct buf *out, const struct pii_search *s, const char *text, size_t n)
{
    struct json_out j = json_out_make(out);
    struct buf masked;
    buf_init(&masked, 4 * MAX_TEXT_BYTES);
    put_masked(&masked, s, text, n);
    json_out_object(&j);
    json_out_member_array(&j, "found");
    for (uint32_t i = 0; i < s->n; i++) {
        const struct pii_hit *h = &s->hits[i];
        json_out_object(&j);
        json_out_member_str(&j, "kind", pii_kind_name(h->kind));
        if (h->form[0])
            json_out_member_str(&j, "form", h->form);
        json_out_member_uint(&j, "start", h->start);
        json_out_member_uint(&j, "end", h->end);
        json_out_member_strn(&j, "text", text + h->start, h->end - h->start);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_member_strn(&j, "masked", buf_str(&masked), masked.len);
    json_out_object_end(&j);
    buf_putc(out, '\n');
    if (masked.rc < 0)
        out->rc = masked.rc;
    buf_fini(&masked);
}

static void put_lines(struct buf *out, const struct pii_search *s, const char *text)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct pii_hit *h = &s->hits[i];
        buf_printf(out, "%-7s %-13s %6zu %6zu  %.*s\n", pii_kind_name(h->kind),
                   h->form[0] ? h->form : "-", h->start, h->end, (int)(h->end - h->start),
                   text + h->start);
    }
}

int cmd_pii(int argc, const char *const *argv)
{
    struct opts o;
    struct pii_search s = {0};
    struct buf text, out;
    struct err e = {0};
    int exit_code;
    if (!cmd_begin(&o, &page, argc, argv, &exit_code))
        return exit_code;
    buf_init(&text, MAX_TEXT_BYTES);
    buf_init(&out, 8 * MAX_TEXT_BYTES);
    exit_code = pii_search_open(&s, &o);
    if (exit_code == CMD_OK)
        exit_code = cmd_read_text(&o, o.n_args ? o.args[0] : NULL, opts_text(&o, "file"), &text);
    if (exit_code == CMD_OK && pii_search_run(&s, buf_str(&text), text.len, &e) < 0)
        exit_code = cmd_fail(&page, "%s", e.msg);
    if (exit_code == CMD_OK) {
        if (opts_flag(&o, "json"))
            put_json(&out, &s, buf_str(&text), text.len);
        else if (opts_flag(&o, "mask")) {
            put_masked(&out, &s, buf_str(&text), text.len);
            buf_putc(&out, '\n');
        } else
            put_lines(&out, &s, buf_str(&text));
        exit_code = cmd_print(&page, &out);
    }
    pii_search_close(&s);
    buf_fini(&text);
    buf_fini(&out);
    opts_fini(&o);
    return exit_code;
}
