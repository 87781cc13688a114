/* speech_tables.h - words for what is written short: units, money, abbreviations, symbols, months.
 * Private to src/text/speech. */
#ifndef SHOAL_TEXT_SPEECH_SPEECH_TABLES_H
#define SHOAL_TEXT_SPEECH_SPEECH_TABLES_H

#include <stdbool.h>
#include <stddef.h>

struct speech_unit { /* after a number; as it is written, upper and lower case differ */
    const char *written, *one, *many;
};
struct speech_money {
    const char *written, *one, *many, *cent, *cents;
};
struct speech_short {
    const char *written, *said;
};

/* The longest unit that text begins with and that ends there; NULL: none. */
const struct speech_unit *speech_tables_unit(const char *p, size_t n);
/* A currency sign at p. */
const struct speech_money *speech_tables_money(const char *p, size_t n);
/* What a symbol is called (%, &, +); NULL: it is not said. */
const struct speech_short *speech_tables_symbol(const char *p, size_t n);
/* When an abbreviation is one: "no." and "sat." are words, too. */
enum speech_short_when {
    SPEECH_SHORT_ALWAYS,
    SPEECH_SHORT_BEFORE_SMALL, /* with a dot, before a small letter or a digit */
    SPEECH_SHORT_BEFORE_DIGIT, /* with a dot, before a digit */
    SPEECH_SHORT_CAPITAL       /* with a dot and a capital */
};
/* An abbreviation, by its letters in lower case without the last dot; NULL: none. */
const char *speech_tables_short(const char *word, size_t n, enum speech_short_when *when);
/* 1 to 12 by a name or its first three letters; 0: none. */
unsigned speech_tables_month(const char *word, size_t n);
const char *speech_tables_month_name(unsigned month);
/* Capitals that are said as a word ("NASA"). */
bool speech_tables_acronym(const char *word, size_t n);

#endif
