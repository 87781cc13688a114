/* grammar_json.h - rules for JSON texts, which grammars of schemas are built from.
 *
 * White space is limited to the usual forms: none, one space, or a new line with an indent, after {
 * [ , : and before } ]. Strings hold whole characters and no lone surrogates; numbers have few
 * enough digits to stay finite.
 *
 * Thread:    belongs to its caller.
 * Ownership: everything is part of the tree. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_JSON_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grammar_tree;

struct grammar_json { /* nodes and rules; NONE: not made yet */
    struct grammar_tree *t;
    uint32_t space;                /* node */
    uint32_t character;            /* node: one character of a string */
    uint32_t value, object, array; /* rules: anything, any object, any array */
    uint32_t string, number, integer, boolean;
};

void grammar_json_init(struct grammar_json *j, struct grammar_tree *t);

/* Nodes of any text of that kind. */
uint32_t grammar_json_value(struct grammar_json *j);
uint32_t grammar_json_object(struct grammar_json *j);
uint32_t grammar_json_string(struct grammar_json *j);
uint32_t grammar_json_number(struct grammar_json *j);
uint32_t grammar_json_integer(struct grammar_json *j);
uint32_t grammar_json_boolean(struct grammar_json *j);
uint32_t grammar_json_null(struct grammar_json *j);
/* One character of a string. */
uint32_t grammar_json_character(struct grammar_json *j);
/* A string with this many characters. */
uint32_t grammar_json_string_of(struct grammar_json *j, uint32_t min, uint32_t max);
/* A text between quotes, JSON-encoded; n bytes of UTF-8. */
uint32_t grammar_json_quoted(struct grammar_json *j, const char *p, size_t n);
/* key: a node with its quotes. */
uint32_t grammar_json_pair(struct grammar_json *j, uint32_t key, uint32_t value);
/* "," and white space before a node. */
uint32_t grammar_json_next(struct grammar_json *j, uint32_t node);
/* White space and a closing bracket. */
uint32_t grammar_json_close(struct grammar_json *j, const char *bracket);
/* The opening bracket and white space, then a node. */
uint32_t grammar_json_open(struct grammar_json *j, const char *bracket, uint32_t node);

#endif
