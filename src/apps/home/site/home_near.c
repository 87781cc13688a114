/* home_near.c - see home_near.h. */
#include "apps/home/site/home_near.h"

#include <string.h>

uint32_t home_near_typed(const char *a, const char *b, uint32_t most)
{
    size_t n = strlen(a), m = strlen(b);
    uint8_t rows[3][HOME_NEAR_MAX_BYTES + 1];
    if (n > HOME_NEAR_MAX_BYTES || m > HOME_NEAR_MAX_BYTES || n > m + most || m > n + most)
        return HOME_NEAR_FAR;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint8_t *cur = rows[i % 3];
        const uint8_t *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        cur[0] = (uint8_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint8_t d = (uint8_t)(up[j - 1] + (a[i - 1] != b[j - 1]));
            if (up[j] + 1 < d)
                d = (uint8_t)(up[j] + 1);
            if (cur[j - 1] + 1 < d)
                d = (uint8_t)(cur[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                up2[j - 2] + 1 < d)
                d = (uint8_t)(up2[j - 2] + 1);
            cur[j] = d;
        }
    }
    uint32_t d = rows[n % 3][m];
    return d <= most ? d : HOME_NEAR_FAR;
}

static bool is_vowel(char c)
{
    return c && strchr("aeiouy", c) != NULL;
}

/* The consonants as they sound; a vowel counts only at the beginning of a word. */
static void sound_of(const char *s, char out[HOME_NEAR_MAX_BYTES + 1])
{
    size_t n = 0;
    bool begins = true;
    for (; *s && n < HOME_NEAR_MAX_BYTES; s++) {
        char c = *s, next = s[1], put = c;
        if (c == ' ') {
            begins = true;
            continue;
        }
        if (begins && ((c == 'k' && next == 'n') || (c == 'w' && next == 'r')))
            put = '\0';
        else if (c == 'p' && next == 'h')
            put = 'f', s++;
        else if (c == 'g' && next == 'h')
            put = begins ? 'g' : '\0', s++;
        else if (c == 'c' && next == 'k')
            put = 'k', s++;
        else if (c == 'c')
            put = next == 'e' || next == 'i' || next == 'y' ? 's' : 'k';
        else if (c == 'q')
            put = 'k';
        else if (c == 'z')
            put = 's';
        else if (c == 'h' && !begins)
            put = '\0';
        else if (is_vowel(c))
            put = begins ? 'a' : '\0';
        begins = false;
        if (put && (n == 0 || out[n - 1] != put))
            out[n++] = put;
    }
    out[n] = '\0';
}

bool home_near_heard(const char *a, const char *b)
{
    char x[HOME_NEAR_MAX_BYTES + 1], y[HOME_NEAR_MAX_BYTES + 1];
    if (strlen(a) > HOME_NEAR_MAX_BYTES || strlen(b) > HOME_NEAR_MAX_BYTES)
        return false;
    sound_of(a, x);
    sound_of(b, y);
    return strlen(x) >= 2 && strcmp(x, y) == 0;
}

/* The next word that is a number or a single letter ("3", "b", "k-12"); NULL: none. */
static const char *next_code(const char **at, size_t *n)
{
    for (const char *p = *at + strspn(*at, " "); *p; p += *n, p += strspn(p, " ")) {
        *n = strcspn(p, " ");
        bool digit = false;
        for (size_t i = 0; i < *n; i++)
            digit |= p[i] >= '0' && p[i] <= '9';
        if (digit || *n == 1) {
            *at = p + *n;
            return p;
        }
    }
    return NULL;
}

/* "pump 5" is never a misspelt "pump 3". */
static bool same_codes(const char *a, const char *b)
{
    const char *x, *y;
    size_t n = 0, m = 0;
    do {
        x = next_code(&a, &n);
        y = next_code(&b, &m);
        if (!x != !y || (x && (n != m || memcmp(x, y, n) != 0)))
            return false;
    } while (x);
    return true;
}

/* The same letters in another order, between the same first and last one: "kichten". */
static bool same_letters(const char *a, const char *b, size_t n)
{
    int counts[256] = {0};
    if (strlen(a) != n || a[0] != b[0] || a[n - 1] != b[n - 1])
        return false;
    for (size_t i = 0; i < n; i++) {
        counts[(unsigned char)a[i]]++;
        counts[(unsigned char)b[i]]--;
    }
    for (size_t i = 0; i < 256; i++)
        if (counts[i] != 0)
            return false;
    return true;
}

uint32_t home_near(const char *text, const char *name)
{
    if (!same_codes(text, name))
        return HOME_NEAR_FAR;
    size_t n = strlen(name);
    uint32_t most = n < 4 ? 0 : n < 8 ? 1 : n < 12 ? 2 : 3;
    if (n >= 6 && most < 2 && same_letters(text, name, n))
        most = 2;
    uint32_t d = home_near_typed(text, name, most);
    if (d != HOME_NEAR_FAR || n < 5 || strlen(text) < 5)
        return d; /* too many short words sound alike */
    /* words that sound alike may look different, but not completely */
    return home_near_heard(text, name) ? home_near_typed(text, name, most + 2) : HOME_NEAR_FAR;
}
