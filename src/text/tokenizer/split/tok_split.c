/* tok_split.c - see tok_split.h.
 *
 * Each scanner returns the match of the leftmost alternative of its regex at p, with greediness and
 * backtracking implemented by hand; the comments quote the alternative.  Every character is read a
 * bounded number of times, so the time is linear in the length of the text. */
#include "text/tokenizer/split/tok_split.h"

#include <stdbool.h>

#include <utf8proc.h>

#include "base/utf8.h"

enum {
    C_L = 1 << 0,     /* \p{L} */
    C_N = 1 << 1,     /* \p{N} */
    C_WS = 1 << 2,    /* \s: the White_Space property */
    C_M = 1 << 3,     /* \p{M} */
    C_UP = 1 << 4,    /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
    C_LOW = 1 << 5,   /* [\p{Ll}\p{Lm}\p{Lo}\p{M}] */
    C_CR = 1 << 6,    /* [\r\n] */
    C_DIGIT = 1 << 7, /* \p{Nd} */
    C_WORD = 1 << 8,  /* letters, marks, digits, letter numbers, connectors: \w */
};

#define U (C_L | C_UP | C_WORD)
#define L (C_L | C_LOW | C_WORD)
#define D (C_N | C_DIGIT | C_WORD)
static const uint16_t ascii_class[128] = {
    ['\t'] = C_WS,
    ['\n'] = C_WS | C_CR,
    ['\v'] = C_WS,
    ['\f'] = C_WS,
    ['\r'] = C_WS | C_CR,
    [' '] = C_WS,
    ['_'] = C_WORD,
    ['0'] = D,
    ['1'] = D,
    ['2'] = D,
    ['3'] = D,
    ['4'] = D,
    ['5'] = D,
    ['6'] = D,
    ['7'] = D,
    ['8'] = D,
    ['9'] = D,
    ['A'] = U,
    ['B'] = U,
    ['C'] = U,
    ['D'] = U,
    ['E'] = U,
    ['F'] = U,
    ['G'] = U,
    ['H'] = U,
    ['I'] = U,
    ['J'] = U,
    ['K'] = U,
    ['L'] = U,
    ['M'] = U,
    ['N'] = U,
    ['O'] = U,
    ['P'] = U,
    ['Q'] = U,
    ['R'] = U,
    ['S'] = U,
    ['T'] = U,
    ['U'] = U,
    ['V'] = U,
    ['W'] = U,
    ['X'] = U,
    ['Y'] = U,
    ['Z'] = U,
    ['a'] = L,
    ['b'] = L,
    ['c'] = L,
    ['d'] = L,
    ['e'] = L,
    ['f'] = L,
    ['g'] = L,
    ['h'] = L,
    ['i'] = L,
    ['j'] = L,
    ['k'] = L,
    ['l'] = L,
    ['m'] = L,
    ['n'] = L,
    ['o'] = L,
    ['p'] = L,
    ['q'] = L,
    ['r'] = L,
    ['s'] = L,
    ['t'] = L,
    ['u'] = L,
    ['v'] = L,
    ['w'] = L,
    ['x'] = L,
    ['y'] = L,
    ['z'] = L,
};
#undef U
#undef L
#undef D

static unsigned class_of(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return C_L | C_UP | C_WORD;
    case UTF8PROC_CATEGORY_LL:
        return C_L | C_LOW | C_WORD;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return C_L | C_UP | C_LOW | C_WORD;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return C_M | C_UP | C_LOW | C_WORD;
    case UTF8PROC_CATEGORY_ND:
        return C_N | C_DIGIT | C_WORD;
    case UTF8PROC_CATEGORY_NL:
        return C_N | C_WORD;
    case UTF8PROC_CATEGORY_NO:
        return C_N;
    case UTF8PROC_CATEGORY_PC:
        return C_WORD;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return C_WS;
    default:
        return cp == 0x85 ? C_WS : 0;
    }
}

/* The class of the character at p < end and its length. */
static inline unsigned class_at(const uint8_t *p, const uint8_t *end, unsigned *len)
{
    uint32_t cp;
    *len = 1;
    if (*p < 0x80)
        return ascii_class[*p];
    unsigned n = utf8_decode_multi(p, end, &cp);
    if (n == 0)
        return 0; /* not UTF-8: one byte, like a control character */
    *len = n;
    return class_of(cp);
}

static bool is_han(uint32_t cp)
{
    static const uint32_t range[][2] = {
        {0x2e80, 0x2fd5},   {0x3005, 0x3005},   {0x3007, 0x3007},   {0x3021, 0x3029},
        {0x3038, 0x303b},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfad9},
        {0x16fe2, 0x16fe3}, {0x16ff0, 0x16ff1}, {0x20000, 0x2fa1d}, {0x30000, 0x323af},
    };
    for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
        if (cp <= range[i][1])
            return cp >= range[i][0];
    return false;
}

/* The end of the run of characters that have any of the classes in want. */
static const uint8_t *run(const uint8_t *p, const uint8_t *end, unsigned want)
{
    unsigned len;
    while (p < end && (class_at(p, end, &len) & want))
        p += len;
    return p;
}

