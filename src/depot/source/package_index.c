/* package_index.c - see package_index.h. */
#include "depot/source/package_index.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "depot/source/web.h"
#include "wire/json_in.h"

#define MAX_PAGE_BYTES ((size_t)16 << 20)

/* The last part of a URL, without query and fragment, is `file`. */
static bool names_file(const char *url, size_t n, const char *file)
{
    for (size_t i = 0; i < n; i++)
        if (url[i] == '#' || url[i] == '?')
            n = i;
    size_t k = strlen(file);
    return n >= k && memcmp(url + n - k, file, k) == 0 && (n == k || url[n - k - 1] == '/');
}

/* The characters that a link may have escaped. */
static void put_unescaped(struct buf *out, const char *p, size_t n)
{
    static const struct {
        const char *from;
        char to;
    } entities[] = {{"&amp;", '&'}, {"&#43;", '+'}, {"&#x2B;", '+'}};
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        for (; k < 3; k++)
            if (strncasecmp(p + i, entities[k].from, strlen(entities[k].from)) == 0)
                break;
        if (k < 3) {
            buf_putc(out, entities[k].to);
            i += strlen(entities[k].from);
        } else {
            buf_putc(out, p[i++]);
        }
    }
}

/* A link of a page as a whole URL, without its fragment. */
static int resolve(struct buf *url, const char *link, size_t n, const char *page, struct err *e)
{
    char origin[256];
    const char *hash = memchr(link, '#', n);
    n = hash ? (size_t)(hash - link) : n;
    buf_clear(url);
    web_origin(origin, sizeof(origin), page);
    if (n > 0 && link[0] == '/' && !(n > 1 && link[1] == '/')) {
        buf_puts(url, origin);
    } else if (!(n > 7 && web_is_url(link))) {
        size_t dir = strcspn(page, "?#");
        while (dir > 0 && page[dir - 1] != '/')
            dir--;
        buf_put(url, page, dir);
        for (; n >= 3 && memcmp(link, "../", 3) == 0 && url->len > strlen(origin) + 1;
             link += 3, n -= 3) {
            url->len--;
            while (url->len > 0 && url->data[url->len - 1] != '/')
                url->len--;
        }
    }
    put_unescaped(url, link, n);
    return url->rc < 0 ? err_set(e, url->rc, "a link of the index is too long") : 0;
}

int package_index_pypi(struct buf *url, const char *html, size_t n, const char *page,
                       const char *file, struct err *e)
{
    const char *end = html + n;
    for (const char *p = html; (p = memmem(p, (size_t)(end - p), "href=", 5));) {
        p += 5;
        if (p == end || (*p != '"' && *p != '\''))
            continue;
        const char *link = p + 1, *close = memchr(link, *p, (size_t)(end - link));
        if (!close)
            break;
        if (names_file(link, (size_t)(close - link), file))
            return resolve(url, link, (size_t)(close - link), page, e);
        p = close;
    }
    return err_set(e, SHOAL_ENOTFOUND, "the index has no file %.100s", file);
}

int package_index_npm(struct buf *url, const char *json, size_t n, struct err *e)
{
    cJSON *root = NULL;
    int rc = json_in_object(&root, "description of the package", json, n, MAX_PAGE_BYTES, e);
    const char *link = cJSON_GetStringValue(json_in_item(json_in_item(root, "dist"), "tarball"));
    if (rc == 0 && (!link || !web_is_url(link)))
        rc = err_set(e, SHOAL_EFORMAT, "the description of the package names no tarball");
    if (rc == 0) {
        buf_clear(url);
        buf_puts(url, link);
        rc = url->rc;
    }
    cJSON_Delete(root);
    return rc;
}
