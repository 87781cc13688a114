/* test_doc.c - documents of every format become sections with headings, pages and clean text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/doc/doc_pdf.h"
#include "support/doc_check.h"

#define LONG_LINE                                                                                  \
    "This first line goes on and on and on and on and on and on and on and on and on and on and "  \
    "on and on and on and on and on and on and on."

/* "heading|page|ref|text" of each section, followed by a newline. */
static void list(const struct doc *d, char *out, size_t cap)
{
    const char *base = buf_str(&d->text);
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < d->n_sections; i++) {
        const struct doc_section *s = &d->sections[i];
        int k = snprintf(out + n, cap - n, "%.*s|%u|%.*s|%.*s\n", (int)s->heading_bytes,
                         base + s->heading_at, s->page, (int)s->ref_bytes, base + s->ref_at,
                         (int)s->text_bytes, base + s->text_at);
        assert_true(k > 0 && (size_t)k < cap - n);
        n += (size_t)k;
    }
}

static void test_every_format(void **state)
{
    static const struct {
        const char *why;
        enum doc_format format;
        const char *bytes, *title, *sections;
    } cases[] = {
        {"the first line of a text is its title", DOC_TEXT, "The pump\n\nIt runs.\n", "The pump",
         "|0||The pump\n\nIt runs.\n"},
        {"a long first line is no title", DOC_TEXT, LONG_LINE "\n", "", "|0||" LONG_LINE "\n"},
        {"bytes that are no UTF-8", DOC_TEXT, "caf\xe9 x", "caf\xef\xbf\xbd x",
         "|0||caf\xef\xbf\xbd x\n"},
        {"Markdown headings are a path", DOC_MARKDOWN,
         "# Pump\n\nIntro.\n## Install\n### Linux\nRun [make](x).\n## Use\ngo\n", "Pump",
         "Pump|0||Intro.\nInstall > Linux|0||Run make.\nUse|0||go\n"},
        {"underlined headings, code and front matter", DOC_MARKDOWN,
         "---\ntitle: 'T'\n---\nHead\n====\n```\n# code\n```\n", "T", "Head|0||# code\n"},
        {"HTML: entities, scripts, headings", DOC_HTML,
         "<title>A &amp; B</title><body><script>if (a<b)</script><p>x &lt; 3 &#176;C</p>"
         "<h2 id='a>b'>Two <i>words</i></h2>y<br>z",
         "A & B",
         "|0||x < 3 \xc2\xb0"
         "C\nTwo words|0||y\nz\n"},
        {"JSON lines: id, title, page", DOC_JSONL,
         "{\"id\":7,\"title\":\"t\",\"text\":\"one\"}\n\n{\"content\":\"two\",\"page\":3}\n", "",
         "t|0|7|one\n|3||two\n"},
    };
    char got[4096];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct doc d;
        struct err e = {0};
        doc_init(&d);
        int rc = doc_read(&d, cases[i].format, cases[i].bytes, strlen(cases[i].bytes), "x", &e);
        if (rc < 0)
            fail_msg("%s: %s", cases[i].why, e.msg);
        list(&d, got, sizeof(got));
        if (strcmp(got, cases[i].sections) != 0 || strcmp(d.title, cases[i].title) != 0)
            fail_msg("%s: title '%s', got\n%swant '%s'\n%s", cases[i].why, d.title, got,
                     cases[i].title, cases[i].sections);
        doc_check(&d);
        doc_fini(&d);
    }
}

