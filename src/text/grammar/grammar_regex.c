/* grammar_regex.c - see grammar_regex.h. */
#include "text/grammar/grammar_regex.h"

#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "text/grammar/grammar_tree.h"

#define MAX_DEPTH 100u
#define MAX_RANGES 512u

struct regex {
    struct grammar_tree *t;
    const char *start, *p, *end;
    unsigned flags;
    uint32_t depth;
};

struct ranges {
    struct grammar_tree_range r[MAX_RANGES];
    uint32_t n;
};

static uint32_t fail(struct regex *x, const char *what)
{
    return grammar_tree_fail(x->t, SHOAL_EINVAL, "character %zu of the regular expression: %s",
                             (size_t)(x->p - x->start) + 1, what);
}

static bool ok(const struct regex *x)
{
    return grammar_tree_rc(x->t) == 0;
}

static char peek(const struct regex *x)
{
    return x->p < x->end ? *x->p : '\0';
}

static bool at(const struct regex *x, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(x->end - x->p) >= n && memcmp(x->p, text, n) == 0;
}

/* ---- characters ---- */

static void add_range(struct regex *x, struct ranges *r, uint32_t lo, uint32_t hi)
{
    if (r->n == MAX_RANGES) {
        fail(x, "a class has too many characters");
        return;
    }
    r->r[r->n++] = (struct grammar_tree_range){lo, hi};
}

/* The sets \d \w \s, and their opposites. */
static bool add_set(struct regex *x, struct ranges *r, char c)
{
    static const struct grammar_tree_range digits[] = {{'0', '9'}},
                                           words[] = {{'0', '9'},
                                                      {'A', 'Z'},
                                                      {'_', '_'},
                                                      {'a', 'z'}},
                                           spaces[] = {{9, 13},          {' ', ' '},
                                                       {0xa0, 0xa0},     {0x1680, 0x1680},
                                                       {0x2000, 0x200a}, {0x2028, 0x2029},
                                                       {0x202f, 0x202f}, {0x205f, 0x205f},
                                                       {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    const struct grammar_tree_range *set;
    size_t n;
    switch (c | 32) {
    case 'd':
        set = digits, n = 1;
        break;
    case 'w':
        set = words, n = 4;
        break;
    case 's':
        set = spaces, n = sizeof(spaces) / sizeof(spaces[0]);
        break;
    default:
        return false;
    }
    uint32_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (c >= 'a')
            add_range(x, r, set[i].lo, set[i].hi);
        else if (set[i].lo > from)
            add_range(x, r, from, set[i].lo - 1);
        from = set[i].hi + 1;
    }
    if (c < 'a')
        add_range(x, r, from, GRAMMAR_TREE_MAX_CODE);
    return true;
}

/* Up to `most` hexadecimal digits; *n: how many there were. */
static uint32_t read_digits(struct regex *x, uint32_t most, uint32_t *n)
{
    uint32_t v = 0;
    for (*n = 0; x->p < x->end && *n < most; ++*n, x->p++) {
        int d = ascii_hex(*x->p);
        if (d < 0)
            break;
        v = v << 4 | (uint32_t)d;
    }
    return v;
}

static uint32_t read_hex(struct regex *x, uint32_t digits)
{
    uint32_t v, n;
    bool braces = digits == 4 && peek(x) == '{';
    x->p += braces;
    v = read_digits(x, braces ? 6 : digits, &n);
    if (n == 0 || (!braces && n < digits) || (braces && peek(x) != '}') ||
        v > GRAMMAR_TREE_MAX_CODE)
        return fail(x, "an escape is not a Unicode character");
    x->p += braces;
    if (v >= 0xd800 && v < 0xdc00 && at(x, "\\u")) {
        x->p += 2;
        uint32_t low = read_digits(x, 4, &n);
        if (n == 4 && low >= 0xdc00 && low < 0xe000)
            return 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
    }
    if (v >= 0xd800 && v < 0xe000)
        return fail(x, "an escape is half of a surrogate pair");
    return v;
}

/* Reads what follows a backslash; a character that is not special stands for itself. */
static uint32_t read_escape(struct regex *x)
{
    static const char from[] = "tnrfv0", to[] = "\t\n\r\f\v\0";
    const char c = peek(x);
    uint32_t cp = 0;
    if (x->p == x->end)
        return fail(x, "it ends with a backslash");
    if (c == 'b' || c == 'B')
        return fail(x, "word boundaries (\\b) are not supported");
    if (c == 'p' || c == 'P')
        return fail(x, "Unicode properties (\\p) are not supported");
    if ((c >= '1' && c <= '9') || c == 'k')
        return fail(x, "back references are not supported");
    if (c == 'x' || c == 'u') {
        x->p++;
        return read_hex(x, c == 'x' ? 2 : 4);
    }
    const char *known = strchr(from, c);
    if (known && c) {
        x->p++;
        return (uint32_t)to[known - from];
    }
    if (ascii_is_letter(c))
        return fail(x, "unknown escape");
    unsigned n = utf8_decode((const uint8_t *)x->p, (const uint8_t *)x->end, &cp);
    if (n == 0)
        return fail(x, "it is not valid UTF-8");
    x->p += n;
    return cp;
}

static uint32_t read_char(struct regex *x)
{
    uint32_t cp = 0;
    if (*x->p == '\\') {
        x->p++;
        return read_escape(x);
    }
    unsigned n = utf8_decode((const uint8_t *)x->p, (const uint8_t *)x->end, &cp);
    if (n == 0)
        return fail(x, "it is not valid UTF-8");
    x->p += n;
    return cp;
}

/* Cuts [lo, hi] out of the ranges. */
static uint32_t without(struct grammar_tree_range *out, const struct grammar_tree_range *r,
                        uint32_t n, uint32_t lo, uint32_t hi)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (r[i].lo < lo)
            out[k++] = (struct grammar_tree_range){r[i].lo, r[i].hi < lo ? r[i].hi : lo - 1};
        if (r[i].hi > hi)
            out[k++] = (struct grammar_tree_range){r[i].lo > hi ? r[i].lo : hi + 1, r[i].hi};
    }
    return k;
}

