/* fuzz_ask.c - the home flow's rules with the table of the pack: any text as clauses and values,
 * and entities at any place. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "apps/home/home_clauses.h"
#include "apps/home/home_rules.h"
#include "apps/home/home_speech.h"
#include "apps/home/home_truth.h"
#include "apps/home/turn/home_reword.h"
#include "apps/home/turn/home_turn.h"
#include "apps/home/home_values.h"
#include "apps/home/table/home_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const intents[] = {
        "turn_on",   "set_temperature", "set_timer", "add_to_list",
        "calculate", "play_media",      "set_alarm", "oos"};
    static const char *const types[] = {"device", "room", "value", "duration", "time",
                                        "date",   "item", "expr",  "task",     "list"};
    static struct home_table *table; /* read once */
    struct home_entity entities[8];
    struct home_draft draft = {0};
    struct tm now = {.tm_mday = 15, .tm_mon = 10, .tm_year = 126};
    struct arena a;
    const char **list;
    if (size < 10 || size > 2000)
        return 0;
    if (!table && home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", NULL) < 0)
        __builtin_trap();
    char *text = mem_strndup((const char *)data + 9, size - 9);
    if (!text)
        return 0;
    arena_init(&a, 1 << 22);
    struct home_words w = home_words_split(&a, text);
    for (uint32_t i = 0; i < 8; i++)
        entities[i] = (struct home_entity){types[data[i] % 10], w.n ? data[i] % w.n : 0,
                                           w.n ? data[i] % w.n + 1u + (data[i] >> 6) : 1};
    struct home_clause c = {.text = text,
                            .intent = intents[data[8] % 8],
                            .intent_p = 1,
                            .speech = data[8] & 64 ? HOME_SPEECH_ASK : HOME_SPEECH_COMMAND,
                            .speech_p = 1,
                            .router = "home",
                            .flow = "act",
                            .entities = entities,
                            .n_entities = 8};
    uint32_t n = home_clauses_split(&a, table, text, &list);
    for (uint32_t i = 0; i < n; i++)
        if (strlen(list[i]) > size * 2)
            __builtin_trap();
    (void)home_values_amount(&a, table, text, true, home_table_unit(table, "percent"));
    (void)home_values_duration(&a, table, text);
    (void)home_values_clock(&a, table, text);
    (void)home_values_date(&a, table, text);
    struct home_part parts[8];
    uint32_t n_parts = 0, at = 0;
    for (uint32_t i = 0; i < 8 && at < w.n; i++) { /* in order, with gaps */
        uint32_t from = at + data[i] % 3, to = from + 1 + data[i] / 3 % 4;
        if (from >= w.n)
            break;
        at = to < w.n ? to : w.n;
        parts[n_parts++] = (struct home_part){from, at, (enum home_speech)(data[i] % 6), 1.0f};
    }
    struct home_said *said;
    n = home_speech_pieces(&a, table, &w, parts, n_parts, &said, 16);
    for (uint32_t i = 0; i < n && i < 16; i++)
        if (!*said[i].text || strlen(said[i].text) > size * 2)
            __builtin_trap();
    const char *rooms[] = {"kitchen"}, *fans[] = {"fan"};
    struct home_thing things[] = {{.type = HOME_THING_ROOM, .names = {rooms, 1}},
                                  {.type = HOME_THING_DEVICE, .names = {fans, 1}}};
    const struct home_file file = {.things = things, .n_things = 2};
    const struct home_focus focus = {.device = "fan",
                                     .room = "kitchen",
                                     .machine = "pump 2",
                                     .said = "turn on the kitchen fan in here",
                                     .room_from = data[0] % 4,
                                     .room_to = data[0] % 4 + data[1] % 3,
                                     .thing_from = data[2] % 4,
                                     .thing_to = data[2] % 4 + 1u + data[3] % 5,
                                     .value_from = data[1] % 6,
                                     .value_to = data[1] % 6 + data[2] % 3};
    const char *turn = home_turn_whole(&a, table, &file, &focus, &w);
    if (turn && (!*turn || strlen(turn) > size + 64))
        __builtin_trap();
    struct home_words other = home_words_split(&a, text);
    (void)home_reword_front(&a, table, &other);
    (void)home_reword_things(&a, table, &file, &other);
    (void)home_reword_except(&a, table, &file, &other);
    (void)home_turn_again(&a, table, &other);
    if (a.rc == 0 && other.n > w.n)
        __builtin_trap();
    turn = home_turn_order(&a, table, &file, &w);
    if (turn && !*turn)
        __builtin_trap();
    (void)home_rules_decide(&a, table, &draft, &c, data[8] & 128 ? &focus : NULL, NULL, &now);
    struct home_draft_context *contexts;
    n = home_draft_contexts(&a, &draft, table->together, &contexts);
    for (uint32_t i = 0; i < n; i++)
        if (contexts[i].text)
            (void)home_truth_holds(&a, contexts[i].text, text);
    arena_fini(&a);
    mem_free(text);
    return 0;
}
