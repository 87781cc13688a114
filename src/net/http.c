/* http.c - see http.h: the protocol-independent part. */
#include "net/http.h"

#include <string.h>

#include "base/ascii.h"
#include "base/mem.h"

const char *http_header(const struct http_req *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (r->headers[i].name[0] == name[0] && strcmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

static bool decode(char *out, size_t cap, const char *p, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        char c = p[i] == '+' ? ' ' : p[i];
        if (c == '%' && i + 2 < n && ascii_hex(p[i + 1]) >= 0 && ascii_hex(p[i + 2]) >= 0) {
            c = (char)(ascii_hex(p[i + 1]) * 16 + ascii_hex(p[i + 2]));
            i += 2;
        }
        if (k + 1 >= cap)
            return false;
        out[k++] = c;
    }
    out[k] = '\0';
    return true;
}

bool http_query(const struct http_req *r, const char *name, char *out, size_t cap)
{
    size_t n_name = strlen(name);
    for (const char *p = r->query; *p;) {
        size_t n = strcspn(p, "&");
        if (n > n_name && memcmp(p, name, n_name) == 0 && p[n_name] == '=')
            return decode(out, cap, p + n_name + 1, n - n_name - 1);
        p += n + (p[n] == '&');
    }
    return false;
}

const char *http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } table[] = {{100, "Continue"},
                 {101, "Switching Protocols"},
                 {200, "OK"},
                 {201, "Created"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {206, "Partial Content"},
                 {304, "Not Modified"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {415, "Unsupported Media Type"},
                 {416, "Range Not Satisfiable"},
                 {421, "Misdirected Request"},
                 {422, "Unprocessable Content"},
                 {426, "Upgrade Required"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {499, "Client Closed Request"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {502, "Bad Gateway"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].status == status)
            return table[i].text;
    return "Unknown";
}

void http_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                int64_t body_bytes)
{
    r->status = status;
    r->ops->begin(r, status, headers, n, body_bytes);
}

void http_write(struct http_req *r, const void *p, size_t n)
{
    if (n == 0)
        return;
    r->sent_bytes += n;
    r->ops->write(r, p, n);
}

void http_end_trailers(struct http_req *r, const struct http_header *trailers, size_t n)
{
    r->ops->end(r, trailers, n);
}

void http_end(struct http_req *r)
{
    r->ops->end(r, NULL, 0);
}

void http_take(struct http_req *r, size_t n)
{
    if (r->take && n > 0)
        r->take(r, n);
}

char *http_take_body(struct http_req *r)
{
    char *body = r->take_body ? r->take_body(r) : mem_strndup(r->body, r->body_bytes);
    r->body = "";
    r->body_bytes = 0;
    return body;
}

size_t http_queued(const struct http_req *r)
{
    return r->ops->queued(r);
}
