/* ask_text.c - words and clauses, see ask_text.h. */
#include "flow/home/ask_text.h"

#include <string.h>
#include <utf8proc.h>

#define SPACE " \t\n\v\f\r"

struct ask_words ask_words(struct arena *a, const char *text)
{
    struct ask_words out = {0};
    uint32_t n = 0;
    for (const char *p = text + strspn(text, SPACE); *p; p += strspn(p, SPACE)) {
        p += strcspn(p, SPACE);
        n++;
    }
    out.w = arena_zalloc_n(a, (size_t)n + 1, sizeof(*out.w));
    if (!out.w)
        return out;
    for (const char *p = text + strspn(text, SPACE); *p; p += strspn(p, SPACE)) {
        size_t len = strcspn(p, SPACE);
        out.w[out.n++] = arena_printf(a, "%.*s", (int)len, p);
        p += len;
    }
    return out;
}

const char *ask_join(struct arena *a, const struct ask_words *w, uint32_t from, uint32_t to)
{
    size_t n = 1;
    for (uint32_t i = from; i < to; i++)
        n += strlen(w->w[i]) + 1;
    char *s = arena_bytes(a, n), *p = s;
    if (!s)
        return "";
    for (uint32_t i = from; i < to; i++) {
        if (i > from)
            *p++ = ' ';
        size_t len = strlen(w->w[i]);
        memcpy(p, w->w[i], len);
        p += len;
    }
    *p = '\0';
    return s;
}

const char *ask_lower(struct arena *a, const char *text)
{
    size_t n = strlen(text), at = 0, len = 0;
    /* A lower-case letter may take more bytes than its capital: three at most, for two. */
    char *s = arena_bytes(a, n * 2 + 5);
    if (!s)
        return "";
    while (at < n) {
        utf8proc_int32_t c;
        utf8proc_ssize_t used =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n - at), &c);
        if (used <= 0) { /* no UTF-8: the byte stays */
            s[len++] = text[at++];
            continue;
        }
        len += (size_t)utf8proc_encode_char(utf8proc_tolower(c), (utf8proc_uint8_t *)s + len);
        at += (size_t)used;
    }
    s[len] = '\0';
    return s;
}

const char *ask_trim_end(struct arena *a, const char *text, const char *set)
{
    size_t n = strlen(text);
    while (n > 0 && strchr(set, text[n - 1]))
        n--;
    return arena_printf(a, "%.*s", (int)n, text);
}

const char *ask_plain(struct arena *a, const char *word)
{
    static const char set[] = ".,;:!?\"()";
    while (*word && strchr(set, *word))
        word++;
    return ask_lower(a, ask_trim_end(a, word, set));
}

