/* doc_jsonl.c - JSON lines: one object per line, with its text and metadata.
 *
 * "text" (or "content", "body", "context") is the text; "title" or "heading", "id" and "page" are
 * kept with it. Other members are ignored. */
#include <stdio.h>
#include <string.h>

#include "store/doc/doc.h"
#include "wire/json_in.h"
#include "wire/json_scan.h"

#define MAX_LINE_BYTES ((size_t)16 << 20)
#define MAX_LINE_VALUES 65536u

static const char *first_text(const cJSON *line, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(line, keys[i]);
        if (cJSON_IsString(v) && v->valuestring[0])
            return v->valuestring;
    }
    return NULL;
}

static void put_ref(struct doc *d, const cJSON *id)
{
    char number[32];
    if (cJSON_IsString(id))
        doc_section_ref(d, id->valuestring, strlen(id->valuestring));
    else if (cJSON_IsNumber(id)) {
        int n = snprintf(number, sizeof(number), "%.15g", id->valuedouble);
        doc_section_ref(d, number, (size_t)n);
    }
}

static int take_line(struct doc *d, const char *p, size_t n, size_t number, struct err *e)
{
    static const char *const texts[] = {"text", "content", "body", "context"};
    static const char *const heads[] = {"title", "heading"};
    cJSON *line = NULL;
    struct json_scan scan;
    int rc = json_scan(&scan, p, n, MAX_LINE_VALUES, e);
    if (rc == 0)
        rc = json_in_object(&line, "line", p, n, MAX_LINE_BYTES, e);
    if (rc < 0)
        return err_wrap(e, "line %zu", number);
    const char *text = first_text(line, texts, 4), *heading = first_text(line, heads, 2);
    const cJSON *page = cJSON_GetObjectItemCaseSensitive(line, "page");
    if (text) {
        bool has_page = cJSON_IsNumber(page) && page->valuedouble >= 1 && page->valuedouble <= 1e9;
        doc_section_begin(d, heading ? heading : "", heading ? strlen(heading) : 0,
                          has_page ? (uint32_t)page->valuedouble : 0);
        put_ref(d, cJSON_GetObjectItemCaseSensitive(line, "id"));
        doc_section_put(d, text, strlen(text));
    } else {
        rc = err_set(e, SHOAL_EFORMAT, "line %zu has no \"text\": write {\"text\": \"...\"}",
                     number);
    }
    cJSON_Delete(line);
    return rc;
}

int doc_jsonl_read(struct doc *d, const char *p, size_t n, struct err *e)
{
    int rc = 0;
    size_t number = 0;
    for (size_t at = 0; at < n && rc == 0 && d->text.rc == 0;) {
        const char *end = memchr(p + at, '\n', n - at);
        size_t k = end ? (size_t)(end - p) - at : n - at, m = k;
        number++;
        while (m > 0 && (p[at + m - 1] == '\r' || p[at + m - 1] == ' '))
            m--;
        if (m > 0)
            rc = take_line(d, p + at, m, number, e);
        at += k + 1;
    }
    return rc;
}
