/* fuzz_ask.c - the ask flow's rules: any text as clauses, values, and entities at any place. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "flow/home/ask_rules.h"
#include "flow/home/ask_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const intents[] = {
        "turn_on",   "set_temperature", "set_timer", "add_to_list",
        "calculate", "play_media",      "set_alarm", "oos"};
    static const char *const types[] = {"device", "room", "value", "duration", "time",
                                        "date",   "item", "expr",  "task",     "list"};
    struct ask_entity entities[8];
    struct ask_plan plan = {0};
    struct tm now = {.tm_mday = 15, .tm_mon = 10, .tm_year = 126};
    struct arena a;
    const char **list;
    if (size < 10 || size > 2000)
        return 0;
    char *text = mem_strndup((const char *)data + 9, size - 9);
    if (!text)
        return 0;
    arena_init(&a, 1 << 22);
    struct ask_words w = ask_words(&a, text);
    for (uint32_t i = 0; i < 8; i++)
        entities[i] = (struct ask_entity){types[data[i] % 10], w.n ? data[i] % w.n : 0,
                                          w.n ? data[i] % w.n + 1u + (data[i] >> 6) : 1};
    struct ask_clause c = {.text = text,
                           .intent = intents[data[8] % 8],
                           .intent_p = 1,
                           .router = "home",
                           .flow = "act",
                           .entities = entities,
                           .n_entities = 8};
    uint32_t n = ask_clauses(&a, text, &list);
    for (uint32_t i = 0; i < n; i++)
        if (strlen(list[i]) > size * 2)
            __builtin_trap();
    (void)ask_value(&a, text, "open");
    (void)ask_duration(&a, text);
    (void)ask_clock(&a, text);
    ask_decide(&a, &plan, &c, &now);
    (void)ask_contexts(&a, &plan, &list);
    arena_fini(&a);
    mem_free(text);
    return 0;
}
