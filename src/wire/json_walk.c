/* json_walk.c - see json_walk.h. */
#include "base/ascii.h"
#include "wire/json_walk.h"

#include <string.h>

_Static_assert(JSON_WALK_MAX_DEPTH <= 64, "one bit for each");

/* Where in a number the last byte was. */
enum {
    NUMBER_MINUS,
    NUMBER_ZERO,
    NUMBER_INT,
    NUMBER_POINT,
    NUMBER_FRACTION,
    NUMBER_E,
    NUMBER_SIGN,
    NUMBER_EXPONENT
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static enum json_walk_state bad(struct json_walk *w)
{
    w->state = JSON_WALK_BAD;
    return w->state;
}

static bool in_object(const struct json_walk *w)
{
    return w->depth > 0 && (w->objects >> (w->depth - 1) & 1);
}

/* A value has ended. */
static enum json_walk_state ended(struct json_walk *w)
{
    w->state = w->depth == 0 ? JSON_WALK_DONE : JSON_WALK_COMMA_OR_END;
    return w->state;
}

static enum json_walk_state open_container(struct json_walk *w, bool object)
{
    if (w->depth == JSON_WALK_MAX_DEPTH)
        return bad(w);
    uint64_t bit = (uint64_t)1 << w->depth;
    w->objects = object ? w->objects | bit : w->objects & ~bit;
    w->depth++;
    w->state = object ? JSON_WALK_KEY_OR_END : JSON_WALK_VALUE_OR_END;
    return w->state;
}

static enum json_walk_state close_container(struct json_walk *w, bool object)
{
    if (w->depth == 0 || in_object(w) != object)
        return bad(w);
    w->depth--;
    w->events = JSON_WALK_VALUE_ENDS;
    return ended(w);
}

static enum json_walk_state open_string(struct json_walk *w, bool key)
{
    w->is_key = key;
    w->events = key ? JSON_WALK_KEY_BEGINS : JSON_WALK_VALUE_BEGINS;
    w->state = JSON_WALK_STRING;
    return w->state;
}

static enum json_walk_state open_value(struct json_walk *w, char c)
{
    w->events = JSON_WALK_VALUE_BEGINS;
    if (c == '{' || c == '[')
        return open_container(w, c == '{');
    if (c == '"')
        return open_string(w, false);
    if (c == '-' || ascii_is_digit(c)) {
        w->number = c == '-' ? NUMBER_MINUS : c == '0' ? NUMBER_ZERO : NUMBER_INT;
        w->state = JSON_WALK_NUMBER;
        return w->state;
    }
    w->word = c == 't' ? "true" : c == 'f' ? "false" : c == 'n' ? "null" : NULL;
    w->n = 1;
    w->state = w->word ? JSON_WALK_WORD : JSON_WALK_BAD;
    return w->state;
}

static enum json_walk_state in_string(struct json_walk *w, char c)
{
    if ((unsigned char)c < 0x20)
        return bad(w);
    if (c == '\\')
        w->state = JSON_WALK_ESCAPE;
    if (c != '"')
        return w->state;
    w->events = w->is_key ? JSON_WALK_KEY_ENDS : JSON_WALK_VALUE_ENDS;
    if (!w->is_key)
        return ended(w);
    w->state = JSON_WALK_COLON;
    return w->state;
}

static enum json_walk_state in_escape(struct json_walk *w, char c)
{
    if (c == 'u') {
        w->n = 0;
        w->state = JSON_WALK_HEX;
        return w->state;
    }
    w->state = c && strchr("\"\\/bfnrt", c) ? JSON_WALK_STRING : JSON_WALK_BAD;
    return w->state;
}

static enum json_walk_state in_hex(struct json_walk *w, char c)
{
    if (ascii_hex(c) < 0)
        return bad(w);
    if (++w->n == 4)
        w->state = JSON_WALK_STRING;
    return w->state;
}

/* Where c leads in a number; -1: nowhere. */
static int number_next(uint8_t at, char c)
{
    bool exponent = c == 'e' || c == 'E';
    switch (at) {
    case NUMBER_MINUS:
        return c == '0' ? NUMBER_ZERO : ascii_is_digit(c) ? NUMBER_INT : -1;
    case NUMBER_ZERO:
        return c == '.' ? NUMBER_POINT : exponent ? NUMBER_E : -1;
    case NUMBER_INT:
        return ascii_is_digit(c) ? NUMBER_INT : c == '.' ? NUMBER_POINT : exponent ? NUMBER_E : -1;
    case NUMBER_POINT:
        return ascii_is_digit(c) ? NUMBER_FRACTION : -1;
    case NUMBER_FRACTION:
        return ascii_is_digit(c) ? NUMBER_FRACTION : exponent ? NUMBER_E : -1;
    case NUMBER_E:
        return ascii_is_digit(c) ? NUMBER_EXPONENT : c == '+' || c == '-' ? NUMBER_SIGN : -1;
    default: /* NUMBER_SIGN, NUMBER_EXPONENT */
        return ascii_is_digit(c) ? NUMBER_EXPONENT : -1;
    }
}

static bool number_whole(uint8_t at)
{
    return at == NUMBER_ZERO || at == NUMBER_INT || at == NUMBER_FRACTION || at == NUMBER_EXPONENT;
}

static enum json_walk_state after_value(struct json_walk *w, char c)
{
    if (is_space(c))
        return w->state;
    if (c == ',') {
        w->state = in_object(w) ? JSON_WALK_KEY : JSON_WALK_VALUE;
        return w->state;
    }
    return c == '}' || c == ']' ? close_container(w, c == '}') : bad(w);
}

/* A number or word has ended with the byte before c. */
static enum json_walk_state scalar_ended(struct json_walk *w, char c)
{
    if (w->depth == 0)
        return bad(w);
    w->state = JSON_WALK_COMMA_OR_END;
    after_value(w, c);
    w->events |= JSON_WALK_SCALAR_ENDED;
    return w->state;
}

static enum json_walk_state in_word(struct json_walk *w, char c)
{
    if (w->word[w->n] == '\0')
        return scalar_ended(w, c);
    if (w->word[w->n] != c)
        return bad(w);
    w->n++;
    return w->state;
}

static enum json_walk_state in_number(struct json_walk *w, char c)
{
    int next = number_next(w->number, c);
    if (next < 0)
        return number_whole(w->number) ? scalar_ended(w, c) : bad(w);
    w->number = (uint8_t)next;
    return w->state;
}

enum json_walk_state json_walk_push(struct json_walk *w, char c)
{
    w->events = 0;
    switch (w->state) {
    case JSON_WALK_STRING:
        return in_string(w, c);
    case JSON_WALK_ESCAPE:
        return in_escape(w, c);
    case JSON_WALK_HEX:
        return in_hex(w, c);
    case JSON_WALK_NUMBER:
        return in_number(w, c);
    case JSON_WALK_WORD:
        return in_word(w, c);
    case JSON_WALK_DONE:
        return is_space(c) ? w->state : bad(w);
    case JSON_WALK_BAD:
        return w->state;
    default:
        break;
    }
    if (is_space(c))
        return w->state;
    switch (w->state) {
    case JSON_WALK_VALUE_OR_END:
        return c == ']' ? close_container(w, false) : open_value(w, c);
    case JSON_WALK_KEY_OR_END:
        return c == '}' ? close_container(w, true) : c == '"' ? open_string(w, true) : bad(w);
    case JSON_WALK_KEY:
        return c == '"' ? open_string(w, true) : bad(w);
    case JSON_WALK_COLON:
        w->state = c == ':' ? JSON_WALK_VALUE : JSON_WALK_BAD;
        return w->state;
    case JSON_WALK_COMMA_OR_END:
        return after_value(w, c);
    default:
        return open_value(w, c);
    }
}
