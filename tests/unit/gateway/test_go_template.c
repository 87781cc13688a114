/* test_go_template.c - templates of Go that become Jinja: what they render, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/chat_template.h"
#include "gateway/api/ollama/go_template.h"

#define SYSTEM "{\"role\":\"system\",\"content\":\"Be kind.\"},"
#define HI "{\"role\":\"user\",\"content\":\"Hi\"}"
#define MORE                                                                                       \
    ",{\"role\":\"assistant\",\"content\":\"Hello!\"},{\"role\":\"user\",\"content\":\"Bye\"}"

static void test_turns(void **state)
{
    static const char chatml[] = "{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ "
                                 "end }}{{ if .Prompt }}<|im_start|>user\n{{ .Prompt "
                                 "}}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ .Response "
                                 "}}<|im_end|>\n";
    static const struct {
        const char *template, *messages, *want;
    } cases[] = {
        {chatml, HI, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
        {chatml, SYSTEM HI MORE,
         "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
         "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
         "<|im_start|>assistant\n"},
        {"[INST] {{ if .System }}<<SYS>>{{ .System }}<</SYS>>\n\n{{ end }}{{ .Prompt }} [/INST]",
         SYSTEM HI MORE, "[INST] <<SYS>>Be kind.<</SYS>>\n\nHi [/INST]Hello![INST] Bye [/INST]"},
        {"a \n {{- /* dashes */ -}} \n b {{- if and .System .Prompt }}1{{ else if not .System "
         "}}2{{ else }}3{{ end -}} \n c",
         HI, "ab2c"},
        {"{{ .Prompt }} \"q\" \\ {% raw %} {# x #}\t", HI, "Hi \"q\" \\ {% raw %} {# x #}\t"},
        {"{{ if or .System .Prompt }}x{{ end }}{{ .Response }}{{ if .System }}y{{ end }}",
         SYSTEM HI MORE, "xHello!yx"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chat_template *t = NULL;
        struct buf jinja, out, json;
        struct err e = {0};
        buf_init(&jinja, 1 << 16);
        buf_init(&out, 1 << 16);
        buf_init(&json, 1 << 16);
        buf_printf(&json, "{\"messages\":[%s],\"add_generation_prompt\":true}", cases[i].messages);
        if (go_template_translate(&jinja, cases[i].template, &e) < 0 ||
            chat_template_parse(&t, jinja.data, jinja.len, &e) < 0 ||
            chat_template_render_opts(t, &out, json.data, json.len,
                                      &(struct chat_template_opts){.fixed_time = true}, &e) < 0)
            fail_msg("%s: %s", cases[i].template, e.msg);
        assert_string_equal(buf_str(&out), cases[i].want);
        chat_template_destroy(t);
        buf_fini(&jinja);
        buf_fini(&out);
        buf_fini(&json);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *template;
        int code;
        const char *says;
    } cases[] = {
        {"{{ range .Messages }}{{ .Content }}{{ end }}", SHOAL_EUNSUPPORTED,
         "{{ range .Messages }}"},
        {"{{ .Tools }}", SHOAL_EUNSUPPORTED, "{{ .Tools }}"},
        {"{{ if eq .Role \"user\" }}{{ end }}", SHOAL_EUNSUPPORTED, "if eq"},
        {"{{ if .System }}{{ .Response }}{{ end }}", SHOAL_EUNSUPPORTED, "{{ .Response }}"},
        {"{{ .Response }}{{ .Response }}", SHOAL_EUNSUPPORTED, "{{ .Response }}"},
        {"{{ end }}", SHOAL_EUNSUPPORTED, "{{ end }}"},
        {"{{ else }}", SHOAL_EUNSUPPORTED, "{{ else }}"},
        {"{{ .System .Prompt }}", SHOAL_EUNSUPPORTED, ".System .Prompt"},
        {"{{ if .System }}", SHOAL_EINVAL, "without its end"},
        {"{{ .System", SHOAL_EINVAL, "without }}"},
        {"{{ }}", SHOAL_EUNSUPPORTED, "{{  }}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf jinja;
        struct err e = {0};
        buf_init(&jinja, 1 << 16);
        int rc = go_template_translate(&jinja, cases[i].template, &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].template, rc, e.msg);
        buf_fini(&jinja);
    }
}

static void test_which_is_which(void **state)
{
    (void)state;
    assert_true(go_template_is("{{ .Prompt }}"));
    assert_true(go_template_is("{{- if .System }}x{{ end }}"));
    assert_true(go_template_is("{{ range $i, $m := .Messages }}{{ end }}"));
    assert_false(go_template_is("{% for m in messages %}{{ m.content }}{% endfor %}"));
    assert_false(go_template_is("{{ messages[0]['content'] }}{{ 'if .' }}"));
    assert_false(go_template_is("plain"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_which_is_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