/* The end of the run of characters that have none of the classes in avoid. */
static const uint8_t *run_not(const uint8_t *p, const uint8_t *end, unsigned avoid)
{
    unsigned len;
    while (p < end && !(class_at(p, end, &len) & avoid))
        p += len;
    return p;
}

/* The end of at most max characters of class want (0: no maximum). */
static const uint8_t *run_max(const uint8_t *p, const uint8_t *end, unsigned want, unsigned max)
{
    unsigned len;
    for (unsigned n = 0; p < end && (max == 0 || n < max) && (class_at(p, end, &len) & want); n++)
        p += len;
    return p;
}

/* 's|'t|'re|'ve|'m|'ll|'d: length at the apostrophe p, 0 if there is none. */
static size_t contraction(const uint8_t *p, const uint8_t *end, uint8_t case_bit)
{
    if (end - p < 2 || *p != '\'')
        return 0;
    uint8_t a = p[1] | case_bit;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (end - p < 3)
        return 0;
    uint8_t b = p[2] | case_bit;
    return (b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l') ? 3 : 0;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ at the white space p; without newlines: the last two. */
static size_t white_space(const uint8_t *p, const uint8_t *end, bool newlines)
{
    const uint8_t *q = p, *last = p, *after_newline = NULL;
    while (q < end) {
        unsigned len, c = class_at(q, end, &len);
        if (!(c & C_WS))
            break;
        last = q;
        q += len;
        if (c & C_CR)
            after_newline = q;
    }
    if (newlines && after_newline)
        return (size_t)(after_newline - p);
    if (q < end && last > p)
        q = last; /* the last one belongs to the word that follows */
    return (size_t)(q - p);
}

/* \s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s at the white space p.
 * A run gives many pieces, so it is counted once: kept is the value of *state, twice the number of
 * characters left in the run, plus one if the run ends the text. */
static size_t cascade(const uint8_t *p, const uint8_t *end, size_t kept, size_t *state)
{
    size_t n = kept / 2;
    bool at_end = kept & 1;
    if (kept == 0) {
        const uint8_t *q = p, *after_newline = NULL;
        for (unsigned len, c; q < end && ((c = class_at(q, end, &len)) & C_WS); n++) {
            q += len;
            if (c & C_CR) {
                after_newline = q;
                n = (size_t)-1; /* count what follows it */
            }
        }
        at_end = q == end;
        if (after_newline) {
            *state = n > 0 ? n * 2 + at_end : 0;
            return (size_t)(after_newline - p);
        }
    }
    size_t most = at_end ? n : n - 1, take = 512; /* the last one belongs to the next piece */
    while (take > 2 && take > most)
        take /= 2;
    if (take > most)
        take = 1;
    *state = n > take ? (n - take) * 2 + at_end : 0;
    return (size_t)(run_max(p, end, C_WS, (unsigned)take) - p);
}

/* ` ?[^\s\p{L}\p{N}]+` and its tail; 0 if there is none at p. */
static size_t punctuation(const uint8_t *p, const uint8_t *end, unsigned opts)
{
    unsigned avoid = C_WS | C_L | C_N | (opts & TOK_SPLIT_MARKS ? C_M : 0u);
    const uint8_t *from = *p == ' ' ? p + 1 : p;
    const uint8_t *q = run_not(from, end, avoid);
    if (q == from)
        return 0;
    if (opts & TOK_SPLIT_TAIL_NL)
        while (q < end &&
               (*q == '\r' || *q == '\n' || (*q == '/' && (opts & TOK_SPLIT_TAIL_SLASH))))
            q++;
    return (size_t)(q - p);
}

size_t tok_split_gpt2(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state)
{
    (void)opts;
    (void)state;
    unsigned len;
    size_t n = contraction(p, end, 0);
    if (n > 0)
        return n;
    const uint8_t *from = *p == ' ' && end - p > 1 ? p + 1 : p;
    unsigned c = class_at(from, end, &len);
    if (c & (C_L | C_N)) /* ` ?\p{L}+| ?\p{N}+` */
        return (size_t)(run(from + len, end, c & (C_L | C_N)) - p);
    n = punctuation(p, end, 0);
    return n > 0 ? n : white_space(p, end, false);
}

size_t tok_split_cl100k(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state)
{
    unsigned len, len2;
    size_t kept = *state;
    unsigned c = class_at(p, end, &len);
    unsigned letters = opts & TOK_SPLIT_MARKS ? C_L | C_M : C_L;
    *state = 0; /* only white space preserves it */
    if (opts & TOK_SPLIT_CONTRACT) {
        size_t n = contraction(p, end, 0x20);
        if (n > 0)
            return n;
    }
    /* `[^\r\n\p{L}\p{N}]?\p{L}+` */
    if (!(c & (C_CR | C_N))) {
        const uint8_t *q = p + len;
        if ((c & letters) || (q < end && (class_at(q, end, &len2) & letters)))
            return (size_t)(run(q, end, letters) - p);
    }
    if (c & C_N)
        return (size_t)(run_max(p, end, C_N, opts & TOK_SPLIT_N_MASK) - p);
    size_t n = punctuation(p, end, opts);
    if (n > 0)
        return n;
    return opts & TOK_SPLIT_CASCADE ? cascade(p, end, kept, state) : white_space(p, end, true);
}

/* Like class_at; with TOK_SPLIT_HAN a Han character is a letter of neither case. */
static unsigned word_class_at(const uint8_t *p, const uint8_t *end, unsigned opts, unsigned *len)
{
    unsigned c = class_at(p, end, len);
    uint32_t cp;
    if ((opts & TOK_SPLIT_HAN) && *len > 2 && utf8_decode_multi(p, end, &cp) && is_han(cp))
        c &= ~(unsigned)(C_UP | C_LOW);
    return c;
}

/* UPPER*LOWER+ at p, where both share letters without case: its end, or NULL.  *upper_end is the
 * end of UPPER*. */
static const uint8_t *cased_word(const uint8_t *p, const uint8_t *end, unsigned opts,
                                 const uint8_t **upper_end)
{
    const uint8_t *q = p, *after_low = NULL;
    unsigned len, c = 0;
    while (q < end && ((c = word_class_at(q, end, opts, &len)) & C_UP)) {
        q += len;
        if (c & C_LOW)
            after_low = q; /* LOWER+ may be this one, if UPPER* gives back what follows */
    }
    *upper_end = q;
    if (q < end && (c & C_LOW)) {
        while (q < end && (word_class_at(q, end, opts, &len) & C_LOW))
            q += len;
        return q;
    }
    return after_low;
}

/* The two word alternatives of o200k, with A = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and
 * B = [\p{Ll}\p{Lm}\p{Lo}\p{M}]: `[^\r\n\p{L}\p{N}]?A*B+|[^\r\n\p{L}\p{N}]?A+B*`; NULL: none. */
static const uint8_t *o200k_word(const uint8_t *p, const uint8_t *end, unsigned opts)
{
    const uint8_t *upper[2] = {NULL, NULL}, *from[2];
    unsigned len;
    unsigned c = class_at(p, end, &len);
    bool prefix = !(c & (C_CR | C_L | C_N));
    from[0] = p + len; /* first with the prefix, then without */
    from[1] = p;
    for (int i = prefix ? 0 : 1; i < 2; i++) {
        const uint8_t *q = from[i] < end ? cased_word(from[i], end, opts, &upper[i]) : NULL;
        if (q)
            return q;
    }
    for (int i = prefix ? 0 : 1; i < 2; i++)
        if (upper[i] && upper[i] > from[i])
            return upper[i];
    return NULL;
}

static size_t han_run(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q = p;
    uint32_t cp;
    unsigned len;
    while (q < end && (len = utf8_decode(q, end, &cp)) > 2 && is_han(cp))
        q += len;
    return (size_t)(q - p);
}

size_t tok_split_o200k(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state)
{
    (void)state;
    unsigned len;
    size_t n = opts & TOK_SPLIT_HAN ? han_run(p, end) : 0;
    if (n > 0)
        return n;
    const uint8_t *q = o200k_word(p, end, opts);
    if (q) {
        if (opts & TOK_SPLIT_CONTRACT && q < end)
            q += contraction(q, end, 0x20);
        return (size_t)(q - p);
    }
    if (class_at(p, end, &len) & C_N)
        return (size_t)(run_max(p, end, C_N, opts & TOK_SPLIT_N_MASK) - p);
    n = punctuation(p, end, opts);
    return n > 0 ? n : white_space(p, end, true);
}

size_t tok_split_numbers(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state)
{
    (void)state;
    const uint8_t *q = run_max(p, end, C_N, opts & TOK_SPLIT_N_MASK);
    if (q == p)
        q = run_not(p, end, C_N);
    return (size_t)(q - p);
}

size_t tok_split_thousands(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state)
{
    unsigned digit = opts & TOK_SPLIT_WORD_END ? C_DIGIT : C_N, len;
    const uint8_t *q = p;
    if (*state == 0) { /* *state: numbers left of a run that is already counted */
        size_t n = 0;
        for (;;) { /* over the rest, and over numbers that do not count */
            q = run_not(q, end, digit);
            const uint8_t *number = q;
            for (n = 0; q < end && (class_at(q, end, &len) & digit); n++)
                q += len;
            bool open = q < end && (opts & TOK_SPLIT_WORD_END) && (class_at(q, end, &len) & C_WORD);
            if (!open) {
                q = number;
                break;
            }
        }
        *state = n;
        if (q > p)
            return (size_t)(q - p);
    }
    unsigned take = *state % 3 ? (unsigned)(*state % 3) : 3;
    *state -= take;
    return (size_t)(run_max(p, end, digit, take) - p);
}

size_t tok_split_lines(const uint8_t *p, const uint8_t *end, unsigned opts, size_t *state)
{
    (void)opts;
    (void)state;
    const uint8_t *q = p;
    while (q < end && (*q == '\n') == (*p == '\n'))
        q++;
    return (size_t)(q - p);
}
