/* test_pii.c - personal data in text: hits, and lookalikes that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "privacy/pii.h"

struct found {
    const char *text;
    struct buf out;
    size_t last;
};

static void on_hit(void *ctx, const struct pii_hit *h)
{
    struct found *f = ctx;
    assert_true(h->start >= f->last && h->end > h->start);
    f->last = h->end;
    buf_printf(&f->out, "%s%s%s%s:%.*s", f->out.len ? " | " : "", pii_kind_name(h->kind),
               h->form[0] ? "/" : "", h->form, (int)(h->end - h->start), f->text + h->start);
}

static void check(const char *text, const char *want)
{
    struct found f = {.text = text};
    buf_init(&f.out, 1 << 16);
    pii_find(text, strlen(text), PII_BY_RULES, on_hit, &f);
    if (strcmp(buf_str(&f.out), want) != 0)
        fail_msg("%s: found \"%s\", want \"%s\"", text, buf_str(&f.out), want);
    buf_fini(&f.out);
}

struct row {
    const char *text, *want; /* "": nothing */
};

static void check_all(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(rows[i].text, rows[i].want);
}
#define CHECK(rows) check_all(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_emails(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"write to anna.schmidt@example.org.", "email:anna.schmidt@example.org"},
        {"<x+tag@mail.example.co.uk>", "email:x+tag@mail.example.co.uk"},
        {"{\"to\":\"o'neil@example.com\"}", "email:o'neil@example.com"},
        {"j\xc3\xb6rg@m\xc3\xbcller.de!", "email:j\xc3\xb6rg@m\xc3\xbcller.de"},
        {"a@xn--bcher-kva.example", "email:a@xn--bcher-kva.example"},
        {"mailto:me@example.net?subject=x", "email:me@example.net"},
        {"\xe9\x82\xae\xe7\xae\xb1"
         "li@example.cn\xe3\x80\x82",
         "email:li@example.cn"},
        {"icon@2x.png and lodash@4.17.21", ""},
        {"root@server and @handle", ""},
        {"git@host.org:team/repo", ""},
        {"a..b@example.org", "email:b@example.org"},
        {"x@-example.org x@example..org", ""},
    };
    CHECK(rows);
}

static void test_cards(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"4111 1111 1111 1111 exp 12/26", "card/visa:4111 1111 1111 1111"},
        {"card 5500-0000-0000-0004,", "card/mastercard:5500-0000-0000-0004"},
        {"378282246310005", "card/amex:378282246310005"},
        {"3782 822463 10005", "card/amex:3782 822463 10005"},
        {"6011\xc2\xa0"
         "1111\xc2\xa0"
         "1111\xc2\xa0"
         "1117",
         "card/discover:6011\xc2\xa0"
         "1111\xc2\xa0"
         "1111\xc2\xa0"
         "1117"},
        {"(378282246310005)", "card/amex:378282246310005"},
        {"4111 1111 1111 1112 has a wrong check digit", ""},
        {"1234567812345670 has no network", ""},
        {"A-4111111111111111", ""},
        {"4111111111111111B", ""},
        {"41111111111111111111111111", ""},
        {"1700000000000 1700000000000000000", ""},
    };
    CHECK(rows);
}

static void test_ibans(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"IBAN DE89 3704 0044 0532 0130 00.", "iban:DE89 3704 0044 0532 0130 00"},
        {"gb82west12345698765432", "iban:gb82west12345698765432"},
        {"FR1420041010050500013M02606", "iban:FR1420041010050500013M02606"},
        {"NO9386011117947", "iban:NO9386011117947"},
        {"DE89 3704 0044 0532 0130 01", ""},  /* check digits */
        {"DE89 3704 0044 0532 0130 000", ""}, /* too long */
        {"ZZ89370400440532013000", ""},
    };
    CHECK(rows);
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"ping 192.168.178.23:8080", "ip/ipv4:192.168.178.23"},
        {"from 8.8.8.8.", "ip/ipv4:8.8.8.8"},
        {"[2001:db8::8a2e:370:7334]", "ip/ipv6:2001:db8::8a2e:370:7334"},
        {"fe80::1%eth0", "ip/ipv6:fe80::1"},
        {"2001:0db8:85a3:0000:0000:8a2e:0370:7334",
         "ip/ipv6:2001:0db8:85a3:0000:0000:8a2e:0370:7334"},
        {"::ffff:203.0.113.9", "ip/ipv6:::ffff:203.0.113.9"},
        {"127.0.0.1 0.0.0.0 ::1", ""},
        {"firmware 10.2.13.4, v1.2.3.4, 1.2.3.4.5, 1.2.3.400, 01.2.3.4", ""},
        {"std::vector<int> a::b Abc::Dad 12:30:45 aa:bb:cc:dd:ee:ff", ""},
        {"1:2:3:4:5:6:7:8:9", ""},
    };
    CHECK(rows);
}

