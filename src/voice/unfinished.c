/* unfinished.c - see unfinished.h. */
#include "voice/unfinished.h"

#include <string.h>

/* Nothing ends with these. */
static const char *const open_words[] = {
    "a",     "an",    "and",    "around", "as",    "at",   "because", "between", "but",  "by",
    "could", "every", "for",    "from",   "her",   "his",  "i",       "if",      "into", "is",
    "its",   "like",  "make",   "my",     "of",    "or",   "our",     "please",  "put",  "set",
    "some",  "than",  "that's", "the",    "their", "then", "to",      "uh",      "um",   "until",
    "when",  "with",  "would",  "you",    "your",  "per",  "in",      "let's",   "can",  "turn"};
/* Whole texts that are only the beginning of one, though they end like a sentence. */
static const char *const beginnings[] = {
    "turn on", "turn off",  "switch on", "switch off", "turn up", "turn down", "dim",
    "play",    "remind me", "wake me",   "open",       "close",   "lock",      "unlock",
    "start",   "hey",       "what",      "what's",     "how",     "where"};

#define LONGEST 16u

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\'' || (c & 0x80);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_in(const char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

bool unfinished(const char *text, size_t n)
{
    char all[LONGEST + 1], word[LONGEST + 1];
    size_t n_all = 0, n_word = 0;
    bool gap = true, any = false;
    for (size_t i = 0; i < n; i++) {
        const char c = lower(text[i]);
        if (!is_word(c)) {
            gap = true;
            continue;
        }
        if (gap) {
            n_word = 0;
            n_all += any;
            if (any && n_all <= LONGEST)
                all[n_all - 1] = ' ';
        }
        if (n_word < LONGEST)
            word[n_word] = c;
        if (n_all < LONGEST)
            all[n_all] = c;
        n_word++;
        n_all++;
        gap = false;
        any = true;
    }
    if (!any)
        return true;
    word[n_word < LONGEST ? n_word : LONGEST] = '\0';
    all[n_all < LONGEST ? n_all : LONGEST] = '\0';
    return is_in(open_words, sizeof(open_words) / sizeof(open_words[0]), word) ||
           (n_all < LONGEST && is_in(beginnings, sizeof(beginnings) / sizeof(beginnings[0]), all));
}