/* Each becomes its character; what is none stays as it is. */
static void test_entities(void **state)
{
    static const char *const cases[][2] = {
        {"&amp;", "&"},
        {"&lt;", "<"},
        {"&gt;", ">"},
        {"&quot;", "\""},
        {"&apos;", "'"},
        {"&ndash;", "\342\200\223"},
        {"&mdash;", "\342\200\224"},
        {"&hellip;", "\342\200\246"},
        {"&lsquo;", "\342\200\230"},
        {"&rsquo;", "\342\200\231"},
        {"&ldquo;", "\342\200\234"},
        {"&rdquo;", "\342\200\235"},
        {"&deg;", "\302\260"},
        {"&euro;", "\342\202\254"},
        {"&pound;", "\302\243"},
        {"&copy;", "\302\251"},
        {"&reg;", "\302\256"},
        {"&trade;", "\342\204\242"},
        {"&times;", "\303\227"},
        {"&auml;", "\303\244"},
        {"&ouml;", "\303\266"},
        {"&uuml;", "\303\274"},
        {"&szlig;", "\303\237"},
        {"&Auml;", "\303\204"},
        {"&Ouml;", "\303\226"},
        {"&Uuml;", "\303\234"},
        {"&eacute;", "\303\251"},
        {"&egrave;", "\303\250"},
        {"&agrave;", "\303\240"},
        {"&ccedil;", "\303\247"},
        {"&ntilde;", "\303\261"},
        {"&micro;", "\302\265"},
        {"&middot;", "\302\267"},
        {"&bull;", "\342\200\242"},
        {"&plusmn;", "\302\261"},
        {"&#65;", "A"},
        {"&#x41;", "A"},
        {"&#X41;", "A"},
        {"&#x1F600;", "\360\237\230\200"},
        {"&#1114111;", "\364\217\277\277"},
        {"&nosuch;", "&nosuch;"},
        {"&amp", "&amp"},
        {"& amp;", "& amp;"},
        {"&;", "&;"},
        {"&#;", "&#;"},
        {"&#x;", "&#x;"},
        {"&#0;", "&#0;"},
        {"&#xd800;", "&#xd800;"},
        {"&#xdfff;", "&#xdfff;"},
        {"&#1114112;", "&#1114112;"},
        {"&#x4g;", "&#x4g;"},
        {"&#4a;", "&#4a;"},
        {"a&nbsp;b", "a b"},
        {"a &nbsp; b", "a b"},
        {"&#xd7ff;&#xe000;", "\355\237\277\356\200\200"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char bytes[64], want[64], got[256];
        struct doc d;
        struct err e = {0};
        doc_init(&d);
        snprintf(bytes, sizeof(bytes), "<p>x%sy</p>", cases[i][0]);
        snprintf(want, sizeof(want), "|0||x%sy\n", cases[i][1]);
        if (doc_read(&d, DOC_HTML, bytes, strlen(bytes), "x", &e) < 0)
            fail_msg("%s", e.msg);
        list(&d, got, sizeof(got));
        assert_string_equal(got, want);
        doc_fini(&d);
    }
}

static void test_pages(void **state)
{
    static const char text[] = "Manual\nfirst\n\fsecond\n\f";
    struct doc d;
    struct err e = {0};
    (void)state;
    doc_init(&d);
    assert_int_equal(doc_pages_read(&d, text, sizeof(text) - 1, &e), 0);
    assert_int_equal(d.n_sections, 2);
    assert_int_equal(d.sections[1].page, 2);
    assert_string_equal(d.title, "Manual");
    doc_fini(&d);
}

static void test_bad_lines_say_where(void **state)
{
    struct doc d;
    struct err e = {0};
    (void)state;
    doc_init(&d);
    assert_int_equal(doc_read(&d, DOC_JSONL, "{\"text\":\"a\"}\n{\"x\":1}\n", 22, "f.jsonl", &e),
                     SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "f.jsonl: line 2 has no \"text\""));
    doc_fini(&d);
}

static void test_formats_by_name(void **state)
{
    enum doc_format f;
    (void)state;
    assert_int_equal(doc_format_of("a/B.MD"), DOC_MARKDOWN);
    assert_int_equal(doc_format_of("x.htm"), DOC_HTML);
    assert_int_equal(doc_format_of("x.jsonl"), DOC_JSONL);
    assert_int_equal(doc_format_of(".pdf"), DOC_TEXT);
    assert_int_equal(doc_format_of("x"), DOC_TEXT);
    assert_true(doc_format_find("html", &f) && f == DOC_HTML);
    assert_false(doc_format_find("docx", &f));
}

/* A PDF of two pages, made here. */
static void make_pdf(struct buf *b)
{
    static const char *const objects[] = {
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R 5 0 R] /Count 2 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font "
        "<< /F 7 0 R >> >> >>",
        "<< /Length 47 >>\nstream\nBT /F 12 Tf 20 100 Td (Valve manual) Tj ET    \n\nendstream",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 6 0 R /Resources << /Font "
        "<< /F 7 0 R >> >> >>",
        "<< /Length 47 >>\nstream\nBT /F 12 Tf 20 100 Td (Close at 80 C) Tj ET   \n\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"};
    size_t at[8];
    buf_puts(b, "%PDF-1.4\n");
    for (size_t i = 0; i < 7; i++) {
        at[i] = b->len;
        buf_printf(b, "%zu 0 obj\n%s\nendobj\n", i + 1, objects[i]);
    }
    size_t xref = b->len;
    buf_puts(b, "xref\n0 8\n0000000000 65535 f \n");
    for (size_t i = 0; i < 7; i++)
        buf_printf(b, "%010zu 00000 n \n", at[i]);
    buf_printf(b, "trailer\n<< /Size 8 /Root 1 0 R >>\nstartxref\n%zu\n%%%%EOF\n", xref);
}

static void test_pdf(void **state)
{
    struct doc d;
    struct buf b;
    struct err e = {0};
    char got[1024];
    (void)state;
    buf_init(&b, 65536);
    doc_init(&d);
    make_pdf(&b);
    /* the first bytes decide, whatever the name says */
    int rc = doc_read(&d, DOC_TEXT, buf_str(&b), b.len, "x.pdf", &e);
    if (rc == SHOAL_EUNSUPPORTED) { /* a build machine without it: the message says what to do */
        assert_non_null(strstr(e.msg, "poppler-utils"));
        doc_fini(&d);
        buf_fini(&b);
        return;
    }
    if (rc < 0)
        fail_msg("%s", e.msg);
    list(&d, got, sizeof(got));
    assert_string_equal(got, "|1||Valve manual\n|2||Close at 80 C\n");
    assert_string_equal(d.title, "Valve manual");
    doc_fini(&d);
    doc_init(&d);
    assert_int_equal(doc_pdf_read(&d, "%PDF-1.4 and nothing", 20, &e), SHOAL_EFORMAT);
    doc_fini(&d);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format),    cmocka_unit_test(test_entities),
        cmocka_unit_test(test_pages),           cmocka_unit_test(test_bad_lines_say_where),
        cmocka_unit_test(test_formats_by_name), cmocka_unit_test(test_pdf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
