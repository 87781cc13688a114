/* deed_text.c - see deed_text.h. */
#include "config/deed_text.h"

#include <string.h>

#include "base/ascii.h"
#include "wire/json_out.h"

enum word { WORD_ID, WORD_ABILITY, WORD_VALUE, WORD_UNIT, WORD_ACTION, N_WORDS };
static const char *const words[N_WORDS] = {"{id}", "{ability}", "{value}", "{unit}", "{action}"};

/* The word that begins here; N_WORDS: none. */
static enum word word_at(const char *p)
{
    for (int i = 0; i < N_WORDS; i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0)
            return (enum word)i;
    return N_WORDS;
}

/* "{" and letters up to "}": meant as a placeholder. */
static bool looks_like_word(const char *p)
{
    size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
    return n > 0 && p[1 + n] == '}';
}

bool deed_text_ok(const char *pattern)
{
    for (const char *p = pattern; (p = strchr(p, '{')); p++)
        if (word_at(p) == N_WORDS && looks_like_word(p))
            return false;
    return true;
}

static const char *value_of(const struct deed_text_facts *f, enum word w)
{
    const char *v[N_WORDS] = {f->id, f->ability, f->value, f->unit, f->action};
    return v[w] ? v[w] : "";
}

static void put_json(struct buf *out, const char *v)
{
    struct buf b;
    buf_init(&b, out->max);
    struct json_out j = json_out_make(&b);
    json_out_str(&j, v);
    if (b.rc == 0)
        buf_put(out, b.data + 1, b.len - 2); /* without its quotes */
    else
        out->rc = b.rc;
    buf_fini(&b);
}

static void put_url(struct buf *out, const char *v)
{
    for (; *v; v++) {
        bool plain = ascii_is_digit(*v) || ascii_is_letter(*v) || strchr("-._~", *v);
        if (plain)
            buf_putc(out, *v);
        else
            buf_printf(out, "%%%02X", (unsigned char)*v);
    }
}

void deed_text_fill(struct buf *out, const char *pattern, const struct deed_text_facts *f,
                    enum deed_text_form form)
{
    for (const char *p = pattern; *p;) {
        enum word w = *p == '{' ? word_at(p) : N_WORDS;
        if (w == N_WORDS) {
            buf_putc(out, *p++);
            continue;
        }
        p += strlen(words[w]);
        if (form == DEED_TEXT_JSON)
            put_json(out, value_of(f, w));
        else if (form == DEED_TEXT_URL)
            put_url(out, value_of(f, w));
        else
            buf_puts(out, value_of(f, w));
    }
}

bool deed_text_filter(char *out, size_t cap, const char *pattern)
{
    size_t n = 0;
    for (const char *p = pattern; *p;) {
        enum word w = *p == '{' ? word_at(p) : N_WORDS;
        char c = *p;
        if (w == WORD_ID || w == WORD_ABILITY) {
            bool whole = p == pattern || p[-1] == '/';
            p += strlen(words[w]);
            if (!whole || (*p && *p != '/'))
                return false;
            c = '+';
        } else if (w != N_WORDS || strchr("+#", *p)) {
            return false;
        } else {
            p++;
        }
        if (n + 1 >= cap)
            return false;
        out[n++] = c;
    }
    if (cap == 0)
        return false;
    out[n] = '\0';
    return n > 0;
}

bool deed_text_match(const char *pattern, const char *topic, struct str *id, struct str *ability)
{
    *id = *ability = (struct str){NULL, 0};
    for (;;) {
        size_t p = strcspn(pattern, "/"), t = strcspn(topic, "/");
        enum word w = *pattern == '{' ? word_at(pattern) : N_WORDS;
        if (w == WORD_ID || w == WORD_ABILITY)
            *(w == WORD_ID ? id : ability) = (struct str){topic, t};
        else if (p != t || memcmp(pattern, topic, t) != 0)
            return false;
        pattern += p;
        topic += t;
        if (!*pattern || !*topic)
            return !*pattern && !*topic;
        pattern++;
        topic++;
    }
}

bool deed_text_glob(const char *pattern, const char *name)
{
    const char *star = NULL, *back = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            back = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