static void test_phones(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"call +49 171 2345678 now", "phone/international:+49 171 2345678"},
        {"+1 (415) 555-2671", "phone/international:+1 (415) 555-2671"},
        {"0049 30 901820", "phone/international:0049 30 901820"},
        {"+44 (0)20 7946 0958", "phone/international:+44 (0)20 7946 0958"},
        {"tel:+33612345678", "phone/international:+33612345678"},
        {"(415) 555-2671 or 415.555.2672", "phone/us:(415) 555-2671 | phone/us:415.555.2672"},
        {"06 12 34 56 78", "phone/national:06 12 34 56 78"},
        {"030/901820-0", "phone/national:030/901820-0"},
        {"0171 2345678 0172 3456789", "phone/national:0171 2345678 | phone/national:0172 3456789"},
        {"0171-2345678", "phone/national:0171-2345678"},
        {"020 7946 0958", "phone/national:020 7946 0958"},
        {"07911123456", "phone/national:07911123456"},
        {"mi m\xc3\xb3vil es 612 345 678", "phone/national:612 345 678"},
        {"my number: call 4155552671", "phone/us:4155552671"},
        {"(+31 6 12345678)", "phone/international:+31 6 12345678"},
        {"+33 1 48 98 04 28", "phone/international:+33 1 48 98 04 28"},
        {"(020 7946 0958)", "phone/national:020 7946 0958"},
        {"fax 3114659170", "phone/national:3114659170"},
        {"call about order 415-555-2671", ""},
        {"order 415-555-2671", ""},
        {"#415-555-2671", ""},
        {"it costs 612 345 678 euro", ""},
        {"01.02.2024 10:30 and 2024-01-15 08:00:00", ""},
        {"ISBN 978-3-16-148410-0", ""},
        {"+999 123 456 789", "phone/international:+999 123 456 789"},
        {"build 20240115123456", ""},
        {"pi is 3.14159 26535", ""},
        {"+5", ""},
    };
    CHECK(rows);
}

static void test_ids(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"SSN 536-90-4399", "id/us_ssn:536-90-4399"},
        {"ssn: 536904399", "id/us_ssn:536904399"},
        {"000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000", ""},
        {"536904399", ""},
        {"Steuer-ID 86 095 742 719", "id/de_tax:86 095 742 719"},
        {"47036892816", "id/de_tax:47036892816"},
        {"47036892817", ""},
        {"DNI 12345678Z", "id/es_dni:12345678Z"},
        {"12345678-Z", "id/es_dni:12345678-Z"},
        {"NIE X1234567L", "id/es_dni:X1234567L"},
        {"12345678A", ""},
        {"1 84 12 76 451 089 46", "id/fr_nir:1 84 12 76 451 089 46"},
        {"184127645108946", "id/fr_nir:184127645108946"},
        {"184127645108947", ""},
        {"185052A00401270", "id/fr_nir:185052A00401270"}, /* born in Corsica */
        {"185052C00401270", ""},
        {"RSSMRA85T10A562S", "id/it_cf:RSSMRA85T10A562S"},
        {"RSSMRA85T10A562T", ""},
        {"AB 12 34 56 C", "id/uk_nino:AB 12 34 56 C"},
        {"GB123456A DA123456A AB123456E", ""},
        {"BSN 111222333", "id/nl_bsn:111222333"},
        {"111222333", ""},
        {"PESEL 44051401359", "id/pl_pesel:44051401359"},
        {"44051401358", ""},
    };
    CHECK(rows);
}

static void test_births(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"born on 24.12.1980 in Rome", "birth:24.12.1980"},
        {"Date of birth: 1980-12-24", "birth:1980-12-24"},
        {"DOB 12/24/80", "birth:12/24/80"},
        {"her birthday is December 24th, 1980", "birth:December 24th, 1980"},
        {"geboren am 3. M\xc3\xa4rz 1975", "birth:3. M\xc3\xa4rz 1975"},
        {"nacida el 3 de mayo de 1975", "birth:3 de mayo de 1975"},
        {"n\xc3\xa9"
         "e le 1er juin 1990",
         "birth:1er juin 1990"},
        {"born 01.02.1980, hired 03.04.2010", "birth:01.02.1980"},
        {"the meeting is on 24.12.2024", ""},
        {"born yesterday, see section 1.2.3", ""},
        {"released December 24, 1980", ""},
    };
    CHECK(rows);
}

static void test_only_kinds_that_are_wanted(void **state)
{
    (void)state;
    struct found f = {.text = "a@example.org 8.8.8.8"};
    buf_init(&f.out, 1 << 16);
    pii_find(f.text, strlen(f.text), PII_BIT(PII_IP), on_hit, &f);
    assert_string_equal(buf_str(&f.out), "ip/ipv4:8.8.8.8");
    buf_fini(&f.out);
}

static void test_names_of_kinds(void **state)
{
    (void)state;
    enum pii_kind k;
    for (unsigned i = 0; i < PII_N_KINDS; i++) {
        const char *name = pii_kind_name((enum pii_kind)i);
        assert_true(pii_kind_read(&k, name, strlen(name)));
        assert_int_equal(k, i);
        assert_true(strlen(pii_kind_text((enum pii_kind)i)) > 3);
    }
    assert_false(pii_kind_read(&k, "emails", 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emails),         cmocka_unit_test(test_cards),
        cmocka_unit_test(test_ibans),          cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_phones),         cmocka_unit_test(test_ids),
        cmocka_unit_test(test_births),         cmocka_unit_test(test_only_kinds_that_are_wanted),
        cmocka_unit_test(test_names_of_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
