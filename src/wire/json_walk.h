/* json_walk.h - checks a JSON value byte by byte, as it arrives: no memory, no tree.
 *
 * The caller sees the position (depth, whether a string is a key, where values begin and end), and
 * so can parse a text before it is complete. json_in.h reads whole texts.
 *
 * Thread:    belongs to its caller; plain data, all zero at the beginning.
 * Failure:   JSON_WALK_BAD: the bytes are not JSON, or nested deeper than JSON_WALK_MAX_DEPTH; the
 *            walk is over. */
#ifndef SHOAL_WIRE_JSON_WALK_H
#define SHOAL_WIRE_JSON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_WALK_MAX_DEPTH 64u

enum json_walk_state {
    JSON_WALK_VALUE, /* a value must follow */
    JSON_WALK_KEY_OR_END,
    JSON_WALK_KEY,
    JSON_WALK_COLON,
    JSON_WALK_VALUE_OR_END,
    JSON_WALK_COMMA_OR_END,
    JSON_WALK_STRING,
    JSON_WALK_ESCAPE, /* after a backslash */
    JSON_WALK_HEX,    /* after \u; n counts the digits read */
    JSON_WALK_NUMBER,
    JSON_WALK_WORD, /* true, false, null */
    JSON_WALK_DONE,
    JSON_WALK_BAD,
};

/* Events of a byte. */
enum json_walk_event {
    JSON_WALK_KEY_BEGINS = 1,   /* the opening quote */
    JSON_WALK_KEY_ENDS = 2,     /* the closing quote */
    JSON_WALK_VALUE_BEGINS = 4, /* the first byte of a value */
    JSON_WALK_SCALAR_ENDED = 8, /* the byte before was the last one of a number or word */
    JSON_WALK_VALUE_ENDS = 16,  /* the last byte of a string, object or array */
};

struct json_walk {
    enum json_walk_state state;
    unsigned events;  /* of the last byte; a bracket may end a number and itself */
    uint32_t depth;   /* open objects and arrays, after the last byte */
    uint64_t objects; /* bit i: container i is an object */
    bool is_key;      /* the string is a key */
    uint8_t number;   /* where in a number */
    uint8_t n;        /* bytes of a word or of an escape's digits so far */
    const char *word;
};

/* Takes one byte and returns the new state. The value is complete at JSON_WALK_DONE, which a number
 * or word at depth 0 never reaches: its end is unknown. */
enum json_walk_state json_walk_push(struct json_walk *w, char c);

#endif
