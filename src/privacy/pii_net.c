/* pii_net.c - see pii_int.h: e-mail addresses and IP addresses. */
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "privacy/pii_int.h"

#define MAX_LOCAL 64u
#define MAX_DOMAIN 253u
#define MAX_LABEL 63u

/* ---- e-mail ---- */

/* Names of files that look like addresses: icon@2x.png. */
static bool is_file_ending(const char *p, size_t n)
{
    static const char *const endings[] = {"png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css",
                                          "js",  "ts",  "json", "py",  "so",  "dll",  "exe", "zip"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strlen(endings[i]) == n && strncasecmp(p, endings[i], n) == 0)
            return true;
    return false;
}

/* End of the local part that begins at `at`, at its '@'; 0: none. */
static size_t local_end(const struct pii_scan *s, size_t at)
{
    size_t i = at, bytes;
    while (i < s->n && i - at <= MAX_LOCAL) {
        char c = s->p[i];
        if (c == '@')
            return i > at && s->p[i - 1] != '.' ? i : 0;
        if (c == '.' && i + 1 < s->n && s->p[i + 1] == '.')
            return 0;
        bool sign = c && strchr("._%+-'", c) != NULL;
        enum pii_char k = pii_text_at(s, i, &bytes);
        if (!sign && k == PII_OTHER)
            return 0;
        i += bytes;
    }
    return 0;
}

/* End of the domain that begins at `at`; 0: invalid. *last: start of its last label. */
static size_t domain_end(const struct pii_scan *s, size_t at, size_t *last)
{
    size_t i = at, end = 0, label = at, bytes;
    *last = 0;
    while (i < s->n && i - at < MAX_DOMAIN) {
        enum pii_char k = pii_text_at(s, i, &bytes);
        bool dash = s->p[i] == '-' && i > label;
        if (k != PII_OTHER || dash) {
            if (i - label > MAX_LABEL)
                return 0;
            i += bytes;
            if (!dash) { /* a label does not end with a dash */
                end = i;
                *last = label;
            }
            continue;
        }
        if (s->p[i] != '.' || end != i || pii_text_at(s, i + 1, &bytes) == PII_OTHER)
            break;
        label = ++i;
    }
    return end;
}

bool pii_net_email(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    size_t sign = local_end(s, at), last, bytes;
    size_t end = sign ? domain_end(s, sign + 1, &last) : 0;
    if (!end || last <= sign + 1 || end - last < 2)
        return false;
    bool xn = end - last > 4 && strncasecmp(s->p + last, "xn--", 4) == 0;
    for (size_t i = last; i < end && !xn; i += bytes)
        if (pii_text_at(s, i, &bytes) != PII_LETTER)
            return false;
    if (is_file_ending(s->p + last, end - last))
        return false;
    /* git@host.org:path is a place of a repository */
    if (end + 1 < s->n && s->p[end] == ':' && pii_text_at(s, end + 1, &bytes) == PII_LETTER)
        return false;
    *h = (struct pii_hit){.kind = PII_EMAIL, .form = "", .start = at, .end = end};
    return true;
}

/* ---- IPv4 ---- */

static bool octet(const struct pii_scan *s, size_t *at, uint32_t *value)
{
    size_t i = *at, from = i;
    uint32_t v = 0;
    while (i < s->n && ascii_is_digit(s->p[i]) && i - from < 4)
        v = v * 10 + (uint32_t)(s->p[i++] - '0');
    if (i == from || v > 255 || (i - from > 1 && s->p[from] == '0') || i - from > 3)
        return false;
    *at = i;
    *value = v;
    return true;
}

static bool ip4_text(const struct pii_scan *s, size_t *at, uint32_t o[4])
{
    size_t i = *at;
    for (int k = 0; k < 4; k++) {
        if (k > 0 && (i >= s->n || s->p[i++] != '.'))
            return false;
        if (!octet(s, &i, &o[k]))
            return false;
    }
    *at = i;
    return true;
}

bool pii_net_ip4(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    uint32_t o[4];
    size_t end = at;
    if (!ip4_text(s, &end, o) || !pii_text_ends(s, end))
        return false;
    /* loopback, unspecified and broadcast addresses identify no person */
    if (o[0] == 127 || o[0] == 0 || o[0] == 255)
        return false;
    if (pii_text_after_word(s, at, "version|ver|release|firmware|build|chapter|section|revision"))
        return false;
    *h = (struct pii_hit){.kind = PII_IP, .form = "ipv4", .start = at, .end = end};
    return true;
}

/* ---- IPv6 ---- */

struct ip6 {
    size_t end;
    uint32_t n_groups;
    bool gap, digit;
};

/* The longest address at `at`, by the grammar. */
static bool ip6_text(const struct pii_scan *s, size_t at, struct ip6 *x)
{
    size_t i = at;
    *x = (struct ip6){0};
    if (i + 1 < s->n && s->p[i] == ':' && s->p[i + 1] == ':') {
        x->gap = true;
        i += 2;
        x->end = i;
    }
    while (x->n_groups < 8) {
        size_t from = i, dotted = i;
        uint32_t o[4];
        if (x->n_groups > 0 && x->n_groups <= 6 && ip4_text(s, &dotted, o)) {
            x->n_groups += 2;
            x->end = dotted;
            x->digit = true;
            break;
        }
        while (i < s->n && ascii_hex(s->p[i]) >= 0 && i - from < 5)
            x->digit |= s->p[i++] < 'A';
        if (i == from || i - from > 4)
            break;
        x->n_groups++;
        x->end = i;
        if (i + 1 >= s->n || s->p[i] != ':')
            break;
        if (s->p[i + 1] == ':') {
            if (x->gap)
                break;
            x->gap = true;
            i += 2;
            x->end = i;
        } else {
            i++;
        }
    }
    return x->gap ? x->n_groups > 0 && x->n_groups < 8 : x->n_groups == 8;
}

bool pii_net_ip6(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    struct ip6 x;
    size_t bytes;
    if (at > 0 && (s->p[at - 1] == ':' || s->p[at - 1] == '_'))
        return false;
    if (s->p[at] == ':' && pii_text_before(s, at, &bytes) != PII_OTHER)
        return false;
    if (!ip6_text(s, at, &x) || !x.digit || x.n_groups < 2)
        return false; /* ::1 is this machine; words with :: between them are names of code */
    bool more = x.end < s->n && (s->p[x.end] == ':' || s->p[x.end] == '_');
    if (more || pii_text_at(s, x.end, &bytes) != PII_OTHER)
        return false;
    *h = (struct pii_hit){.kind = PII_IP, .form = "ipv6", .start = at, .end = x.end};
    return true;
}
