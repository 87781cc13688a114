/* speech_tables.c - see speech_tables.h. */
#include "text/speech/speech_tables.h"

#include <string.h>

static const struct speech_unit units[] = {
    {"°C", "degree celsius", "degrees celsius"},
    {"° C", "degree celsius", "degrees celsius"},
    {"℃", "degree celsius", "degrees celsius"},
    {"°F", "degree fahrenheit", "degrees fahrenheit"},
    {"° F", "degree fahrenheit", "degrees fahrenheit"},
    {"℉", "degree fahrenheit", "degrees fahrenheit"},
    {"°", "degree", "degrees"},
    {"%", "percent", "percent"},
    {"‰", "per mille", "per mille"},
    {"kWh", "kilowatt hour", "kilowatt hours"},
    {"MWh", "megawatt hour", "megawatt hours"},
    {"Wh", "watt hour", "watt hours"},
    {"kW", "kilowatt", "kilowatts"},
    {"MW", "megawatt", "megawatts"},
    {"mW", "milliwatt", "milliwatts"},
    {"W", "watt", "watts"},
    {"kV", "kilovolt", "kilovolts"},
    {"mV", "millivolt", "millivolts"},
    {"V", "volt", "volts"},
    {"mA", "milliamp", "milliamps"},
    {"mAh", "milliamp hour", "milliamp hours"},
    {"Ah", "amp hour", "amp hours"},
    {"A", "amp", "amps"},
    {"Ω", "ohm", "ohms"},
    {"kΩ", "kilohm", "kilohms"},
    {"Hz", "hertz", "hertz"},
    {"kHz", "kilohertz", "kilohertz"},
    {"MHz", "megahertz", "megahertz"},
    {"GHz", "gigahertz", "gigahertz"},
    {"bar", "bar", "bar"},
    {"mbar", "millibar", "millibar"},
    {"hPa", "hectopascal", "hectopascals"},
    {"kPa", "kilopascal", "kilopascals"},
    {"MPa", "megapascal", "megapascals"},
    {"Pa", "pascal", "pascals"},
    {"psi", "p s i", "p s i"},
    {"rpm", "r p m", "r p m"},
    {"RPM", "r p m", "r p m"},
    {"km/h", "kilometer per hour", "kilometers per hour"},
    {"kph", "kilometer per hour", "kilometers per hour"},
    {"mph", "mile per hour", "miles per hour"},
    {"m/s", "meter per second", "meters per second"},
    {"mm/s", "millimeter per second", "millimeters per second"},
    {"l/min", "liter per minute", "liters per minute"},
    {"L/min", "liter per minute", "liters per minute"},
    {"m³/h", "cubic meter per hour", "cubic meters per hour"},
    {"km", "kilometer", "kilometers"},
    {"cm", "centimeter", "centimeters"},
    {"mm", "millimeter", "millimeters"},
    {"µm", "micrometer", "micrometers"},
    {"μm", "micrometer", "micrometers"},
    {"m", "meter", "meters"},
    {"mi", "mile", "miles"},
    {"ft", "foot", "feet"},
    {"yd", "yard", "yards"},
    {"m²", "square meter", "square meters"},
    {"m2", "square meter", "square meters"},
    {"m³", "cubic meter", "cubic meters"},
    {"m3", "cubic meter", "cubic meters"},
    {"km²", "square kilometer", "square kilometers"},
    {"kg", "kilogram", "kilograms"},
    {"mg", "milligram", "milligrams"},
    {"µg", "microgram", "micrograms"},
    {"g", "gram", "grams"},
    {"lb", "pound", "pounds"},
    {"lbs", "pound", "pounds"},
    {"oz", "ounce", "ounces"},
    {"t", "ton", "tons"},
    {"l", "liter", "liters"},
    {"L", "liter", "liters"},
    {"ml", "milliliter", "milliliters"},
    {"mL", "milliliter", "milliliters"},
    {"s", "second", "seconds"},
    {"sec", "second", "seconds"},
    {"ms", "millisecond", "milliseconds"},
    {"µs", "microsecond", "microseconds"},
    {"min", "minute", "minutes"},
    {"mins", "minute", "minutes"},
    {"h", "hour", "hours"},
    {"hr", "hour", "hours"},
    {"hrs", "hour", "hours"},
    {"dB", "decibel", "decibels"},
    {"lx", "lux", "lux"},
    {"lm", "lumen", "lumens"},
    {"ppm", "part per million", "parts per million"},
    {"N", "newton", "newtons"},
    {"Nm", "newton meter", "newton meters"},
    {"J", "joule", "joules"},
    {"kJ", "kilojoule", "kilojoules"},
    {"kcal", "kilocalorie", "kilocalories"},
    {"K", "kelvin", "kelvin"},
    {"B", "byte", "bytes"},
    {"kB", "kilobyte", "kilobytes"},
    {"KB", "kilobyte", "kilobytes"},
    {"MB", "megabyte", "megabytes"},
    {"GB", "gigabyte", "gigabytes"},
    {"TB", "terabyte", "terabytes"},
    {"KiB", "kibibyte", "kibibytes"},
    {"MiB", "mebibyte", "mebibytes"},
    {"GiB", "gibibyte", "gibibytes"},
    {"Mbit/s", "megabit per second", "megabits per second"},
    {"Mbps", "megabit per second", "megabits per second"},
    {"Gbps", "gigabit per second", "gigabits per second"},
};

