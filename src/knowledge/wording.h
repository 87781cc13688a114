/* wording.h - classifies the words of a short English text: numbers, negations, content words,
 * filler words.
 *
 * Words are compared by their stems: lower case, without common endings, synonyms mapped to one
 * stem (wording_words.c).
 *
 * Thread:    pure functions.
 * Ownership: the text is borrowed for the call; a struct wording is plain data. */
#ifndef SHOAL_KNOWLEDGE_WORDING_H
#define SHOAL_KNOWLEDGE_WORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDING_MAX 256u /* maximum words of a text */
#define WORDING_STEM_BYTES 32u

enum wording_kind {
    WORDING_PLAIN,    /* carries meaning */
    WORDING_NUMBER,   /* stem: its value, "20" for "twenty" */
    WORDING_NEGATION, /* not, no, never, without */
    WORDING_FILLER,   /* could be left out: please, steps, tell */
    WORDING_LINK,     /* articles, auxiliaries, most prepositions */
    WORDING_QUESTION, /* what, who, when; stem: which */
    WORDING_OWNER,    /* my, your, his: possessives */
    WORDING_TENSE,    /* will, did, was; stem: future or past */
    WORDING_PARTICLE, /* on, off, up: may follow its object */
};

/* How a word was written, where its stem does not show it. */
enum wording_form {
    WORDING_BASE,
    WORDING_S,  /* lights, calls: a plural, or third person */
    WORDING_ED, /* called, cleaned: past tense */
};

struct wording_word {
    enum wording_kind kind;
    enum wording_form form;
    bool name; /* PLAIN, capitalized in mid-sentence */
    char stem[WORDING_STEM_BYTES];
};

struct wording {
    struct wording_word words[WORDING_MAX];
    uint32_t n;
    bool cut; /* the text has more words */
};

void wording_read(struct wording *w, const char *text, size_t n);
/* How many words of the kind there are. */
uint32_t wording_count(const struct wording *w, enum wording_kind kind);
/* Whether a word of this kind and stem is there. */
bool wording_has(const struct wording *w, enum wording_kind kind, const char *stem);

/* ---- tables, in wording_words.c ---- */

/* The kind of a lower-case word; PLAIN: it is in no list. */
enum wording_kind wording_kind_of(const char *word);
/* The representative of a group of synonyms; the word itself if it is in no group. */
const char *wording_same(const char *stem);
/* The value of a word such as "twenty" or "third"; NULL: it is no number. */
const char *wording_number(const char *word);
/* Lower case in, the stem out: without plural, tense and the like. */
void wording_stem(char *word);

#endif
