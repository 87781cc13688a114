/* jinja_names.h - the filters, tests, methods and global functions that templates may name.
 *
 * Thread: constant tables. */
#ifndef SHOAL_TEXT_JINJA_JINJA_NAMES_H
#define SHOAL_TEXT_JINJA_JINJA_NAMES_H

#include "text/jinja/jinja_text.h"

enum { JINJA_NAME_UNKNOWN = -1, JINJA_NAME_UNSUPPORTED = -2 }; /* the latter: Jinja has it */

/* clang-format off */
#define JINJA_FILTERS(X)                                                                           \
    X(ABS, "abs") X(CAPITALIZE, "capitalize") X(LENGTH, "count") X(DEFAULT, "d")                   \
    X(DEFAULT_, "default") X(DICTSORT, "dictsort") X(ESCAPE, "e") X(ESCAPE_, "escape")             \
    X(FIRST, "first") X(FLOAT, "float") X(FORMAT, "format") X(INDENT, "indent") X(INT, "int")      \
    X(ITEMS, "items") X(JOIN, "join") X(LAST, "last") X(LENGTH_, "length") X(LIST, "list")         \
    X(LOWER, "lower") X(MAP, "map") X(MAX, "max") X(MIN, "min") X(REJECT, "reject")                \
    X(REJECTATTR, "rejectattr") X(REPLACE, "replace") X(REVERSE, "reverse") X(ROUND, "round")      \
    X(SAFE, "safe") X(SELECT, "select") X(SELECTATTR, "selectattr") X(SORT, "sort")                \
    X(STRING, "string") X(SUM, "sum") X(TITLE, "title") X(TOJSON, "tojson") X(TRIM, "trim")        \
    X(UNIQUE, "unique") X(UPPER, "upper") X(WORDCOUNT, "wordcount")
#define JINJA_TESTS(X)                                                                             \
    X(BOOLEAN, "boolean") X(CALLABLE, "callable") X(DEFINED, "defined")                            \
    X(DIVISIBLEBY, "divisibleby") X(EQ, "eq") X(EQ_, "equalto") X(EQ__, "==")                      \
    X(ESCAPED, "escaped") X(EVEN, "even") X(FALSE, "false") X(FILTER, "filter")                    \
    X(FLOAT, "float") X(GE, "ge") X(GE_, ">=") X(GT, "gt") X(GT_, "greaterthan") X(GT__, ">")      \
    X(IN, "in") X(INTEGER, "integer") X(ITERABLE, "iterable") X(LE, "le") X(LE_, "<=")             \
    X(LOWER, "lower") X(LT, "lt") X(LT_, "lessthan") X(LT__, "<") X(MAPPING, "mapping")            \
    X(NE, "ne") X(NE_, "!=") X(NONE, "none") X(NUMBER, "number") X(ODD, "odd")                     \
    X(SAMEAS, "sameas") X(SEQUENCE, "sequence") X(STRING, "string") X(TEST, "test")                \
    X(TRUE, "true") X(UNDEFINED, "undefined") X(UPPER, "upper")

/* s: of strings, d: of dicts, l: of lists, t: of lists and tuples, o: of the variable loop */
#define JINJA_METHODS(X)                                                                           \
    X(CAPITALIZE, 's', "capitalize") X(COUNT, 's', "count") X(ENDSWITH, 's', "endswith")           \
    X(FIND, 's', "find") X(FORMAT, 's', "format") X(INDEX, 's', "index")                           \
    X(ISALNUM, 's', "isalnum") X(ISALPHA, 's', "isalpha") X(ISASCII, 's', "isascii")               \
    X(ISDIGIT, 's', "isdigit") X(ISLOWER, 's', "islower") X(ISSPACE, 's', "isspace")               \
    X(ISUPPER, 's', "isupper") X(JOIN, 's', "join") X(LOWER, 's', "lower")                         \
    X(LSTRIP, 's', "lstrip") X(PARTITION, 's', "partition") X(REMOVEPREFIX, 's', "removeprefix")   \
    X(REMOVESUFFIX, 's', "removesuffix") X(REPLACE, 's', "replace") X(RFIND, 's', "rfind")         \
    X(RPARTITION, 's', "rpartition") X(RSPLIT, 's', "rsplit") X(RSTRIP, 's', "rstrip")             \
    X(SPLIT, 's', "split") X(SPLITLINES, 's', "splitlines") X(STARTSWITH, 's', "startswith")       \
    X(STRIP, 's', "strip") X(TITLE, 's', "title") X(UPPER, 's', "upper") X(ZFILL, 's', "zfill")    \
    X(COPY_DICT, 'd', "copy") X(GET, 'd', "get") X(ITEMS, 'd', "items") X(KEYS, 'd', "keys")       \
    X(VALUES, 'd', "values") X(COPY, 'l', "copy") X(POP, 'l', "pop") X(COUNT_ITEM, 't', "count")   \
    X(INDEX_ITEM, 't', "index") X(CYCLE, 'o', "cycle") X(CHANGED, 'o', "changed")
/* clang-format on */

#define X(id, name) JINJA_FILTER_##id,
enum jinja_filter_id { JINJA_FILTERS(X) JINJA_FILTER_N };
#undef X
#define X(id, name) JINJA_TEST_##id,
enum jinja_test_id { JINJA_TESTS(X) JINJA_TEST_N };
#undef X
#define X(id, of, name) JINJA_METHOD_##id,
enum jinja_method_id { JINJA_METHODS(X) JINJA_METHOD_N };
#undef X

/* The id of a filter or test, or one of JINJA_NAME_*. */
int jinja_names_filter(struct jinja_str name);
int jinja_names_test(struct jinja_str name);
/* Whether the space-separated list contains this name. */
bool jinja_names_has(const char *list, struct jinja_str name);

#endif
