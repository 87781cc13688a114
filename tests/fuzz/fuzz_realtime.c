/* fuzz_realtime.c - events of a client of /v1/realtime, one on each line: all of them change the
 * same session; and keys in the protocols that a WebSocket offers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/call/api_key.h"
#include "gateway/realtime/realtime_items.h"
#include "gateway/realtime/realtime_read.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *take(struct realtime_settings *s, struct realtime_items *x,
                        const struct realtime_event *ev)
{
    const cJSON *item = NULL;
    const char *wrong = NULL, *param;
    if (ev->settings)
        return realtime_settings_read(s, ev->settings, &param);
    if (ev->type == REALTIME_ITEM_CREATE) {
        wrong = realtime_items_add(x, ev->item, ev->item_id, &item);
        if (!wrong && !realtime_items_find(x, cJSON_GetObjectItem(item, "id")->valuestring))
            abort();
    } else if (ev->item_id && (item = realtime_items_find(x, ev->item_id))) {
        realtime_items_remove(x, item);
    }
    return wrong;
}

static void finish(const struct realtime_settings *s, const struct realtime_items *x)
{
    struct realtime_settings copy;
    cJSON *messages = realtime_items_messages(x, s->instructions);
    char *text = cJSON_PrintUnformatted(messages);
    if (!messages || s->rate < 8000 || s->rate > 48000 || !realtime_settings_copy(&copy, s))
        abort();
    FUZZ_NOTE("%d%d%d%d %u %s [%s] %s", s->audio, s->vad, s->creates, s->interrupts, s->rate,
              s->voice, realtime_items_last_user(x), text);
    cJSON_free(text);
    cJSON_Delete(messages);
    realtime_settings_fini(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct realtime_settings s;
    struct realtime_items x;
    char key[API_KEY_MAX], *text = malloc(size + 1);
    const char *p = (const char *)data, *end = p + size;
    if (!text)
        return 0;
    realtime_settings_init(&s);
    realtime_items_init(&x);
    memcpy(text, data, size);
    text[size] = '\0';
    const char *found = api_key_offered(text, key);
    if (found)
        FUZZ_NOTE("key %s", found);
    while (p < end) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const size_t n = line ? (size_t)(line - p) : (size_t)(end - p);
        struct realtime_event ev;
        const char *wrong = realtime_read(&ev, p, n);
        if (!wrong)
            wrong = take(&s, &x, &ev);
        if (wrong && !wrong[0])
            abort();
        FUZZ_NOTE("%s", wrong ? wrong : "good");
        if (ev.n_sound > 0)
            FUZZ_NOTE("%zu bytes of sound", ev.n_sound);
        realtime_free(&ev);
        p += n + 1;
    }
    finish(&s, &x);
    realtime_settings_fini(&s);
    realtime_items_fini(&x);
    free(text);
    return 0;
}