static bool has(const struct grammar_tree_range *r, uint32_t n, uint32_t c)
{
    for (uint32_t i = 0; i < n; i++)
        if (c >= r[i].lo && c <= r[i].hi)
            return true;
    return false;
}

uint32_t grammar_regex_json_class(struct grammar_tree *t, uint32_t node, unsigned flags)
{
    static const char *const escapes[] = {"\"\\\"", "\\\\\\", "\b\\b", "\f\\f",
                                          "\n\\n",  "\r\\r",  "\t\\t"};
    if (grammar_tree_rc(t) < 0)
        return GRAMMAR_TREE_NONE;
    const struct grammar_tree_node n = t->nodes[node];
    struct grammar_tree_range *a = arena_zalloc_n(&t->arena, n.n + 4, sizeof(*a));
    struct grammar_tree_range *b = arena_zalloc_n(&t->arena, n.n + 4, sizeof(*b));
    struct grammar_tree_list l = {0};
    if (!a || !b)
        return grammar_tree_fail(t, SHOAL_ENOMEM, "out of memory for a grammar");
    uint32_t k = without(a, n.ranges, n.n, 0, 0x1f);
    k = without(b, a, k, '"', '"');
    k = without(a, b, k, '\\', '\\');
    grammar_tree_push(t, &l, grammar_tree_class(t, a, k, false));
    for (size_t i = 0; !(flags & GRAMMAR_REGEX_PLAIN) && i < sizeof(escapes) / sizeof(escapes[0]);
         i++)
        if (has(n.ranges, n.n, (uint8_t)escapes[i][0]))
            grammar_tree_push(t, &l, grammar_tree_text(t, escapes[i] + 1));
    return grammar_tree_rc(t) < 0 ? GRAMMAR_TREE_NONE : grammar_tree_either(t, &l);
}

static uint32_t class_of(struct regex *x, const struct ranges *r, bool negated)
{
    uint32_t node = grammar_tree_class(x->t, r->r, r->n, negated);
    return x->flags & GRAMMAR_REGEX_JSON ? grammar_regex_json_class(x->t, node, x->flags) : node;
}

static void read_class_item(struct regex *x, struct ranges *r)
{
    if (*x->p == '\\' && x->p + 1 < x->end && add_set(x, r, x->p[1])) {
        x->p += 2;
        return;
    }
    uint32_t lo, hi;
    if (at(x, "\\b")) { /* in a class, a backspace */
        x->p += 2;
        lo = 8;
    } else {
        lo = read_char(x);
    }
    hi = lo;
    if (ok(x) && x->p + 1 < x->end && x->p[0] == '-' && x->p[1] != ']' &&
        !(x->p[1] == '\\' && x->p + 2 < x->end && strchr("dDwWsS", x->p[2]))) {
        x->p++;
        hi = read_char(x);
        if (ok(x) && hi < lo)
            fail(x, "a range of characters goes backwards");
    }
    if (ok(x))
        add_range(x, r, lo, hi);
}

