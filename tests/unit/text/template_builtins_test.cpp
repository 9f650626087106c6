// groupby, truncate, str.format and strftime_now in templates, as Jinja2 3.1.6 and Python have them.
#include <gmock/gmock.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/date_text.hpp"
#include "text/chat_template/chat_template.hpp"
#include "text/chat_template/dates.hpp"

namespace patchbay::text::template_builtins_test {
namespace {

using Json = nlohmann::ordered_json;

struct Expected {
    const char *source, *text;
};

void gives(std::initializer_list<Expected> all, const Json& variables = Json::object()) {
    for (const Expected& e : all) {
        const auto parsed = ChatTemplate::parse(e.source, "t");
        ASSERT_TRUE(parsed) << parsed.error();
        const auto text = parsed->render(variables);
        EXPECT_EQ(text ? *text : "fault: " + text.error(), e.text) << e.source;
    }
}

TEST(TemplateBuiltIns, GroupItemsByAnAttribute) {
    const Json items = {{{"k", "b"}, {"n", 1}}, {{"k", "A"}, {"n", 2}}, {{"k", "B"}, {"n", 3}}, {{"k", "a"}, {"n", 4}}};
    gives({{"{% for k, l in v | groupby('k') %}{{ k }}:{{ l | map(attribute='n') | list }};{% endfor %}",
            "A:[2, 4];b:[1, 3];"}, // without case, named as the first is written
           {"{{ v | groupby('k', case_sensitive=true) | map(attribute='grouper') | list }}", "['A', 'B', 'a', 'b']"},
           {"{% for g in v | groupby('k') %}{{ g.grouper }}{{ g['list'] | length }}{{ g[0] }}[{{ g.no }}]{% endfor %}",
            "A2A[]b2b[]"},
           {"{{ [(1, 'x'), (0, 'y'), (1, 'z')] | groupby(0) }}", "[(0, [(0, 'y')]), (1, [(1, 'x'), (1, 'z')])]"},
           {"{{ [{'a': {'b': 1}}, {}] | groupby('a.b', default=0) }}", "[(0, [{}]), (1, [{'a': {'b': 1}}])]"}},
          {{"v", items}});
    gives({{"{{ [{'k': 1}, {}] | groupby('k', default=0) | map('first') | list }}{{ [] | groupby('k') }}", "[0, 1][]"},
           {"{{ [{'a': {'b': 1}}, {}] | map(attribute='a.b', default='-') | list }}", "[1, '-']"},
           {"{{ [1, 2] | map(attribute=none) | list }}", "[1, 2]"},
           {"{{ [{'k': 1}, {'k': 'x'}] | groupby('k') }}",
            "fault: t:1: '<' is not supported between 'str' and 'int'"},
           {"{{ [] | groupby }}", "fault: t:1: groupby lacks its argument 'attribute'"}});
}

TEST(TemplateBuiltIns, PrintAndCompareIntegersAboveThoseThatTheyComputeWith) {
    const Json large = {{"v", UINT64_MAX}, {"w", uint64_t{1} << 63}, {"l", {{{"maximum", UINT64_MAX}}}}};
    gives({{"{{ v }} {{ w }} {{ l }} {{ l | tojson }}",
            "18446744073709551615 9223372036854775808 [{'maximum': 18446744073709551615}] "
            "[{\"maximum\": 18446744073709551615}]"},
           {"{{ v | string }} {{ v | int }} {{ v | abs }} {{ v | round }} {{ w | float }} {{ '%s' % v }} {{ w / 2 }}",
            "18446744073709551615 18446744073709551615 18446744073709551615 18446744073709551615 "
            "9.223372036854776e+18 18446744073709551615 4.611686018427388e+18"},
           {"{{ v == v }} {{ v == w }} {{ v > w }} {{ w > 9223372036854775807 }} {{ w == 9223372036854775807 }} "
            "{{ true < w }} {{ 1.5 < w }} {{ w == 9223372036854775808.0 }} {{ [v, 1, w] | sort }} {{ {v: 1}[v] }}",
            "True False True True False True True True [1, 9223372036854775808, 18446744073709551615] 1"},
           {"{{ v is integer }} {{ v is number }} {{ v is float }} {{ 'yes' if v }}", "True True False yes"},
           {"{{ v + 1 }}", "fault: t:1: +: 18446744073709551615 is too large a number"},
           {"{{ v | round(-1) }}", "fault: t:1: round: 18446744073709551615 is too large a number"}},
          large);
}

TEST(TemplateBuiltIns, TruncateTexts) {
    const Json s = {{"s", "äöü bcd efg"}};
    gives({{"{{ s | truncate(9) }}|{{ s | truncate(9, leeway=0) }}|{{ s | truncate(9, true, leeway=0) }}",
            "äöü bcd efg|äöü...|äöü bc..."},
           {"{{ s | truncate(5, false, '', 0) }}|{{ s | truncate(3, false, '…', 0) }}|{{ s | truncate }}",
            "äöü|äö…|äöü bcd efg"},
           {"{{ [1, 2] | truncate }}[{{ missing | truncate }}]", "[1, 2][]"},
           {"{{ 'abcdef' | truncate(2, leeway=9) }}",
            "fault: t:1: truncate: a length of 2, expected at least that of the end"},
           {"{{ 'abc' | truncate(leeway=-1) }}", "fault: t:1: truncate: a leeway of -1, expected at least 0"},
           {"{{ [1, 2, 3] | truncate(1, end='', leeway=0) }}", "fault: t:1: truncate takes a string, got a long list"}},
          s);
}

TEST(TemplateBuiltIns, FormatTextsAsPythonDoes) {
    gives({{"{{ '{} {}'.format(1, 'a') }}|{{ '{1}{0}{1}'.format('a', 'b') }}|{{ '{x}{{}}'.format(x=none) }}",
            "1 a|bab|None{}"},
           {"{{ '{m.k[0].z} {m[k][1]}'.format(m={'k': [{'z': 1}, 'ü']}) }}[{{ '{0.none}'.format({}) }}]", "1 ü[]"},
           {"{{ '{!r} {!s} {!a}'.format('ä', 'ä', 'ä') }}", "'ä' ä '\\xe4'"},
           {"{{ '{:>5}|{:<5}|{:^5}|{:*^6}|{:05}|{:.2}'.format('ä', 'ä', 'ä', 'ä', 'ä', 'äöü') }}",
            "    ä|ä    |  ä  |**ä***|ä0000|äö"},
           {"{{ '{:5}|{:<5}|{:+d}|{: d}|{:=+5}|{:05d}|{:,}|{:_x}|{:#x}|{:#010b}|{:c}|{:n}'"
            ".format(7, 7, 7, 7, 7, -7, 1234567, 1048575, 255, 5, 228, 12) }}",
            "    7|7    |+7| 7|+   7|-0007|1,234,567|f_ffff|0xff|0b00000101|ä|12"},
           {"{{ '{:06,}|{:012,.1f}|{:.2f}|{:e}|{:g}|{:%}|{:.1%}|{:.3}|{:.1}|{:z.0f}|{:,}|{:08.2f}'"
            ".format(1234, 1234.5, 2.675, 12345.678, 1e-7, 0.5, 0.125, 123.0, 5.0, -0.2, 12345.5, -3.14159) }}",
            "01,234|00,001,234.5|2.67|1.234568e+04|1e-07|50.000000%|12.5%|1.23e+02|5e+00|0|12,345.5|-0003.14"},
           {"{{ '{} {:d} {:5}|{:e}'.format(true, true, false, 3) }}", "True 1     0|3.000000e+00"},
           {"{{ '{:{}}|{:{w}.{p}f}'.format('a', 3, 2.5, w=6, p=2) }}", "a  |  2.50"},
           {"{{ '{a}-{b:>3}'.format_map({'a': 1, 'b': 2}) }}", "1-  2"},
           {"{% for x in ['a'] %}{{ '{0.index}{0.last}'.format(loop) }}{% endfor %}", "1True"}});
}

TEST(TemplateBuiltIns, RefuseFormatsThatPythonRefuses) {
    gives({{"{{ '{'.format() }}", "fault: t:1: format: a single '{', expected two or a field"},
           {"{{ 'a}'.format() }}", "fault: t:1: format: a single '}', expected two or a field"},
           {"{{ '{0'.format(1) }}", "fault: t:1: format: a field has no end, expected '}'"},
           {"{{ '{0!r'.format(1) }}", "fault: t:1: format: a field has no end, expected '}'"},
           {"{{ '{!x}'.format(1) }}", "fault: t:1: format: conversion '!x', expected !s, !r or !a"},
           {"{{ '{} {0}'.format(1) }}", "fault: t:1: format: fields with and without numbers in one text"},
           {"{{ '{1}'.format(1) }}", "fault: t:1: format: no value for place 1, got 1"},
           {"{{ '{a}'.format(1) }}", "fault: t:1: format: no value for 'a'"},
           {"{{ '{0[}'.format(1) }}", "fault: t:1: format: a field has no end, expected '}'"},
           {"{{ '{0.}'.format(1) }}", "fault: t:1: format: a part of a field's name is empty"},
           {"{{ '{:x}'.format('a') }}", "fault: t:1: format: 'x' is not a type for a str"},
           {"{{ '{:d}'.format(1.5) }}", "fault: t:1: format: 'd' is not a type for a float"},
           {"{{ '{:.2}'.format(1) }}", "fault: t:1: format: whole numbers have no precision"},
           {"{{ '{:,x}'.format(1) }}", "fault: t:1: format: ',x' groups digits where its type has none"},
           {"{{ '{:=5}'.format('a') }}", "fault: t:1: format: '=5' has '=', which strings do not take"},
           {"{{ '{:5}'.format([]) }}", "fault: t:1: format: a list takes no format, got '5'"},
           {"{{ '{:{:{}}}'.format(1, 2, 3) }}", "fault: t:1: format: fields are nested too deep in specs"},
           {"{{ '{:9999999}'.format(1) }}", "fault: t:1: format: '9999999' has a width above 1048576"},
           {"{{ '{:.99999f}'.format(1) }}", "fault: t:1: format: a precision of 99999, expected at most 10000"},
           {"{{ '{a}'.format_map(1) }}", "fault: t:1: format_map takes one dict"}});
}

TEST(TemplateBuiltIns, GiveDatesInLocalTimeAsDatetimeNowDoes) {
    const char* const zone = std::getenv("TZ");
    const std::string before = zone ? zone : "";
    ASSERT_EQ(setenv("TZ", "AHEAD-13:30", 1), 0);
    tzset();
    const uint64_t at = 1'000'000'000'012'345;
    EXPECT_EQ(chat::local_date(at, "%Y-%m-%d %H:%M:%S.%f"), "2001-09-09 15:16:40.012345");
    EXPECT_EQ(chat::local_date(at, "[%z%Z%:z%%z%%%f]%"), "[%z%012345]%");
    const auto ahead = [] { return chat::local_date(unix_now_us(), "%Y-%m-%d %H:%M:%S"); };
    const std::string earliest = ahead();
    const auto text = ChatTemplate::parse("{{ strftime_now('%Y-%m-%d %H:%M:%S') }}", "t")->render(Json::object());
    EXPECT_LE(earliest, *text);
    EXPECT_LE(*text, ahead());
    zone ? setenv("TZ", before.c_str(), 1) : unsetenv("TZ");
    tzset();
}

}  // namespace
}  // namespace patchbay::text::template_builtins_test
