#!/usr/bin/env python3
"""Writes tests/data/pii/eval.jsonl: texts with personal data at known positions, and texts without any.

Values come from separate generators (check digits are computed here, not by the rules under test), sentences
from templates in five languages.  Formats are those people use, including ones that no rule finds.  Texts without personal
data are written by hand (HARD) or made of numbers that look like it.  The output is deterministic.
Usage: tools/make_pii_set.py > tests/data/pii/eval.jsonl
"""
import json
import random
import string

R = random.Random(1611)  # not the seed that was used while developing the rules


def digits(n, first="0123456789"):
    return R.choice(first) + "".join(R.choice("0123456789") for _ in range(n - 1))


def luhn(body):
    total = 0
    for i, c in enumerate(reversed(body)):
        v = int(c) * (2 if i % 2 == 0 else 1)
        total += v - 9 if v > 9 else v
    return body + str(-total % 10)


def grouped(text, sizes, sep):
    out, at = [], 0
    for n in sizes:
        out.append(text[at:at + n])
        at += n
    if at < len(text):
        out.append(text[at:])
    return sep.join(out)


FIRST = "Lukas Mia Noah Emma Oliver Charlotte Mateo Chiara Hugo Inès Jakub Zofia Daan Sanne Aisha Kenji Priya Tomasz Björn Søren".split()
LAST = "Weber Rossi Dubois García Kowalski Jansen Müller Okafor Tanaka Sharma Novak O'Brien Lindqvist Costa Fischer Moreau".split()
HOSTS = "example.com example.org mail.example.net firma-example.de univ.example.edu example.co.uk stadt.example xn--mnchen-3ya.example".split()


def plain(s):
    return s.lower().replace("'", "").translate(str.maketrans("éèüöäøñí", "eeuoaoni"))


def email():
    a, b = R.choice(FIRST), R.choice(LAST)
    local = R.choice([f"{plain(a)}.{plain(b)}", f"{plain(a)[0]}{plain(b)}", f"{plain(b)}_{R.randrange(99)}", f"{plain(a)}+news",
                      f"{plain(a)}-{plain(b)}", plain(a)])
    return f"{local}@{R.choice(HOSTS)}"


def phone():
    n7, n8 = digits(7, "23456789"), digits(8, "23456789")
    us = f"{R.choice('2346789')}{R.choice('02345678')}{R.choice('0234567')}", R.choice("23456789") + digits(2), digits(4)
    return R.choice([
        f"+49 {R.choice(['151', '160', '171', '176', '30', '89'])} {n7}", f"+49{R.choice(['151', '171', '40'])}{n8}",
        f"0{R.choice(['151', '162', '174'])} {n8}", f"0{R.choice(['30', '89', '221', '711'])}/{n7}", f"0{R.choice(['30', '40'])}-{n7}",
        f"({us[0]}) {us[1]}-{us[2]}", f"{us[0]}-{us[1]}-{us[2]}", f"{us[0]}.{us[1]}.{us[2]}", f"+1 {us[0]} {us[1]} {us[2]}",
        f"1-{us[0]}-{us[1]}-{us[2]}", "0" + R.choice("1234567") + "".join(" " + digits(2) for _ in range(4)),
        f"+33 {R.choice('12346')} " + " ".join(digits(2) for _ in range(4)), f"+44 20 {digits(4)} {digits(4)}", f"07{digits(3)} {digits(6)}",
        f"020 {digits(4)} {digits(4)}", f"+34 6{digits(2)} {digits(3)} {digits(3)}", f"+39 3{digits(2)} {digits(7)}", f"+31 6 {n8}",
        f"+48 {digits(3, '5678')} {digits(3)} {digits(3)}", f"0041 44 {digits(3)} {digits(2)} {digits(2)}", f"+81 90-{digits(4)}-{digits(4)}"])


def phone_bare():  # forms that need the words around them
    return R.choice([digits(3, "67") + " " + digits(3) + " " + digits(3), digits(10, "2346789"), "0" + digits(3, "23589") + digits(6)])


