/* multipart.c - see multipart.h. */
#include "wire/multipart.h"

#include <string.h>
#include <strings.h>

#define MAX_HEAD ((size_t)16 << 10) /* of a part */

static const char *find(const char *p, const char *end, const char *what, size_t n)
{
    return end - p < (ptrdiff_t)n ? NULL : memmem(p, (size_t)(end - p), what, n);
}

/* The value of `key` in parameters such as  form-data; name="file"; filename="a.wav".  A name that
 * is the end of another does not count.  False: there is none. */
static bool parameter(const char *p, const char *end, const char *key, struct str *out)
{
    const size_t n = strlen(key);
    while ((p = memchr(p, ';', (size_t)(end - p)))) {
        for (p++; p < end && (*p == ' ' || *p == '\t'); p++)
            ;
        if ((size_t)(end - p) <= n || strncasecmp(p, key, n) != 0 || p[n] != '=')
            continue;
        p += n + 1;
        const bool quoted = p < end && *p == '"';
        const char *from = p + quoted, *to = from;
        while (to < end && (quoted ? *to != '"' : *to != ';' && *to != ' '))
            to++;
        *out = (struct str){from, (size_t)(to - from)};
        return !quoted || to < end;
    }
    return false;
}

int multipart_open(struct multipart *m, const char *type, const char *body, size_t n, struct err *e)
{
    struct str boundary;
    if (!type || strncasecmp(type, "multipart/form-data", 19) != 0 ||
        !parameter(type, type + strlen(type), "boundary", &boundary))
        return err_set(e, SHOAL_EFORMAT,
                       "the body must be a form: multipart/form-data with a boundary");
    if (boundary.n == 0 || boundary.n > MULTIPART_MAX_BOUNDARY)
        return err_set(e, SHOAL_EFORMAT, "the boundary of the form must have 1 to %u characters",
                       MULTIPART_MAX_BOUNDARY);
    memcpy(m->mark, "\r\n--", 4);
    memcpy(m->mark + 4, boundary.p, boundary.n);
    m->mark_bytes = boundary.n + 4;
    m->end = body + n;
    /* the first mark may stand at the very beginning, without its line end */
    if (n >= m->mark_bytes - 2 && memcmp(body, m->mark + 2, m->mark_bytes - 2) == 0) {
        m->at = body + m->mark_bytes - 2;
        return 0;
    }
    m->at = find(body, m->end, m->mark, m->mark_bytes);
    if (!m->at)
        return err_set(e, SHOAL_EFORMAT, "the form does not have the boundary that its type says");
    m->at += m->mark_bytes;
    return 0;
}

/* The headers of a part, of which one is needed. */
static int read_head(struct multipart_part *out, const char *p, const char *end, struct err *e)
{
    static const char key[] = "content-disposition:";
    while (p < end) {
        const char *line = find(p, end, "\r\n", 2);
        line = line ? line : end;
        if ((size_t)(line - p) >= sizeof(key) - 1 && strncasecmp(p, key, sizeof(key) - 1) == 0) {
            if (!parameter(p, line, "name", &out->name))
                break;
            if (!parameter(p, line, "filename", &out->file_name))
                out->file_name = (struct str){NULL, 0};
            return 0;
        }
        p = line + 2 < end ? line + 2 : end;
    }
    return err_set(e, SHOAL_EFORMAT, "a part of the form has no name");
}

int multipart_next(struct multipart *m, struct multipart_part *out, struct err *e)
{
    *out = (struct multipart_part){.name = {NULL, 0}};
    if (m->end - m->at >= 2 && memcmp(m->at, "--", 2) == 0)
        return 0;
    while (m->at < m->end && (*m->at == ' ' || *m->at == '\t'))
        m->at++;
    if (m->end - m->at < 2 || memcmp(m->at, "\r\n", 2) != 0)
        return err_set(e, SHOAL_EFORMAT, "the form is cut off: its last boundary is missing");
    const char *limit = m->end - m->at > (ptrdiff_t)MAX_HEAD ? m->at + MAX_HEAD : m->end;
    const char *blank = find(m->at, limit, "\r\n\r\n", 4);
    if (!blank)
        return err_set(e, SHOAL_EFORMAT, "a part of the form has no end of its headers");
    int rc = read_head(out, m->at + 2, blank, e);
    if (rc < 0)
        return rc;
    /* the line end before the mark may be the one that ends the headers: an empty part */
    const char *mark = find(blank + 2, m->end, m->mark, m->mark_bytes);
    if (!mark)
        return err_set(e, SHOAL_EFORMAT, "the form is cut off: its last boundary is missing");
    out->content.p = blank + 4;
    out->content.n = mark > blank + 4 ? (size_t)(mark - (blank + 4)) : 0;
    m->at = mark + m->mark_bytes;
    return 1;
}