static uint32_t read_class(struct regex *x)
{
    struct ranges r = {.n = 0};
    x->p++;
    bool negated = peek(x) == '^';
    x->p += negated;
    while (ok(x) && x->p < x->end && *x->p != ']')
        read_class_item(x, &r);
    if (!ok(x))
        return GRAMMAR_TREE_NONE;
    if (x->p == x->end)
        return fail(x, "a class has no closing ]");
    x->p++;
    return class_of(x, &r, negated);
}

/* ---- structure ---- */

static uint32_t read_either(struct regex *x, bool left, bool right);

const char *grammar_regex_group_end(const char *p, const char *end)
{
    uint32_t depth = 0;
    bool in_class = false;
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        else if (in_class)
            in_class = *p != ']';
        else if (*p == '[')
            in_class = true;
        else if (*p == '(')
            depth++;
        else if (*p == ')' && --depth == 0)
            return p + 1;
    }
    return end;
}

static bool is_branch_end(const struct regex *x, const char *p)
{
    return p >= x->end || *p == '|' || *p == ')';
}

static uint32_t read_group(struct regex *x, bool left, bool right)
{
    x->p++;
    if (at(x, "?=") || at(x, "?!") || at(x, "?<=") || at(x, "?<!"))
        return fail(x, "look-ahead and look-behind are not supported");
    if (at(x, "?:")) {
        x->p += 2;
    } else if (at(x, "?<") || at(x, "?P<")) {
        while (x->p < x->end && *x->p != '>')
            x->p++;
        x->p += x->p < x->end;
    } else if (peek(x) == '?') {
        return fail(x, "this kind of group is not supported");
    }
    if (++x->depth > MAX_DEPTH)
        return fail(x, "groups are nested too deeply");
    uint32_t node = read_either(x, left, right);
    x->depth--;
    if (ok(x) && peek(x) != ')')
        return fail(x, "a group has no closing )");
    x->p++;
    return node;
}

