/* schema_number.h - numbers between bounds, written in decimal.
 *
 * Thread:    pure. */
#ifndef SHOAL_TEXT_GRAMMAR_SCHEMA_NUMBER_H
#define SHOAL_TEXT_GRAMMAR_SCHEMA_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct grammar_tree;

struct schema_number_bounds {
    bool has_min, has_max;
    bool above, below; /* the bound itself is not allowed */
    double min, max;
};

/* Whole numbers; bounds beyond 15 digits count as 15 digits. */
uint32_t schema_number_integer(struct grammar_tree *t, const struct schema_number_bounds *b);
/* Numbers with up to nine digits after the point.  Bounds are taken with nine digits too. */
uint32_t schema_number_decimal(struct grammar_tree *t, const struct schema_number_bounds *b);
/* Whole numbers of up to nine digits that are multiples of m, 2 to SCHEMA_NUMBER_MAX_MULTIPLE. */
#define SCHEMA_NUMBER_MAX_MULTIPLE 100u
uint32_t schema_number_multiple(struct grammar_tree *t, uint32_t m);

#endif