static const struct speech_money monies[] = {
    {"$", "dollar", "dollars", "cent", "cents"}, {"€", "euro", "euros", "cent", "cents"},
    {"£", "pound", "pounds", "penny", "pence"},  {"¥", "yen", "yen", "sen", "sen"},
    {"₹", "rupee", "rupees", "paisa", "paise"},
};

static const struct speech_short symbols[] = {
    {"%", "percent"},
    {"&", "and"},
    {"+", "plus"},
    {"=", "equals"},
    {"<", "less than"},
    {">", "greater than"},
    {"@", "at"},
    {"#", "number"},
    {"°", "degrees"},
    {"×", "times"},
    {"÷", "divided by"},
    {"±", "plus or minus"},
    {"≈", "about"},
    {"≤", "at most"},
    {"≥", "at least"},
    {"−", "minus"},
    {"½", "one half"},
    {"¼", "one quarter"},
    {"¾", "three quarters"},
    {"²", "squared"},
    {"³", "cubed"},
    {"§", "section"},
    {"€", "euros"},
    {"$", "dollars"},
    {"£", "pounds"},
    {"→", "to"},
    {"*", "times"},
};

static const struct {
    const char *written, *said;
    enum speech_short_when when;
} shorts[] = {
    {"mr", "mister", SPEECH_SHORT_ALWAYS},
    {"mrs", "misses", SPEECH_SHORT_ALWAYS},
    {"ms", "miz", SPEECH_SHORT_CAPITAL},
    {"dr", "doctor", SPEECH_SHORT_ALWAYS},
    {"prof", "professor", SPEECH_SHORT_ALWAYS},
    {"st", "saint", SPEECH_SHORT_CAPITAL},
    {"jr", "junior", SPEECH_SHORT_ALWAYS},
    {"sr", "senior", SPEECH_SHORT_ALWAYS},
    {"vs", "versus", SPEECH_SHORT_ALWAYS},
    {"etc", "et cetera", SPEECH_SHORT_ALWAYS},
    {"e.g", "for example", SPEECH_SHORT_ALWAYS},
    {"i.e", "that is", SPEECH_SHORT_ALWAYS},
    {"eg", "for example", SPEECH_SHORT_BEFORE_SMALL},
    {"ie", "that is", SPEECH_SHORT_BEFORE_SMALL},
    {"approx", "approximately", SPEECH_SHORT_ALWAYS},
    {"a.m", "ay m", SPEECH_SHORT_ALWAYS},
    {"p.m", "p m", SPEECH_SHORT_ALWAYS},
    {"pm", "p m", SPEECH_SHORT_ALWAYS},
    {"temp", "temperature", SPEECH_SHORT_BEFORE_SMALL},
    {"max", "maximum", SPEECH_SHORT_BEFORE_SMALL},
    {"min", "minimum", SPEECH_SHORT_BEFORE_SMALL},
    {"avg", "average", SPEECH_SHORT_ALWAYS},
    {"no", "number", SPEECH_SHORT_BEFORE_DIGIT},
    {"nr", "number", SPEECH_SHORT_BEFORE_DIGIT},
    {"dept", "department", SPEECH_SHORT_ALWAYS},
    {"tel", "telephone", SPEECH_SHORT_BEFORE_SMALL},
    {"ave", "avenue", SPEECH_SHORT_BEFORE_SMALL},
    {"blvd", "boulevard", SPEECH_SHORT_ALWAYS},
    {"rd", "road", SPEECH_SHORT_BEFORE_SMALL},
    {"apt", "apartment", SPEECH_SHORT_BEFORE_DIGIT},
    {"fig", "figure", SPEECH_SHORT_BEFORE_DIGIT},
    {"vol", "volume", SPEECH_SHORT_BEFORE_DIGIT},
    {"mon", "monday", SPEECH_SHORT_CAPITAL},
    {"tue", "tuesday", SPEECH_SHORT_CAPITAL},
    {"wed", "wednesday", SPEECH_SHORT_CAPITAL},
    {"thu", "thursday", SPEECH_SHORT_CAPITAL},
    {"fri", "friday", SPEECH_SHORT_CAPITAL},
    {"sat", "saturday", SPEECH_SHORT_CAPITAL},
    {"sun", "sunday", SPEECH_SHORT_CAPITAL},
    {"u.s", "u s", SPEECH_SHORT_ALWAYS},
    {"u.k", "u k", SPEECH_SHORT_ALWAYS},
    {"wifi", "why fye", SPEECH_SHORT_ALWAYS},
    {"wi-fi", "why fye", SPEECH_SHORT_ALWAYS},
    {"ok", "okay", SPEECH_SHORT_ALWAYS},
    {"tv", "t v", SPEECH_SHORT_ALWAYS},
    {"pc", "p c", SPEECH_SHORT_ALWAYS},
    {"usb", "u s b", SPEECH_SHORT_ALWAYS},
    {"hvac", "h vack", SPEECH_SHORT_ALWAYS},
    {"co2", "c o two", SPEECH_SHORT_ALWAYS},
    {"iot", "i o t", SPEECH_SHORT_ALWAYS},
};

