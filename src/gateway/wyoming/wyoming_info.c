/* wyoming_info.c - see wyoming_info.h. */
#include "gateway/wyoming/wyoming_info.h"

#include <stdio.h>

#include "gateway/gw.h"
#include "voice/wake.h"
#include "wire/json_out.h"
#include "wire/wyoming.h"

struct listing {
    struct json_out *j;
    unsigned kinds;
    uint32_t n;
};

/* Those of a recognizer; English: of all others, and of one that is not loaded. */
static void put_languages(struct json_out *j, const struct shoal_engine *recognizer)
{
    const char *name = shoal_label(recognizer, SHOAL_KIND_TRANSCRIBE, NULL, 0);
    json_out_member_array(j, "languages");
    json_out_str(j, name ? name : "en");
    for (uint32_t i = 1; (name = shoal_label(recognizer, SHOAL_KIND_TRANSCRIBE, NULL, i)); i++)
        json_out_str(j, name);
    json_out_array_end(j);
}

static void put_model(struct json_out *j, const char *name, const char *description,
                      const struct shoal_engine *recognizer)
{
    json_out_object(j);
    wyoming_put_artifact(j, name, description);
    put_languages(j, recognizer);
    json_out_object_end(j);
}

static void list_model(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    if (!(m->slot->kinds & l->kinds))
        return;
    put_model(l->j, m->name, "recognizer of speech",
              m->slot->state == REGISTRY_READY ? registry_engine(m) : NULL);
    l->n++;
}

static void put_flag(struct json_out *j, const char *key, bool value)
{
    json_out_member_bool(j, key, value);
}

static void put_asr(struct json_out *j, struct gw_loop *gl)
{
    struct listing l = {.j = j, .kinds = SHOAL_KIND_TRANSCRIBE};
    json_out_member_array(j, "asr");
    json_out_object(j);
    wyoming_put_artifact(j, "shoal", "speech to text, with the names of the home");
    json_out_member_array(j, "models");
    registry_each(gl->gw->registry, list_model, &l);
    if (l.n == 0) /* recognizers of other nodes, or not loaded yet */
        put_model(j, "hear", "recognizer of speech", NULL);
    json_out_array_end(j);
    put_flag(j, "supports_transcript_streaming", true);
    put_flag(j, "requires_external_vad", true);
    put_flag(j, "prefers_auto_gain_enabled", true);
    put_flag(j, "prefers_noise_reduction_enabled", true);
    json_out_object_end(j);
    json_out_array_end(j);
}

struct voice_found {
    char *name;
    size_t cap;
    bool any;
};

static void find_voice(void *ctx, const struct registry_model *m)
{
    struct voice_found *f = ctx;
    if (f->any || !(m->slot->kinds & SHOAL_KIND_SPEAK))
        return;
    f->any = true;
    snprintf(f->name, f->cap, "%s", m->name);
}

const char *wyoming_info_voice(struct gw_loop *gl, char *out, size_t cap)
{
    struct voice_found f = {.name = out, .cap = cap};
    snprintf(out, cap, "voice"); /* of another node, or not loaded yet */
    registry_each(gl->gw->registry, find_voice, &f);
    return out;
}

static void put_tts(struct json_out *j, struct gw_loop *gl)
{
    char name[128];
    json_out_member_array(j, "tts");
    json_out_object(j);
    wyoming_put_artifact(j, "shoal", "text to speech");
    json_out_member_array(j, "voices");
    put_model(j, wyoming_info_voice(gl, name, sizeof(name)), "voice", NULL);
    json_out_array_end(j);
    put_flag(j, "supports_synthesize_streaming", false);
    json_out_object_end(j);
    json_out_array_end(j);
}

static void put_home(struct json_out *j, const char *domain, const char *what, bool controls)
{
    json_out_member_array(j, domain);
    json_out_object(j);
    wyoming_put_artifact(j, "shoal", what);
    json_out_member_array(j, "models");
    put_model(j, "home", what, NULL);
    json_out_array_end(j);
    if (controls) {
        put_flag(j, "supports_handled_streaming", false);
        put_flag(j, "supports_home_control", true);
    }
    json_out_object_end(j);
    json_out_array_end(j);
}

void wyoming_info_put(struct buf *b, struct gw_loop *gl)
{
    static const char *const none[] = {"mic", "snd"}; /* of this server: see shoal satellite */
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    put_asr(&j, gl);
    put_tts(&j, gl);
    if (gl->gw->home.table) {
        put_home(&j, "handle", "carries out commands and answers them", true);
        put_home(&j, "intent", "says what a command would do", false);
    }
    wyoming_put_wake(&j, gl->gw->wake ? wake_word(gl->gw->wake) : NULL);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        json_out_member_array(&j, none[i]);
        json_out_array_end(&j);
    }
    json_out_object_end(&j);
}
