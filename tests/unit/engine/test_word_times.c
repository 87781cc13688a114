/* test_word_times.c - the times of words against OpenAI's whisper/timing.py: the alignment of
 * random weights, and words of real sounds from the times of their tokens; then a whole engine.
 * tools/make_word_refs.py made the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/native/word_times.h"
#include "kernels/kern.h"
#include "shoal/shoal.h"
#include "support/ref_file.h"

enum { MOST = 512, ROWS = 11, HEADS = 3, FRAMES = 40, HEARD = 36, FIRST = 2, N = 8 };

static void test_alignment(void **state)
{
    struct ref_file refs;
    uint32_t begin[N];
    (void)state;
    assert_int_equal(ref_open(&refs, SHOAL_TEST_DATA "/whisper/words.ref"), 0);
    const struct word_times_looks looks = {
        (const float *)(const void *)ref_find(&refs, "weights")->data, ROWS, HEADS, FRAMES, HEARD};
    assert_int_equal(word_times_align(begin, &looks, FIRST, N), 0);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(begin[i], ref_int(ref_find(&refs, "begin"), i));
    ref_close(&refs);
}

/* A row that looks nowhere, one frame, more rows than frames: some path, no crash. */
static void test_odd_shapes(void **state)
{
    static const float nothing[ROWS * HEADS * FRAMES];
    uint32_t begin[ROWS];
    (void)state;
    for (uint32_t heard = 1; heard <= FRAMES; heard += 3) {
        const struct word_times_looks looks = {nothing, ROWS, HEADS, FRAMES, heard};
        assert_int_equal(word_times_align(begin, &looks, 0, ROWS), 0);
        assert_int_equal(begin[0], 0);
        for (uint32_t i = 1; i < ROWS; i++) {
            assert_true(begin[i] >= begin[i - 1]);
            assert_true(begin[i] < heard);
        }
    }
}

struct said { /* one sound of words.txt */
    char name[64];
    struct word_times_part parts[16];
    uint32_t n_parts, n, n_words;
    double begin[MOST], start[MOST], stop[MOST];
    char bytes[MOST][64], words[MOST][64];
    struct str pieces[MOST];
};

static void unhex(char out[64], const char *hex)
{
    size_t n = strlen(hex) / 2;
    assert_true(n < 64);
    for (size_t i = 0; i < n; i++) {
        unsigned v;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &v), 1);
        out[i] = (char)v;
    }
    out[n] = '\0';
}

/* false: the file is over. */
static bool read_sound(struct said *s, FILE *f)
{
    char line[256], hex[128];
    double a, b;
    unsigned n;
    memset(s, 0, sizeof(*s));
    while (fgets(line, sizeof(line), f) && strcmp(line, "done\n") != 0) {
        assert_true(s->n < MOST && s->n_words < MOST && s->n_parts < 16);
        if (sscanf(line, "part %u %lf %lf", &n, &a, &b) == 3) {
            s->parts[s->n_parts++] = (struct word_times_part){n, a, b};
        } else if (sscanf(line, "token %lf %127s", &a, hex) == 2) {
            unhex(s->bytes[s->n], hex);
            s->pieces[s->n] = (struct str){s->bytes[s->n], strlen(s->bytes[s->n])};
            s->begin[s->n++] = a;
        } else if (sscanf(line, "end %lf", &a) == 1) {
            s->begin[s->n] = a;
        } else if (sscanf(line, "word %lf %lf %127s", &a, &b, hex) == 3) {
            unhex(s->words[s->n_words], hex);
            s->start[s->n_words] = a;
            s->stop[s->n_words++] = b;
        } else {
            assert_int_equal(sscanf(line, "sound %63s", s->name), 1);
        }
    }
    return s->n > 0;
}

static void text_of(char out[128], const struct said *s, const struct word_times_word *w)
{
    out[0] = '\0';
    for (uint32_t i = w->from; i < w->to; i++)
        strncat(out, s->bytes[i], 127 - strlen(out));
    memmove(out, out + strspn(out, " "), strlen(out) + 1 - strspn(out, " "));
}

static void test_words(void **state)
{
    static struct said s;
    static struct word_times_word words[MOST];
    uint32_t n, n_sounds = 0;
    FILE *f = fopen(SHOAL_TEST_DATA "/whisper/words.txt", "r");
    (void)state;
    assert_non_null(f);
    while (read_sound(&s, f)) {
        char text[128];
        assert_int_equal(
            word_times_divide(words, &n, s.pieces, s.begin, s.n, true, s.parts, s.n_parts), 0);
        assert_int_equal(n, s.n_words);
        for (uint32_t i = 0; i < n; i++) {
            text_of(text, &s, &words[i]);
            assert_string_equal(text, s.words[i]);
            if (fabs(words[i].start - s.start[i]) > 0.006 || /* they are written with two digits */
                fabs(words[i].stop - s.stop[i]) > 0.006)
                fail_msg("%s: '%s' is %.3f to %.3f, expected %.3f to %.3f", s.name, text,
                         words[i].start, words[i].stop, s.start[i], s.stop[i]);
        }
        n_sounds++;
    }
    assert_int_equal(n_sounds, 5);
    fclose(f);
}

