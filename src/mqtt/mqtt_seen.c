/* mqtt_seen.c - see mqtt_seen.h. */
#include "mqtt/mqtt_seen.h"

void mqtt_seen_connected(struct mqtt_seen *s, uint64_t now_ns)
{
    s->link++;
    s->linked_ns = now_ns;
}

bool mqtt_seen_add(struct mqtt_seen *s, uint64_t key, bool exact, uint64_t now_ns)
{
    size_t set = (size_t)key & (MQTT_SEEN_SLOTS / MQTT_SEEN_WAYS - 1), oldest = 0;
    set *= MQTT_SEEN_WAYS;
    bool again = exact || (s->link > 1 && now_ns - s->linked_ns < MQTT_SEEN_NS);
    key |= 1; /* 0 is an empty slot */
    for (size_t i = 0; i < MQTT_SEEN_WAYS; i++) {
        if (s->slots[set + i].key == key) {
            bool known = again && (exact || s->slots[set + i].link != s->link);
            if (!known) {
                s->slots[set + i].link = s->link;
                s->slots[set + i].age = ++s->next_age;
            }
            return known;
        }
        if (s->slots[set + i].age < s->slots[set + oldest].age) /* an empty one is of age 0 */
            oldest = i;
    }
    s->slots[set + oldest].key = key;
    s->slots[set + oldest].link = s->link;
    s->slots[set + oldest].age = ++s->next_age;
    return false;
}