static const char *const months[] = {"january",   "february", "march",    "april",
                                     "may",       "june",     "july",     "august",
                                     "september", "october",  "november", "december"};

static const char *const acronyms[] = {"NASA", "NATO", "UNESCO", "RAM",   "ROM",   "SIM",  "PIN",
                                       "OPEC", "FIFA", "AIDS",   "LASER", "RADAR", "JPEG", "GIF",
                                       "OK",   "ASAP", "COVID",  "NO",    "YES",   "ON",   "OFF"};

static bool begins(const char *p, size_t n, const char *with, size_t *n_with)
{
    *n_with = strlen(with);
    return n >= *n_with && memcmp(p, with, *n_with) == 0;
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c < 0;
}

const struct speech_unit *speech_tables_unit(const char *p, size_t n)
{
    const struct speech_unit *best = NULL;
    size_t longest = 0, len;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (begins(p, n, units[i].written, &len) && len > longest &&
            (len == n || !is_letter_or_digit(p[len]))) {
            best = &units[i];
            longest = len;
        }
    return best;
}

const struct speech_money *speech_tables_money(const char *p, size_t n)
{
    size_t len;
    for (size_t i = 0; i < sizeof(monies) / sizeof(monies[0]); i++)
        if (begins(p, n, monies[i].written, &len))
            return &monies[i];
    return NULL;
}

const struct speech_short *speech_tables_symbol(const char *p, size_t n)
{
    size_t len;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (begins(p, n, symbols[i].written, &len))
            return &symbols[i];
    return NULL;
}

static bool is(const char *word, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(word, text, n) == 0;
}

const char *speech_tables_short(const char *word, size_t n, enum speech_short_when *when)
{
    for (size_t i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++)
        if (is(word, n, shorts[i].written)) {
            *when = shorts[i].when;
            return shorts[i].said;
        }
    return NULL;
}

unsigned speech_tables_month(const char *word, size_t n)
{
    for (unsigned i = 0; i < 12; i++)
        if (is(word, n, months[i]) || (n == 3 && memcmp(word, months[i], 3) == 0) ||
            (i == 8 && is(word, n, "sept")))
            return i + 1;
    return 0;
}

const char *speech_tables_month_name(unsigned month)
{
    return month >= 1 && month <= 12 ? months[month - 1] : "";
}

bool speech_tables_acronym(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof(acronyms) / sizeof(acronyms[0]); i++)
        if (is(word, n, acronyms[i]))
            return true;
    return false;
}