static uint32_t read_atom(struct regex *x, bool left, bool right)
{
    static const struct grammar_tree_range line_ends[] = {
        {'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    struct ranges r = {.n = 0};
    const char c = *x->p;
    if (c == '(')
        return read_group(x, left, right);
    if (c == '[')
        return read_class(x);
    if (c == '.') {
        x->p++;
        memcpy(r.r, line_ends, sizeof(line_ends));
        r.n = 3;
        return class_of(x, &r, true);
    }
    if (c == '*' || c == '+' || c == '?')
        return fail(x, "there is nothing to repeat");
    if (c == '\\' && x->p + 1 < x->end && add_set(x, &r, x->p[1])) {
        x->p += 2;
        return class_of(x, &r, false);
    }
    uint32_t cp = read_char(x);
    if (!ok(x))
        return GRAMMAR_TREE_NONE;
    add_range(x, &r, cp, cp);
    return class_of(x, &r, false);
}

static bool read_number(const struct regex *x, const char **p, uint32_t *out)
{
    const char *from = *p;
    *out = 0;
    for (; *p < x->end && ascii_is_digit(**p); (*p)++)
        *out = *out > GRAMMAR_TREE_MAX_COUNT ? *out : 10 * *out + (uint32_t)(**p - '0');
    return *p > from;
}

/* {m}, {m,} or {m,n}; false: the brace is a literal character. */
static bool read_braces(struct regex *x, uint32_t *min, uint32_t *max)
{
    const char *p = x->p + 1;
    if (!read_number(x, &p, min))
        return false;
    *max = *min;
    if (p < x->end && *p == ',') {
        p++;
        if (!read_number(x, &p, max))
            *max = GRAMMAR_TREE_UNBOUNDED;
    }
    if (p >= x->end || *p != '}')
        return false;
    x->p = p + 1;
    return true;
}

/* Whether a repetition follows; then its counts. */
static bool read_repeat(struct regex *x, uint32_t *min, uint32_t *max)
{
    const char c = peek(x);
    if (c == '{') {
        if (!read_braces(x, min, max))
            return false;
    } else if (c == '*' || c == '+' || c == '?') {
        *min = c == '+';
        *max = c == '?' ? 1 : GRAMMAR_TREE_UNBOUNDED;
        x->p++;
    } else {
        return false;
    }
    if (*max < *min)
        fail(x, "a repetition's largest count is below its smallest");
    if (peek(x) == '?') /* lazy: matches the same texts */
        x->p++;
    return true;
}

static bool repeats(struct regex *x)
{
    const char *at = x->p;
    uint32_t min, max;
    const char c = peek(x);
    const bool yes = c == '*' || c == '+' || c == '?' || (c == '{' && read_braces(x, &min, &max));
    x->p = at;
    return yes;
}

/* Whether the next character is one that stands for itself, alone. */
static bool is_plain(const struct regex *x)
{
    if (x->p == x->end || strchr("()[].*+?{|^$", *x->p))
        return false;
    return *x->p != '\\' || (x->p + 1 < x->end && !strchr("dDwWsSbB", x->p[1]));
}

/* Characters that stand for themselves, as one literal; NONE without an error: there are fewer than
 * two of them. Lists of names are made of these, and one node for each character would be
 * twenty times their size. */
static uint32_t read_run(struct regex *x)
{
    char run[256];
    uint32_t n = 0, n_chars = 0;
    const char *begin = x->p;
    while (ok(x) && is_plain(x) && n + 4 <= sizeof(run)) {
        const char *at = x->p;
        const uint32_t cp = read_char(x);
        const bool escaped =
            x->flags & GRAMMAR_REGEX_JSON && (cp < 0x20 || cp == '"' || cp == '\\');
        if (!ok(x))
            return GRAMMAR_TREE_NONE;
        if (escaped || repeats(x)) {
            x->p = at;
            break;
        }
        n += utf8_encode(run + n, cp);
        n_chars++;
    }
    if (n_chars > 1)
        return grammar_tree_literal(x->t, run, n);
    x->p = begin;
    return GRAMMAR_TREE_NONE;
}

/* Any text, for the sides without an anchor. */
static uint32_t anything(struct regex *x)
{
    const struct ranges none = {.n = 0};
    return grammar_tree_repeat(x->t, class_of(x, &none, true), 0, GRAMMAR_TREE_UNBOUNDED);
}

/* left, right: the branch begins or ends where the whole expression does. */
static uint32_t read_branch(struct regex *x, bool left, bool right)
{
    const bool search = x->flags & GRAMMAR_REGEX_SEARCH;
    struct grammar_tree_list l = {0};
    bool closed_left = !left || !search, closed_right = !right || !search, first = true;
    while (left && peek(x) == '^') {
        x->p++;
        closed_left = true;
    }
    while (ok(x) && !is_branch_end(x, x->p)) {
        uint32_t min, max;
        if (*x->p == '^')
            return fail(x, "an anchor (^) is only supported at the beginning");
        if (*x->p == '$') {
            x->p++;
            if (!right || !is_branch_end(x, x->p))
                return fail(x, "an anchor ($) is only supported at the end");
            closed_right = true;
            break;
        }
        const char *behind = *x->p == '(' ? grammar_regex_group_end(x->p, x->end) : NULL;
        bool alone = behind && (behind == x->end || !strchr("*+?{", *behind));
        bool own_left = alone && first && left && !closed_left;
        bool own_right = alone && right && is_branch_end(x, behind) && !closed_right;
        if (!closed_left && !own_left)
            grammar_tree_push(x->t, &l, anything(x));
        closed_left = true;
        uint32_t node = read_run(x);
        if (node == GRAMMAR_TREE_NONE && ok(x))
            node = read_atom(x, own_left || (alone && first && left && !search),
                             own_right || (alone && right && is_branch_end(x, behind)));
        closed_right |= own_right;
        first = false;
        if (ok(x) && read_repeat(x, &min, &max)) {
            node = grammar_tree_repeat(x->t, node, min, max);
            if (peek(x) == '*' || peek(x) == '+' || peek(x) == '?')
                return fail(x, "a repetition is repeated");
        }
        grammar_tree_push(x->t, &l, node);
    }
    if (!closed_left)
        grammar_tree_push(x->t, &l, anything(x));
    if (!closed_right)
        grammar_tree_push(x->t, &l, anything(x));
    return ok(x) ? grammar_tree_sequence(x->t, &l) : GRAMMAR_TREE_NONE;
}

static uint32_t read_either(struct regex *x, bool left, bool right)
{
    struct grammar_tree_list l = {0};
    grammar_tree_push(x->t, &l, read_branch(x, left, right));
    while (ok(x) && peek(x) == '|') {
        x->p++;
        grammar_tree_push(x->t, &l, read_branch(x, left, right));
    }
    return ok(x) ? grammar_tree_either(x->t, &l) : GRAMMAR_TREE_NONE;
}

uint32_t grammar_regex_read(struct grammar_tree *t, const char *p, size_t n, unsigned flags)
{
    struct regex x = {.t = t, .start = p, .p = p, .end = p + n, .flags = flags};
    uint32_t node = read_either(&x, true, true);
    if (ok(&x) && x.p < x.end)
        return fail(&x, "there is a ) without a group");
    return node;
}