/* Words from pieces, one for each second. */
static uint32_t divided(const char *const *pieces, uint32_t n, bool spaced, char out[8][128])
{
    static struct said s;
    static struct word_times_word words[MOST];
    uint32_t n_words;
    for (uint32_t i = 0; i <= n; i++)
        s.begin[i] = i;
    for (uint32_t i = 0; i < n; i++) {
        strcpy(s.bytes[i], pieces[i]);
        s.pieces[i] = (struct str){s.bytes[i], strlen(s.bytes[i])};
    }
    assert_int_equal(word_times_divide(words, &n_words, s.pieces, s.begin, n, spaced, NULL, 0), 0);
    for (uint32_t i = 0; i < n_words && i < 8; i++)
        text_of(out[i], &s, &words[i]);
    return n_words;
}

static void test_marks(void **state)
{
    static const char *const quoted[] = {" He", " said", " \"", "no", "thing", ".", "\""};
    static const char *const parts[] = {"\xe4\xbd", "\xa0", "\xe5\xa5\xbd", "\xe3\x80\x82"};
    static const char *const only[] = {" \""};
    char out[8][128];
    (void)state;
    assert_int_equal(divided(quoted, 7, true, out), 3);
    assert_string_equal(out[0], "He");
    assert_string_equal(out[1], "said");
    assert_string_equal(out[2], "\"nothing.\"");
    /* Without spaces each character is one, however many tokens it has; its full stop is not. */
    assert_int_equal(divided(parts, 4, false, out), 2);
    assert_string_equal(out[0], "\xe4\xbd\xa0");
    assert_string_equal(out[1], "\xe5\xa5\xbd\xe3\x80\x82");
    assert_int_equal(divided(only, 1, true, out), 1);
    assert_int_equal(divided(only, 0, true, out), 0);
}

static void hear(const char *kernels, bool words, void (*check)(const struct shoal_result *r))
{
    static int16_t sound[4 * 16000];
    struct shoal_error e;
    struct shoal_engine *en;
    struct shoal_task *t;
    const struct shoal_engine_opts eo = {.size = sizeof(eo), .n_threads = 1, .kernels = kernels};
    for (int i = 0; i < 4 * 16000; i++)
        sound[i] = (int16_t)((int64_t)i * i / 4096 % 8000 - 4000);
    assert_int_equal(shoal_engine_open(&en, SHOAL_TEST_DATA "/whisper/whisper.bin", &eo, &e), 0);
    const struct shoal_infer_opts o = {.size = sizeof(o),
                                       .kind = SHOAL_KIND_TRANSCRIBE,
                                       .samples = sound,
                                       .n_samples = 4 * 16000,
                                       .labels = "en",
                                       .words = words};
    assert_int_equal(shoal_infer_submit(en, &o, &t, &e), 0);
    assert_int_equal(shoal_task_wait(t), 0);
    check(shoal_task_result(t));
    shoal_task_free(t);
    shoal_engine_close(en);
}

static char first[1 << 14];

/* Parts without a label, then words in the order of the text and of time. */
static void check_spans(const struct shoal_result *r)
{
    char all[1 << 14] = "";
    uint32_t at = 0, n_words = 0;
    assert_int_equal(r->n_values, 2 * r->n_spans);
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const struct shoal_span *s = &r->spans[i];
        const size_t n = strlen(all);
        snprintf(all + n, sizeof(all) - n, "%s %u %u %.4f %.4f\n", s->label ? s->label : "part",
                 s->start, s->end, r->values[2 * i], r->values[2 * i + 1]);
        assert_true(s->end <= r->text_bytes && s->start <= s->end);
        assert_true(r->values[2 * i] >= 0 && r->values[2 * i + 1] <= 4.0);
        if (!s->label)
            continue;
        assert_string_equal(s->label, "word");
        assert_true(s->start >= at && r->text[s->start] != ' ');
        at = s->end;
        n_words++;
    }
    assert_true(n_words > 1);
    if (first[0])
        assert_string_equal(all, first);
    strcpy(first, all);
}

static void check_none(const struct shoal_result *r)
{
    for (uint32_t i = 0; i < r->n_spans; i++)
        assert_null(r->spans[i].label);
}

static void test_engine(void **state)
{
    const struct kern_ops *sets[16];
    const size_t n = kern_usable(sets, 16);
    (void)state;
    for (size_t i = 0; i < n; i++)
        hear(sets[i]->name, true, check_spans);
    hear(NULL, false, check_none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment), cmocka_unit_test(test_odd_shapes),
        cmocka_unit_test(test_words),     cmocka_unit_test(test_marks),
        cmocka_unit_test(test_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
