/* schema_format.h - the formats of JSON Schema strings as regular expressions.
 *
 * Each allows only texts that every validator accepts (days that exist, times with a zone), but not
 * all of them: addresses of mail, hosts and URIs stay with plain characters.
 *
 * Thread:    pure. */
#ifndef SHOAL_TEXT_GRAMMAR_SCHEMA_FORMAT_H
#define SHOAL_TEXT_GRAMMAR_SCHEMA_FORMAT_H

/* NULL: the format restricts nothing that we know of, so it is only an annotation. */
const char *schema_format_regex(const char *name);

#endif