bool ask_one_of(const char *word, const char *list)
{
    size_t n = strlen(word);
    if (n == 0)
        return false;
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

/* ---- clauses -------------------------------------------------------------------------------- */

static const char verbs[] =
    "turn switch put shut set dim brighten make change adjust open close raise lower lock unlock "
    "start stop run play pause resume skip mute unmute silence activate deactivate enable disable "
    "arm disarm cancel wake remind add remove delete take call text message tell send announce "
    "broadcast find locate calculate increase reduce decrease heat cool warm vacuum mop clean mow "
    "power schedule create book report show read check give bring keep draw pull lift halt abort "
    "restart what what's how is are when where why who do does did will";
static const char polite[] = "ahead also and can could go hey hi i just need now ok okay please "
                             "quickly shoal then to want will would you";
static const char free_verbs[] =
    "announce broadcast let message note remind say send tell text write";
static const char carry_verbs[] = "turn switch put set dim change make bring";
static const char titles[] = "mr. mrs. ms. dr. st.";

struct splitter {
    struct arena *a;
    struct ask_words all, plain; /* the text's words, and the same plain */
    struct ask_words cur;        /* the clause under way, and the same plain */
    const char **cur_plain;
    const char **out;
    uint32_t n_out;
};

static void add_word(struct splitter *s, const char *word, const char *plain)
{
    s->cur_plain[s->cur.n] = plain;
    s->cur.w[s->cur.n++] = word;
}

static void end_clause(struct splitter *s)
{
    if (s->cur.n > 0)
        s->out[s->n_out++] = ask_trim_end(s->a, ask_join(s->a, &s->cur, 0, s->cur.n), ",;");
    s->cur.n = 0;
}

static const char *clause_verb(const struct splitter *s)
{
    for (uint32_t i = 0; i < s->cur.n; i++)
        if (!ask_one_of(s->cur_plain[i], polite))
            return s->cur_plain[i];
    return s->cur.n ? s->cur_plain[0] : "";
}

static bool ends_in(const char *word, const char *set)
{
    size_t n = strlen(word);
    return n > 0 && strchr(set, word[n - 1]);
}

/* "... and the heating on": the verb is meant again. */
static bool verb_again(const struct splitter *s, uint32_t j, const char *verb)
{
    bool goes_somewhere = false;
    for (uint32_t i = 0; i < s->cur.n; i++)
        goes_somewhere |= ask_one_of(s->cur_plain[i], "to on off up down");
    if (!ask_one_of(s->plain.w[j], "the my our all") || !ask_one_of(verb, carry_verbs) ||
        !goes_somewhere)
        return false;
    uint32_t k = j;
    while (k + 1 < s->all.n && !ends_in(s->all.w[k], ",.;!?") &&
           !ask_one_of(s->plain.w[k + 1], "and then"))
        k++;
    bool to = false;
    for (uint32_t i = j; i <= k; i++)
        to |= strcmp(s->plain.w[i], "to") == 0;
    return to || ask_one_of(s->plain.w[k], "on off");
}

/* Does a clause begin here?  Then *at is its first word, and a verb may have been put in front. */
static bool begins(struct splitter *s, uint32_t *at)
{
    const char *last = s->cur.w[s->cur.n - 1];
    bool hard = ends_in(last, ".;!?") && !ask_one_of(ask_lower(s->a, last), titles);
    bool then = false, joined = ends_in(last, ",");
    uint32_t j = *at;
    for (; j < s->all.n && ask_one_of(s->plain.w[j], "and then also please"); j++) {
        then |= strcmp(s->plain.w[j], "then") == 0;
        joined |= ask_one_of(s->plain.w[j], "and then");
    }
    if (j == s->all.n)
        return false;
    const char *verb = clause_verb(s);
    if (hard) {
        end_clause(s);
    } else if (!joined || (ask_one_of(verb, free_verbs) && !then)) {
        return false;
    } else if (ask_one_of(s->plain.w[j], verbs)) {
        end_clause(s);
    } else if (verb_again(s, j, verb)) {
        end_clause(s);
        add_word(s, verb, verb);
    } else {
        return false;
    }
    *at = j;
    return true;
}

uint32_t ask_clauses(struct arena *a, const char *text, const char ***out)
{
    struct splitter s = {.a = a, .all = ask_words(a, text)};
    size_t room = (size_t)s.all.n * 2 + 2; /* a repeated verb is a word more */
    s.plain.w = arena_zalloc_n(a, room, sizeof(*s.plain.w));
    s.cur.w = arena_zalloc_n(a, room, sizeof(*s.cur.w));
    s.cur_plain = arena_zalloc_n(a, room, sizeof(*s.cur_plain));
    s.out = arena_zalloc_n(a, room, sizeof(*s.out));
    *out = s.out;
    if (a->rc < 0)
        return 0;
    for (uint32_t i = 0; i < s.all.n; i++)
        s.plain.w[i] = ask_plain(a, s.all.w[i]);
    bool fresh = true; /* the word at i begins a clause already */
    for (uint32_t i = 0; i < s.all.n;) {
        if (!fresh && s.cur.n > 0 && begins(&s, &i)) {
            fresh = true;
            continue;
        }
        add_word(&s, s.all.w[i], s.plain.w[i]);
        fresh = false;
        i++;
    }
    end_clause(&s);
    return a->rc < 0 ? 0 : s.n_out;
}
