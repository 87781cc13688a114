/* fuzz_relevance.c - a heading and a passage of any bytes beside an alarm, whose titles are theirs
 * as
 * well: the first three lines. A relevance is between 0 and 1. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "site/things/relevance.h"
#include "things/alarm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *parts[4] = {NULL}, *rest = text;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < 3; i++) {
        parts[i] = rest;
        char *end = strchr(rest, '\n');
        if (end)
            *end = '\0';
        rest = end ? end + 1 : rest + strlen(rest);
    }
    struct alarm_event e = {.machine_title = parts[1], .n_channels = 2};
    e.channels[0] = (struct alarm_channel){.title = parts[0], .value = 2, .before = 1};
    e.channels[1] = (struct alarm_channel){.title = parts[1], .value = 2, .before = 1};
    for (int kind = 0; kind < ALARM_N_KINDS; kind++) {
        e.kind = (enum alarm_kind)kind;
        double r = relevance_of(&e, parts[2], rest);
        if (!(r >= 0 && r <= 1 + 1e-9))
            abort();
    }
    free(text);
    return 0;
}
