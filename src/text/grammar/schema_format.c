/* schema_format.c - see schema_format.h. */
#include "text/grammar/schema_format.h"

#include <stddef.h>
#include <string.h>

/* The calendar that validators have begins with the year 1. */
#define YEAR "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define DATE                                                                                       \
    "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"      \
    "02-(0[1-9]|1[0-9]|2[0-8]))|[0-9]{2}(0[48]|[2468][048]|[13579][26])-02-29)"
#define CLOCK "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
#define ZONE "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define HOST_PART "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"
#define HOST HOST_PART "(\\." HOST_PART "){0,4}"
#define LABEL "[a-z0-9]+(-[a-z0-9]+){0,3}"
#define HEX "[0-9a-fA-F]"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define PATH_CHAR "[a-zA-Z0-9._~-]"
#define PATH                                                                                       \
    "(/" PATH_CHAR "*)*(\\?" PATH_CHAR "+(=" PATH_CHAR "*)?(&" PATH_CHAR "+(=" PATH_CHAR           \
    "*)?)*)?(#" PATH_CHAR "*)?"

const char *schema_format_regex(const char *name)
{
    static const struct {
        const char *name, *regex;
    } formats[] = {
        {"date", DATE},
        {"time", CLOCK ZONE},
        {"date-time", DATE "T" CLOCK ZONE},
        {"iso-time", CLOCK ZONE},
        {"iso-date-time", DATE "T" CLOCK ZONE},
        {"duration",
         "P([0-9]{1,6}W|[0-9]{1,6}D(T[0-9]{1,6}[HMS])?|T([0-9]{1,6}H([0-9]{1,6}M)?([0-9]{1,6}S)?|"
         "[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S)|[0-9]{1,6}[YM])"},
        {"email", "[a-z0-9_]+([.+-][a-z0-9_]+){0,4}@" HOST_PART "(\\." HOST_PART "){1,4}"},
        {"idn-email", "[a-z0-9_]+([.+-][a-z0-9_]+){0,4}@" HOST_PART "(\\." HOST_PART "){1,4}"},
        {"hostname", HOST},
        {"idn-hostname", HOST},
        {"uuid", HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}"},
        {"ipv4", OCTET "(\\." OCTET "){3}"},
        {"ipv6", "(" HEX "{1,4}:){7}" HEX "{1,4}|(" HEX "{1,4}:){1,6}(:" HEX "{1,4})|::1"},
        {"uri", "(https?|ftp)://" HOST "(:[1-9][0-9]{0,3})?" PATH},
        {"url",
         "(https?|ftp)://" LABEL "(\\." LABEL "){0,3}\\.(com|org|net|io|dev)(/" PATH_CHAR "*)*"},
        {"iri", "(https?|ftp)://" HOST "(:[1-9][0-9]{0,3})?" PATH},
        {"uri-reference", "((https?|ftp)://" HOST ")?" PATH},
        {"iri-reference", "((https?|ftp)://" HOST ")?" PATH},
        {"json-pointer", "(/[a-zA-Z0-9_.-]*)*"},
        {"relative-json-pointer", "(0|[1-9][0-9]{0,3})(#|(/[a-zA-Z0-9_.-]*)*)"},
        {"byte", "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"},
        {"regex", "[a-zA-Z0-9 _-]*"},
        {"uri-template", "(https?|ftp)://" HOST "(/" PATH_CHAR "*|/\\{[a-z]+\\})*"},
    };
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(name, formats[i].name) == 0)
            return formats[i].regex;
    return NULL;
}
