/* fuzz_json_scan.c - JSON texts before they are parsed.  A text that passes has no more values
 * than were counted, and no truncated string. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "wire/json_scan.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    size_t n_values, text_bytes;
};

static void look(struct seen *s, const cJSON *j)
{
    for (; j; j = j->next) {
        s->n_values++;
        s->text_bytes += j->string ? strlen(j->string) : 0;
        s->text_bytes += cJSON_IsString(j) ? strlen(j->valuestring) : 0;
        look(s, j->child);
    }
}

/* The bytes of all strings, by cJSON's own rules, including NULs. */
static size_t text_bytes(const char *p, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '"')
            continue;
        for (i++; i < n && p[i] != '"'; i++, sum++)
            i += p[i] == '\\';
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_scan scan;
    struct err e = {0};
    struct seen seen = {0};
    const char *text = (const char *)data + 1;
    if (size < 1)
        return 0;
    int rc = json_scan(&scan, text, size - 1, data[0], &e); /* few values: always counted */
    if (strlen(scan.path) >= sizeof(scan.path) || (rc < 0 && !e.msg[0]))
        abort();
    FUZZ_NOTE("%d %s %s", rc, scan.path, e.msg);
    cJSON *j = rc == 0 ? cJSON_ParseWithLength(text, size - 1) : NULL;
    look(&seen, j);
    if (seen.n_values > data[0])
        abort();
    /* Without \u escapes each character written is one character read. */
    if (j && !memmem(text, size - 1, "\\u", 2) && !j->next) {
        const char *end = NULL;
        cJSON_Delete(cJSON_ParseWithLengthOpts(text, size - 1, &end, false));
        if (end && text_bytes(text, (size_t)(end - text)) != seen.text_bytes)
            abort();
    }
    cJSON_Delete(j);
    return 0;
}