def card():
    kind = R.choice(["visa", "mc", "mc2", "amex", "disc", "jcb", "diners"])
    if kind == "amex":
        n = luhn(R.choice(["34", "37"]) + digits(12))
        return R.choice([n, grouped(n, [4, 6, 5], " "), grouped(n, [4, 6, 5], "-")])
    if kind == "diners":
        n = luhn("36" + digits(11))
        return R.choice([n, grouped(n, [4, 6, 4], " ")])
    start = {"visa": "4", "mc": R.choice(["51", "53", "55"]), "mc2": "2" + str(R.randrange(221, 721)), "disc": "6011", "jcb": "3530"}[kind]
    n = luhn(start + digits(15 - len(start)))
    return R.choice([n, grouped(n, [4, 4, 4, 4], " "), grouped(n, [4, 4, 4, 4], "-")])


IBANS = {"DE": "n18", "FR": "n10a11n2", "GB": "l4n14", "NL": "l4n10", "ES": "n20", "IT": "l1n10a12", "PL": "n24", "CH": "n5a12", "AT": "n16",
         "BE": "n12", "SE": "n20", "NO": "n11", "PT": "n21"}


def iban():
    country = R.choice(list(IBANS))
    body, spec = "", IBANS[country]
    i = 0
    while i < len(spec):
        j = i + 1
        while j < len(spec) and spec[j].isdigit():
            j += 1
        pool = {"n": string.digits, "l": string.ascii_uppercase, "a": string.digits + string.ascii_uppercase}[spec[i]]
        body += "".join(R.choice(pool) for _ in range(int(spec[i + 1:j])))
        i = j
    number = int("".join(str(int(c, 36)) for c in body + country + "00"))
    text = f"{country}{98 - number % 97:02d}{body}"
    return R.choice([text, grouped(text, [4] * (len(text) // 4), " "), text.lower() if R.random() < 0.1 else text])


def ip():
    if R.random() < 0.6:
        return ".".join(str(R.randrange(1, 255)) for _ in range(4)).replace("127.", "128.", 1)
    g = [f"{R.randrange(1, 65536):x}" for _ in range(8)]
    return R.choice([":".join(g), f"2001:db8::{g[0]}:{g[1]}", f"fe80::{g[0]}:{g[1]}:{g[2]}:{g[3]}", f"2001:db8:{g[0]}::{g[1]}"])


def us_ssn():
    return f"{R.choice([*range(1, 666), *range(667, 900)]):03d}-{R.randrange(1, 100):02d}-{R.randrange(1, 10000):04d}"


def de_tax():
    while True:
        d = [R.randrange(1, 10)]
        pool = [x for x in range(10)]
        R.shuffle(pool)
        twice = R.randrange(10)
        rest = [x for x in pool if x != R.choice([p for p in pool if p != twice])][:9]
        body = rest + [twice]
        R.shuffle(body)
        if body[0] == 0 or len(set(body)) != 9:
            continue
        p = 10
        for x in body:
            s = (x + p) % 10 or 10
            p = s * 2 % 11
        text = "".join(map(str, body)) + str((11 - p) % 10)
        return R.choice([text, grouped(text, [2, 3, 3, 3], " ")])


def es_dni():
    letters = "TRWAGMYFPDXBNJZSQVHLCKE"
    if R.random() < 0.4:
        first, n = R.randrange(3), R.randrange(10 ** 7)
        return f"{'XYZ'[first]}{n:07d}{letters[(first * 10 ** 7 + n) % 23]}"
    n = R.randrange(10 ** 7, 10 ** 8)
    return f"{n:08d}{R.choice(['', '', '-'])}{letters[n % 23]}"


def fr_nir():
    n = f"{R.choice('12')}{R.randrange(100):02d}{R.randrange(1, 13):02d}{R.randrange(1, 96):02d}{R.randrange(1, 900):03d}{R.randrange(1, 999):03d}"
    text = f"{n}{97 - int(n) % 97:02d}"
    return R.choice([text, grouped(text, [1, 2, 2, 2, 3, 3, 2], " ")])


def it_cf():
    odd = dict(zip(string.digits + string.ascii_uppercase,
                   [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]))
    body = "".join(R.choice("BCDFGLMNPRSTVZ") for _ in range(6)) + f"{R.randrange(100):02d}" + R.choice("ABCDEHLMPRST") + \
        f"{R.randrange(1, 31) + R.choice([0, 40]):02d}" + R.choice("ABCDEFGHIL") + digits(3)
    total = sum(odd[c] if i % 2 == 0 else (int(c) if c.isdigit() else ord(c) - 65) for i, c in enumerate(body))
    return body + chr(65 + total % 26)


def uk_nino():
    a, b = R.choice("ABCEGHJKLMNOPRSTWXYZ"), R.choice("ABCEGHJKLMNPRSTWXYZ")
    if a + b in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ"):
        a, b = "J", "M"
    n = digits(6)
    return R.choice([f"{a}{b}{n}{R.choice('ABCD')}", f"{a}{b} {n[:2]} {n[2:4]} {n[4:]} {R.choice('ABCD')}"])


def nl_bsn():
    while True:
        d = digits(8, "123456789")
        check = sum((9 - i) * int(c) for i, c in enumerate(d)) % 11
        if check < 10:
            return d + str(check)


def pl_pesel():
    y, m = R.randrange(40, 100), R.randrange(1, 13)
    if R.random() < 0.2:
        y, m = R.randrange(0, 20), m + 20
    d = f"{y:02d}{m:02d}{R.randrange(1, 29):02d}{digits(4)}"
    return d + str(-sum(w * int(c) for w, c in zip([1, 3, 7, 9, 1, 3, 7, 9, 1, 3], d)) % 10)


MONTHS = {"en": "January February March April May June July August September October November December".split(),
          "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),
          "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),
          "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()}


def date(lang):
    d, m, y = R.randrange(1, 29), R.randrange(1, 13), R.randrange(1930, 2015)
    name = MONTHS.get(lang, MONTHS["en"])[m - 1]
    written = {"en": R.choice([f"{name} {d}, {y}", f"{d} {name} {y}", f"{m:02d}/{d:02d}/{y}"]), "de": R.choice([f"{d}. {name} {y}", f"{d:02d}.{m:02d}.{y}"]),
               "fr": R.choice([f"{d} {name} {y}", f"{d:02d}/{m:02d}/{y}"]), "es": R.choice([f"{d} de {name} de {y}", f"{d:02d}/{m:02d}/{y}"])}[lang]
    return R.choice([written, written, f"{y}-{m:02d}-{d:02d}"])


def person():
    return f"{R.choice(FIRST)} {R.choice(LAST)}"


PLACES = "Hamburg Lyon Porto Utrecht Gdansk Bologna Sevilla Leeds Osaka Denver Graz Uppsala".split()
LOOSE = ["{x}", "it is {x}, thanks", "({x})", "please note {x}.", "Kontakt: {x}", "voici : {x}", "{x} is what I was given", "ecco {x}, grazie", "- {x}\n- done"]
FORMS = {
    "email": (email, LOOSE + ["write to {x} today", "Meine Adresse lautet {x}, bitte antworten.", "mon adresse est {x}.", "mi correo es {x}", "\"{x}\" <- reply here",
                              "From: {x}\nTo: list", "{{\"to\": \"{x}\"}}"]),
    "phone": (phone, LOOSE + ["call me at {x} after six", "Tel. {x}", "Sie erreichen mich unter {x}.", "appelez le {x}", "mi móvil es {x}", "phone={x}&name=a"]),
    "phone_bare": (phone_bare, ["call me at {x}", "my phone number is {x}.", "Telefon: {x}", "mi móvil: {x}", "fax {x}", "whatsapp {x} please"]),
    "card": (card, LOOSE + ["my card is {x}, exp 11/27", "pay with {x} cvv 123", "Kreditkarte {x} belasten", "carte {x} expire 09/28", "card:{x};"]),
    "iban": (iban, LOOSE + ["transfer to {x} by Friday", "IBAN: {x}", "Bitte auf {x} überweisen", "virement sur {x}"]),
    "ip": (ip, LOOSE + ["blocked {x} after 3 tries", "client {x} connected", "connect to {x} now", "[{x}] GET /index.html"]),
    "birth": (None, None),
}
IDS = [(us_ssn, ["my SSN is {x}", "{x}", "social security number {x}."]), (de_tax, ["Steuer-ID {x}", "{x}", "meine IdNr lautet {x}."]),
       (es_dni, ["DNI {x}", "mi NIE es {x}", "{x}"]), (fr_nir, ["numéro de sécu {x}", "{x}", "NIR : {x}"]), (it_cf, ["codice fiscale {x}", "{x}", "CF: {x}"]),
       (uk_nino, ["NI number {x}", "{x}", "my NINO is {x}."]), (nl_bsn, ["mijn BSN is {x}", "BSN: {x}", "burgerservicenummer {x}"]), (pl_pesel, ["PESEL {x}", "{x}", "mój PESEL to {x}"])]
BIRTHS = {"en": ["I was born on {x}", "date of birth: {x}", "DOB {x}", "her birthday is {x}."], "de": ["geboren am {x}", "Geburtsdatum: {x}"],
          "fr": ["né le {x}", "date de naissance : {x}"], "es": ["nacida el {x}", "fecha de nacimiento: {x}"]}
NOT_FOUND = [("email", "anna at example dot org"), ("email", "lena[at]example.org"), ("phone", "four one five, 555, 26 71"), ("card", "4111.1111.1111.1111"),
             ("phone", "0 3 0 9 0 1 8 2 0"), ("birth", "I am from the year 1980, the 24th of December"), ("ip", "10 dot 0 dot 0 dot 7"), ("id", "536 / 90 / 4399")]
HARD = """Order 4711-0815-2342 shipped on 2024-03-18.
Invoice 2024-000123 is due on 01.02.2025.
Firmware 10.0.1.2 fixes the boot loop; 10.0.1.3 follows.
Use version 1.2.3.4 or v2.0.0.1 of the driver.
Part number 555-0123-9876-A fits the pump.
SKU 8400-1234-5678 is out of stock.
ISBN 978-3-16-148410-0 and ISBN 0-306-40615-2
EAN 4006381333931, article 123456789012
The build took 00:12:34 and ended at 2024-11-05T10:20:30.123Z.
timestamp 1731000000, 1731000000000 and 1731000000000000000
Pump 3 runs at 1450 rpm, 12.5 bar, 230 V, 16 A, 50.02 Hz.
Set the registers 0x4111 0x1111 to 1111.
UUID 123e4567-e89b-12d3-a456-426614174000
MAC 00:1a:2b:3c:4d:5e on port 8
sha256 9f55a5a03b941d1c89a9ee35aa62881235b4dabf6b5c62cf7e898844c5804323
Matrix size 1024 x 1024 x 64, offset 000000012345
Pi is 3.14159265358979 and e is 2.718281828459045.
It costs 1.234.567,89 EUR or 1 234 567,89 EUR.
Population: 612 345 678 people
Coordinates 52.5200, 13.4050 and 48.8566 N 2.3522 E
The meeting is on 12/24/2024 at 10:30 in room 4.12.
std::vector<int>::iterator a::b::c
Please install lodash@4.17.21 and @types/node@20.
See icon@2x.png and logo@3x.jpg.
git clone git@host.example:team/repo.git
Follow @shoal and mail me later.
Ticket 415-555-2671 is closed.
Ref 030-1234567 in our system
Section 4.3.2.1 says so; chapter 10.2.3.4 too.
localhost is 127.0.0.1 or ::1, mask 255.255.255.0
Tracking number 1Z999AA10123456784
VIN WVWZZZ1JZXW000001
Serial AB123456E, batch GB123456A
Account 1234567812345678 was closed.
Bestellnummer 01 23 45 67 89 12
Lot 86095742718, box 12
Room 12 034 56 is upstairs.
The score was 21-17, 19-21, 15-13.
Line 4 of 5: 100%, 99%, 98%
3f2504e0-4f89-11d3-9a0c-0305e82c3301
Phase currents: 12.1 12.3 12.2 A; total 36.6
Between 1980-12-24 and 1990-01-01 the plant was closed.
The bridge was built on 24.12.1980 by the city.
Released December 24, 1980, the film won prizes.
Error 0x80070005 at 00007FF6:12345678
PO Box 5551234567, ask for it there
Temperature 21.5 °C, humidity 45.2 %, CO2 612 ppm
Frequency 868.3 MHz, channel 11, PAN 0x1A62
He ran 100 m in 9.58 s and 200 m in 19.19 s.
Recipe: 250 g flour, 125 ml milk, 2 eggs, 180 degrees for 25 min""".split("\n")


def row(kind, template, value, form=""):
    text = template.format(x=value)
    at = text.index(value)
    before = text[:at].encode()
    return {"text": text, "spans": [{"kind": kind, "start": len(before), "end": len(before) + len(value.encode())}], "source": form or kind}


def made_up():
    """A number that belongs to no person: wrong check digits, or the number of a thing."""
    kind = R.randrange(6)
    if kind == 0:
        n = card().replace(" ", "").replace("-", "")
        n = n[:-1] + str((int(n[-1]) + R.randrange(1, 9)) % 10)
        return f"Reference {n} was not found."
    if kind == 1:
        return f"order no. {digits(R.randrange(8, 12), '123456789')} is on its way"
    if kind == 2:
        return f"Build {R.randrange(2000, 2030)}.{R.randrange(1, 13)}.{R.randrange(1, 29)}.{R.randrange(1, 9999)} is ready."
    if kind == 3:
        return f"Sensor {R.choice(string.ascii_uppercase)}{digits(3)}-{digits(4)}-{digits(4)} reads {R.random() * 100:.3f}"
    if kind == 4:
        return f"2024-{R.randrange(1, 13):02d}-{R.randrange(1, 29):02d} {R.randrange(24):02d}:{R.randrange(60):02d}:{R.randrange(60):02d} INFO took {digits(5)} us"
    return f"{R.choice(['SKU', 'part', 'item', 'Artikel'])} {digits(3)}-{digits(3)}-{digits(4)}, {R.randrange(99)} pieces"


def main():
    rows = []
    for kind, (make, forms) in FORMS.items():
        for _ in range(0 if make is None else 60 if kind == "phone_bare" else 150):
            rows.append(row(kind.split("_")[0], R.choice(forms), make(), kind))
    for make, forms in IDS:
        rows += [row("id", R.choice(forms), make(), make.__name__) for _ in range(40)]
    for _ in range(100):
        lang = R.choice(list(BIRTHS))
        rows.append(row("birth", R.choice(BIRTHS[lang]), date(lang)))
    for _ in range(60):
        rows.append(row("person", R.choice(["my name is {x} and I need help", "{x} called about the pump", "please tell {x} that it is done", "Sincerely, {x}"]), person()))
        rows.append(row("place", R.choice(["I live in {x} now", "the office in {x} is closed", "we drove from {x} to the sea", "send it to {x}, please"]), R.choice(PLACES)))
    rows += [row(kind, "note: {x} as said", value, "unusual") for kind, value in NOT_FOUND]
    rows += [{"text": t, "spans": [], "source": "hard"} for t in HARD]
    rows += [{"text": made_up(), "spans": [], "source": "made_up"} for _ in range(250)]
    R.shuffle(rows)
    for r in rows:
        print(json.dumps(r, ensure_ascii=False))


main()
