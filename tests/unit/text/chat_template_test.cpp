#include "text/chat_template/chat_template.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/ordered_json.hpp"
#include "paths.hpp"

namespace patchbay::text::chat_template_test {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string rendered(const std::string& source, const Json& variables = Json::object()) {
    const auto parsed = ChatTemplate::parse(source, "t");
    if (!parsed) return "fault: " + parsed.error();
    const auto text = parsed->render(variables, {}, [](const std::string& format) { return "<" + format + ">"; });
    return text ? *text : "fault: " + text.error();
}

struct Case {
    const char *source, *expected;
};

void check(std::initializer_list<Case> cases, const Json& variables = Json::object()) {
    for (const Case& c : cases) EXPECT_EQ(rendered(c.source, variables), c.expected) << c.source;
}

TEST(ChatTemplates, RenderTheCasesOfRealModels) {
    const char* given = std::getenv("PATCHBAY_TEST_DATA");
    const auto file = std::filesystem::path(given ? given : std::string(kSourceDir) + "/../shared/data") /
                      "chat_templates" / "cases.json";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << "; set PATCHBAY_TEST_DATA";
    std::ifstream in(file);
    const Json cases = Json::parse(in);
    EXPECT_EQ(cases.size(), 36u);
    for (const Json& c : cases) {
        const auto parsed = ChatTemplate::parse(c["chat_template"].get<std::string>(), c["name"]);
        if (!parsed) {
            ADD_FAILURE() << parsed.error();
            continue;
        }
        const std::string target = c["target"];
        // The day on which a target was made is in it.
        const auto date = [&](const std::string& format) -> std::string {
            for (const char* day : {"10 July 2025", "09 Jul 2025", "26 Jul 2024"})
                if (target.find(day) != target.npos) return day;
            return format;
        };
        const auto text = parsed->render(c["data"], {}, date);
        EXPECT_EQ(text ? *text : text.error(), target) << c["name"];
    }
}

TEST(ChatTemplates, TakePartsWhereTheyLoopOverContentsThatAreNoTexts) {
    const auto takes_parts = [](const std::string& source) {
        const auto parsed = ChatTemplate::parse(source, "t");
        EXPECT_TRUE(parsed) << source << parsed.error();
        return parsed && parsed->takes_parts();
    };
    const auto of_each = [](const std::string& body) { return "{% for m in messages %}" + body + "{% endfor %}"; };
    const std::string loop = "{% for c in m.content %}{{ c.text }}{% endfor %}";
    for (const std::string& source :
         {of_each(loop), of_each("{% for c in m['content'] if c.type == 'text' %}{{ c.text }}{% endfor %}"),
          of_each("{% set parts = m.content %}{% for c in parts %}{{ c.text }}{% endfor %}"),
          of_each("{{ (m.content | selectattr('type', 'equalto', 'text') | first).text }}"),
          of_each("{% for content in m.content or [] %}{% if content is string %}{{ content }}{% endif %}{% endfor %}"),
          "{% set rest = messages[1:] %}{% for m in rest %}" + loop + "{% endfor %}",
          std::string("{% for c in messages[0]['content'] %}{{ c.text }}{% endfor %}")})
        EXPECT_TRUE(takes_parts(source)) << source;
    for (const std::string& source :
         {of_each("{{ m.content }}"),
          of_each("{% if m.content is string %}{{ m.content }}{% else %}" + loop + "{% endif %}"),
          of_each(loop + "{{ m.content if m['content'] is not string else m.content }}"), // looks for images first
          of_each("{% for line in m.content.split('x') %}{{ line }}{% endfor %}"),
          of_each("{% for call in m.tool_calls %}{{ call }}{% endfor %}"),
          "{% macro shown(content) %}{% if content is string %}{{ content }}{% endif %}{% endmacro %}" + of_each(loop),
          std::string("{% for d in documents %}{% for c in d.content %}{{ c }}{% endfor %}{% endfor %}")})
        EXPECT_FALSE(takes_parts(source)) << source;
}

TEST(ChatTemplates, TakeWhiteSpaceAwayAsTransformersDo) {
    check({{"{% if true %}\nx\n{% endif %}\ny", "x\ny"},                       // trim_blocks
           {"a\n   {% if true %}b{% endif %}", "a\nb"},                        // lstrip_blocks
           {"a\n   {{ 'b' }}", "a\n   b"},                                     // of statements only
           {"a \n {%- if true -%} \n b{% endif %}", "ab"},
           {"a\n  {%+ if true %}b{% endif %}", "a\n  b"},
           {"{% if true +%}\nb{% endif %}", "\nb"},
           {"x{# a comment #}\ny", "xy"},
           {"  {# a comment #}\ny", "y"},
           {"x\n", "x"},
           {"x\n\n", "x\n"},
           {"a\r\nb", "a\nb"},
           {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
           {"{% raw %}\nx{% endraw %}\ny", "\nxy"}, // trim_blocks does not count after raw
           {"{% raw -%}\n x {%- endraw %}", "x"},
           {"a\u00A0\u3000\n{{- 'b' -}}\u2028 c", "abc"}, // all white space of Unicode
           {"\u3000 {% if true %}x{% endif %}", "x"},
           {"{{\u00A0'b'\u00A0}}", "b"},
           {"{{- ' a ' -}}  b", " a b"}});
}

TEST(ChatTemplates, EvaluateExpressionsAsPythonDoes) {
    check({{"{{ 1 + 2 * 3 ** 2 }}", "19"},
           {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }}", "3 -4 2 3.5 2.0"},
           {"{{ 1e16 }} {{ 0.1 + 0.2 }} {{ 1.0 }} {{ 1e-5 }} {{ 123456789.25 }}",
            "1e+16 0.30000000000000004 1.0 1e-05 123456789.25"},
           {"{{ 'a' ~ 1 ~ none ~ true }}", "a1NoneTrue"},
           {"{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' in 'cat' }} {{ 'k' not in {'k': 1} }}", "True False True False"},
           {"{{ 'yes' if 0 else 'no' }}[{{ 'yes' if 0 }}]", "no[]"},
           {"{{ not 1 == 2 and 'x' or 'y' }}", "x"},
           {"{{ [1, 'a', none, {'k': (1,)}] }}", "[1, 'a', None, {'k': (1,)}]"},
           {"{{ [\"it's\", 'say \"x\"', 'a\\nb'] }}", "[\"it's\", 'say \"x\"', 'a\\nb']"},
           {"{{ 'abc'[::-1] }} {{ 'äöü'[1:] }} {{ [1, 2, 3, 4][1:-1] }} {{ 'abc'[-1] }}", "cba öü [2, 3] c"},
           {"{{ 'a' 'b' }}{{ 'x' * 3 }}{{ [1] + [2] }}", "abxxx[1, 2]"},
           {"{{ '%s is %d, %.2f' % ('x', 3, 1.5) }}", "x is 3, 1.50"},
           {"{{ {'a': {'b': [5]}}.a.b[0] }} {{ {'a': 1}['a'] }}", "5 1"},
           {"{{ 1 % 0.1 }} {{ -7.5 // 2 }} {{ 7.5 % -2 }} {{ 2.5 is even }} {{ 3.0 is odd }}",
            "0.09999999999999995 -4.0 -0.5 False True"},
           {"{{ '%05.2f|%3d|%x|%-4s|%+d|%e|%o|%#X' % (3.14159, 7, 255, 'ab', 5, 12345.678, 8, 255) }}",
            "03.14|  7|ff|ab  |+5|1.234568e+04|10|0XFF"},
           {"{{ '%(a)s-%(b)03d' % {'a': 1, 'b': 2} }}{{ '%s' % missing }}{{ '%.2s|%*d|%c' % ('äöü', 4, 3, 65) }}",
            "1-002äö|   3|A"},
           {"{{ '\\033[1m\\7\\x41\\u00e4' }}{{ 0x1F + 0b11 + 0o17 }}", "\033[1m\7Aä49"},
           {"{{ ['\\xa0\\u200b\\x7fü', '\\U0001F600\\ue000'] }}", "['\\xa0\\u200b\\x7fü', '😀\\ue000']"},
           {"{{ dict({'role': 'x', 'z': 1}, role='y') }}{{ dict([('a', 1), ('b', 2)], a=3) }}",
            "{'role': 'y', 'z': 1}{'a': 3, 'b': 2}"},
           {"{{ {'a': 1, 'a': 2} }}{{ {1: 2, 'a': 3} == {'a': 3, 1.0: 2} }}{{ 'äöü'[1] }}{{ 'äöü'[-3] }}[{{ 'ä'[1] }}]",
            "{'a': 2}Trueöä[]"},
           {"[{{ {}.x }}][{{ {}['x'] }}][{{ missing }}]", "[][][]"},
           {"{{ (1, 2) == (1, 2) }} {{ 1 == 1.0 }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}", "True True True"}});
}

TEST(ChatTemplates, RunStatements) {
    check(
        {{"{% for x in [1, 2, 3] %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}",
          "1/3,2/3,3/3"},
         {"{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}", "a=1;b=2;"},
         {"{% for x in range(6) if x % 2 %}{{ x }}{% else %}none{% endfor %}", "135"},
         {"{% for x in [] %}{% else %}none{% endfor %}", "none"},
         {"{% for x in [1] %}{{ x }}{% continue %}{% else %}none{% endfor %}", "1none"},  // as Jinja does
         {"{% for x in range(9) %}{% if x == 2 %}{% continue %}{% elif x == 4 %}{% break %}{% endif %}{{ x }}{% endfor "
          "%}",
          "013"},
         {"{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}", "1"},  // scopes of loops
         {"{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2"},
         {"{% set n = namespace(x=1) %}{% for i in [1] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}", "2"},
         {"{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"},
         {"{% set x %}a{{ 1 }}{% endset %}{{ x | upper }}", "A1"},
         {"{% set x | upper %}ab{% endset %}{{ x }}", "AB"},
         {"{% macro m(a, b='B') %}{{ a }}{{ b }}{{ varargs }}{% endmacro %}{{ m(1) }} {{ m(1, b=2) }} {{ m(1, 2, 3) }}",
          "1B() 12() 12(3,)"},
         {"{% macro m() %}<{{ caller('x') }}>{% endmacro %}{% call(y) m() %}{{ y }}!{% endcall %}", "<x!>"},
         {"{% filter upper | trim %} ab {% endfilter %}", "AB"},
         {"{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}[{{ a }}]", "3[]"},
         {"{% generation %}x{% endgeneration %}", "x"},
         {"{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"},
         {"{{ strftime_now('%Y') }}", "<%Y>"},
         {"{% for x in 'ab' %}{{ loop.cycle('1', '2') }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
          "1b;2a;"},
         {"{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "TrueFalseTrue"},
         {"{% for x in 'ab' %}{{ x }}{% set y %}c{% break %}{% endset %}{% endfor %}{{ y }}", "a"},
         {"{% for x in 'ab' %}{% filter upper %}{{ x }}{% continue %}{% endfilter %}{% endfor %}|", "|"},
         {"{% for x in [] %}{% else %}{% set y = 1 %}{% endfor %}[{{ y }}]", "[]"},
         {"{% generation %}{% set y = 1 %}{{ y }}{% endgeneration %}[{{ y }}]", "1[]"},
         {"{% for x in 'a' %}{% for y in 'b' %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{% endfor %}", "10"}});
}

TEST(ChatTemplates, HaveFiltersAndTests) {
    check(
        {{"{{ ' a ' | trim }}|{{ 'xax' | trim('x') }}", "a|a"},
         {"{{ {'b': 1, 'a': [1, 'ü']} | tojson }}", "{\"b\": 1, \"a\": [1, \"ü\"]}"},
         {"{{ {'a': [1, {}]} | tojson(indent=2) }}", "{\n  \"a\": [\n    1,\n    {}\n  ]\n}"},
         {"{{ 'ü\"\\n' | tojson(ensure_ascii=true) }}", "\"\\u00fc\\\"\\n\""},
         {"{{ [1, 2] | join('-') }} {{ [{'a': 1}, {'a': 2}] | map(attribute='a') | join }}", "1-2 12"},
         {"{{ ['a'] | map('upper') | list }}", "['A']"},
         {"{{ [{'r': 'x'}, {'r': 'y'}] | selectattr('r', 'equalto', 'y') | list | length }}", "1"},
         {"{{ [1, none, 2] | reject('none') | list }} {{ [0, 1] | select | list }}", "[1, 2] [1]"},
         {"{{ missing | default('d') }} {{ '' | default('d', true) }}", "d d"},
         {"{{ 'a b c' | replace(' ', '') }} {{ 'aXbX'.replace('X', '', 1) }}", "abc abX"},
         {"{{ {'b': 1, 'A': 2} | dictsort }}", "[('A', 2), ('b', 1)]"},
         {"{{ 'a\nb' | indent(2) }}", "a\n  b"},
         {"{{ '3' | int + 1 }} {{ 'x' | int }} {{ 3.7 | int }} {{ '1.5' | float }}", "4 0 3 1.5"},
         {"{{ [3, 1, 2] | sort }} {{ [1, 2] | reverse | list }} {{ [1, 1] | unique | list }}", "[1, 2, 3] [2, 1] [1]"},
         {"{{ 'hello world' | title }} {{ 'äb' | upper }} {{ 'äb' | length }}", "Hello World ÄB 2"},
         {"{{ 1 is defined }} {{ x is undefined }} {{ none is none }} {{ 'a' is string }} {{ {} is mapping }}",
          "True True True True True"},
         {"{{ 4 is divisibleby 2 }} {{ 3 is odd }} {{ [] is iterable and [] is not mapping }} {{ true is boolean }}",
          "True True True True"},
         {"{{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split() }} {{ 'a.b'.rsplit('.', 1)[-1] }}",
          "['a', 'b,c'] ['a', 'b'] b"},
         {"{{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.find('c') }}", "True True 2"},
         {"{{ '  x'.lstrip() }}{{ 'yx'.rstrip('x') }}{{ ', '.join(['a', 'b']) }}", "xya, b"},
         {"{{ {'a': 1}.get('a') }}{{ {}.get('a', 2) }}{{ {'a': 1}.keys() | list }}", "12['a']"}});
}

// What transformers' environment gives.
TEST(ChatTemplates, HaveFiltersWithJinjasDefaults) {
    check(
        {{"{{ \"it's foo_bar a1b (c-d) <e\" | title }}|{{ \"it's a1b\".title() }}",
          "It's Foo_bar A1b (C-D) <E|It'S A1B"},
         {"{{ 'ß ǆ 中a'.title() }}|{{ 'ß ǆ' | title }}", "Ss ǅ 中A|SS Ǆ"},
         {"{{ ['a', 'A', 'b'] | unique | list }}{{ ['a', 'A'] | unique(true) | list }}", "['a', 'b']['a', 'A']"},
         {"{{ ['b', 'A', 'c'] | max }}{{ ['b', 'A'] | min(case_sensitive=true) }}{{ [] | max }}", "cA"},
         {"{{ [{'n': 2, 'x': 'b'}, {'n': 1, 'x': 'A'}] | map(attribute='n') | max }}"
          "{{ ([{'x': 'b'}, {'x': 'A'}] | min(attribute='x')).x }}",
          "2A"},
         {"{{ ['b', 'A', 'c'] | sort }}{{ ['b', 'A'] | sort(case_sensitive=true) }}", "['A', 'b', 'c']['A', 'b']"},
         {"{{ [{'a': 2, 'b': 1}, {'a': 1, 'b': 2}, {'a': 1, 'b': 1}] | sort(attribute='a,b') | map(attribute='b') | "
          "list }}",
          "[1, 2, 1]"},
         {"{{ 5 | round }} {{ 5.5 | round }} {{ 2.5 | round }} {{ 2.675 | round(2) }} {{ 1250 | round(-2) }} "
          "{{ 1.21 | round(1, 'ceil') }}",
          "5 6.0 2.0 2.67 1200 1.3"},
         {"{{ [1, 2] | sum(start=10) }} {{ true | abs }} {{ \"it's a-b c_d\" | wordcount }}", "13 1 5"},
         {"{{ '0x1f' | int(0, 16) }} {{ '1_000' | int }} {{ 'x' | int('d') }} {{ '0x1p3' | float }} "
          "{{ 'inf' | float }}",
          "31 1000 d 0.0 inf"},
         {"[{{ missing | first }}{{ missing | last }}]{{ missing is sequence }} {{ '%s and %s' | format('a', 1) }}",
          "[]True a and 1"},
         {"{{ [1, 2, 3] | select('>', 1) | list }}{{ [1, 2] | select('!=', 1) | list }}{{ [1, 2] | select('==', 1) | "
          "list }}{{ [1, 2] | select('<=', 1) | list }}",
          "[2, 3][2][1][1]"},
         {"{{ 'upper' is filter }} {{ 'odd' is test }} {{ 'x' is test }} {{ '1' is lower }}",
          "True True False False"}});
}

TEST(ChatTemplates, MakeJsonAsTransformersDo) {
    check(
        {{"{{ d | tojson }}", R"({"b": [1, "ü"], "a": {}})"},
         {"{{ d | tojson(separators=(',', ':')) }}", R"({"b":[1,"ü"],"a":{}})"},
         {"{{ d | tojson(false, none, [';', '=']) }}", R"({"b"=[1;"ü"];"a"={}})"},
         {"{{ d | tojson(true) }}", R"({"b": [1, "\u00fc"], "a": {}})"},
         {"{{ d | tojson(indent=1, separators=(', ', ' : ')) }}",
          "{\n \"b\" : [\n  1, \n  \"ü\"\n ], \n \"a\" : {}\n}"},
         {"{{ [1] | tojson(indent='--') }}{{ [1] | tojson(indent=0) }}", "[\n--1\n][\n1\n]"},
         {"{{ d | tojson(sort_keys=true) }}{{ '\\x7f' | tojson(ensure_ascii=true) }}",
          R"({"a": {}, "b": [1, "ü"]}"\u007f")"}},
        {{"d", {{"b", {1, "ü"}}, {"a", Json::object()}}}});
}

TEST(ChatTemplates, RefuseArgumentsThatAFilterDoesNotHave) {
    check({{"{{ 1 | tojson(foo=1) }}",
            "fault: t:1: tojson has no argument 'foo', expected ensure_ascii indent separators sort_keys"},
           {"{{ 'a' | upper(1) }}", "fault: t:1: upper takes at most 0 arguments, got 1"},
           {"{{ 'a' | indent(2, width=2) }}", "fault: t:1: indent got 'width' twice"},
           {"{{ 1 | tojson(separators=1) }}", "fault: t:1: tojson: separators are two strings, got 1"}});
}

TEST(ChatTemplates, HaveMethodsOfStringsOverUnicode) {
    check({{"{{ 'hello'.find('l', 3) }} {{ 'äöüä'.find('ä', 1) }} {{ 'hello'.rfind('l', 0, 3) }} {{ 'a'.find('', 2) }}",
            "3 3 2 -1"},
           {"{{ 'abab'.count('ab', 1) }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.endswith('b', 0, 2) }}",
            "1 True True"},
           {"{{ 'äb'.isalpha() }} {{ '٣'.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ '½'.isnumeric() }} "
            "{{ 'a1'.isalnum() }} {{ '中'.isupper() }} {{ 'aǅ'.islower() }}",
            "True True True False True True False False"},
           {"{{ 'a\\x0bb\\u2028c\\r\\n\\nd'.splitlines() }} {{ 'a\\r\\nb\\n'.splitlines(true) }}",
            "['a', 'b', 'c', '', 'd'] ['a\\r\\n', 'b\\n']"},
           {"{{ ' a  b c '.split(none, 1) }} {{ ' a b  c '.rsplit(none, 1) }} {{ 'a b'.rsplit(none, 5) }}",
            "['a', 'b c '] [' a b', 'c'] ['a', 'b']"},
           {"{{ 'a\\x0bb\\n\\nc' | indent(1) }}|{{ 'a\\n' | indent(1, true, true) }}", "a\n b\n\n c| a\n "},
           {"{{ 'abcb'.partition('b') }} {{ 'abcb'.rpartition('b') }} {{ 'abc'.partition('x') }} "
            "{{ 'abab'.rindex('a') }}",
            "('a', 'b', 'cb') ('abc', 'b', '') ('abc', '', '') 2"},
           {"{{ 'ab'.center(7, '*') }} {{ 'ab'.ljust(3) }}|{{ 'ab'.rjust(4, '0') }} {{ '-5'.zfill(4) }}",
            "***ab** ab |00ab -005"},
           {"{{ 'aß'.casefold() }} {{ 'aß'.isascii() }} {{ [1, 2].copy() }} {{ 2.5 | safe | length }}",
            "ass False [1, 2] 3"}});
}

TEST(ChatTemplates, GiveDatesOfAnyLength) {
    const auto length_of = [](const std::string& format) {
        const auto parsed = ChatTemplate::parse("{{ strftime_now('" + format + "') | length }}", "t");
        const auto text = parsed->render(Json::object());
        return text ? *text : text.error();
    };
    EXPECT_EQ(length_of(std::string(90, 'a')), "90");
    EXPECT_EQ(length_of("%Y-%m-%d"), "10");
    EXPECT_EQ(length_of(""), "0");
}

TEST(ChatTemplates, SayLineAndReasonOfWhatFails) {
    check({{"a\n{% if x %}\nb", "fault: t:2: 'if' has no end, expected 'endif'"},
           {"a\n{{ 1 + }}", "fault: t:2: got '}}', expected an expression"},
           {"{% foo %}", "fault: t:1: unknown statement 'foo'"},
           {"{% include 'x' %}", "fault: t:1: 'include' is not supported in chat templates"},
           {"{{ x | foo }}", "fault: t:1: no filter named 'foo'"},
           {"{{ x is foo }}", "fault: t:1: no test named 'foo'"},
           {"\n\n{{ raise_exception('roles must alternate') }}", "fault: t:3: roles must alternate"},
           {"{{ messages[0]\n .role }}", "fault: t:1: 'messages' is undefined"},
           {"a\n{% for x in 5 %}{% endfor %}", "fault: t:2: 'int' is not iterable"},
           {"{{ 1 + 'a' }}", "fault: t:1: '+' of a int and a str"},
           {"{{ 1 // 0 }}", "fault: t:1: division by zero"},
           {"{{ 9223372036854775807 + 1 }}", "fault: t:1: '+' gives too large a number"},
           {"{{ [].append(1) }}", "fault: t:1: .append() changes a list, which templates may not"},
           {"{{ 'a'.foo() }}", "fault: t:1: a str has no method 'foo'"},
           {"{{ 'unterminated }}", "fault: t:1: a string has no end"},
           {"{# x", "fault: t:1: a comment has no end, expected '#}'"},
           {"{% break %}", "fault: t:1: 'break' outside of a loop"}});
}

TEST(ChatTemplates, EndWhereALimitIs) {
    EXPECT_THAT(rendered("{{ " + std::string(400, '(') + "1" + std::string(400, ')') + " }}"),
                HasSubstr("nested more than"));
    std::string chain = "{{ 1";
    for (int i = 0; i < 3000; ++i) chain += "+1";
    EXPECT_THAT(rendered(chain + " }}"), HasSubstr("too many parts"));
    EXPECT_THAT(rendered("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("nested too deep"));
    const std::pair<const char*, const char*> blocks[] = {{"{% if true %}", "{% endif %}"},
                                                          {"{% for x in [1] %}", "{% endfor %}"},
                                                          {"{% set x %}", "{% endset %}"},
                                                          {"{% filter upper %}", "{% endfilter %}"}};
    for (const auto& [begin, end] : blocks) { // each of which takes stack in each call of the macro
        std::string before, after;
        for (int i = 0; i < 70; ++i) before += begin, after += end;
        EXPECT_THAT(rendered("{% macro m() %}" + before + "{{ m() }}" + after + "{% endmacro %}{{ m() }}"),
                    HasSubstr("nested too deep"));
    }
    std::string maps = "'map'";
    for (int i = 0; i < 5000; ++i) maps += ",'map'";
    Json nested = 1;
    for (int i = 0; i < 199; ++i) nested = Json::array({nested});
    EXPECT_THAT(rendered("{{ v | map(" + maps + ") }}", {{"v", nested}}), HasSubstr("not iterable"));
    EXPECT_THAT(rendered("{{ v | map(" + maps + ",attribute='x') }}", {{"v", {1}}}), Not(HasSubstr("fault")));
    EXPECT_THAT(rendered("{{ 'a' * 10000000000 }}"), HasSubstr("too long"));
    EXPECT_THAT(rendered("{{ range(1000000) }}"), HasSubstr("more than 100000"));
    EXPECT_THAT(rendered("{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"),
                HasSubstr("deep"));
    EXPECT_THAT(
        rendered("{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"),
        HasSubstr("too large"));
    EXPECT_THAT(rendered("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
                HasSubstr("too many steps"));
    EXPECT_THAT(
        rendered("{% for a in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' * 100 }}{% endfor %}"),
        HasSubstr("longer than"));
}

TEST(ChatTemplates, EndWhereTheirOwnTextIsTooLong) {
    const auto of_ten_bytes = [](const std::string& source) {
        const auto text = ChatTemplate::parse(source, "t")->render(Json::object(), {.output_bytes = 10});
        return text ? *text : text.error();
    };
    EXPECT_EQ(of_ten_bytes("0123456789"), "0123456789");
    for (const char* source : {"0123456789a", "{% for i in range(4) %}abc{% endfor %}", "{{ 'abcdef' }}ghijk",
                               "{% set x %}0123456789a{% endset %}", "{{ '0123456789a' }}"})
        EXPECT_EQ(of_ten_bytes(source), "t:1: the text is longer than 10 bytes") << source;
}

// Each would take minutes to hours, were it not counted.
TEST(ChatTemplates, EndWhereLargeValuesAreLookedAtOftenEnough) {
    std::string wide, other; // the same one in another order
    for (int i = 0; i < 50'000; ++i) {
        const std::string member = "\"k" + std::to_string(i) + "\":" + std::to_string(i);
        wide += (i ? "," : "") + member;
        other.insert(0, member + (i ? "," : ""));
    }
    const Json variables = {{"w", *parse_ordered_json("{" + wide + "}")},
                            {"o", *parse_ordered_json("{" + other + "}")},
                            {"s", std::string(4 << 20, 'a')},
                            {"long", std::string(2 << 20, 'a') + "b"}};
    const auto often = [&](const std::string& what) {
        const auto parsed = ChatTemplate::parse("{% for i in range(99999) %}" + what + "{% endfor %}", "t");
        const auto text = parsed->render(variables, {.steps = 2'000'000});
        return text ? *text : text.error();
    };
    for (const char* what : {"{% set x = w['k49999'] %}", "{% set x = w.none %}", "{% set x = s[4000000] %}",
                             "{% set x = s | length %}", "{% set x = [w] | map(attribute='none') | list %}",
                             "{% set x = w is eq(o) %}", "{% set x = 'b' in s %}", "{% set x = s.isalpha() %}",
                             "{% set x = s | title %}", "{% set x = [w] | groupby('none') %}",
                             "{% set x = s | truncate %}",
                             "{% set x = '{0[none]}{0!r}'.format(w) %}"})
        EXPECT_THAT(often(what), HasSubstr("too many steps")) << what;
    EXPECT_THAT(often("{% set x = '{:1000000}'.format(1) %}"), HasSubstr("too much text"));
    EXPECT_EQ(rendered("{{ w == o }} {{ long in s }} {{ s.find(long) }} {{ s.split(long) | length }} "
                       "{{ dict(w, **o) | length }}",
                       variables),
              "True False -1 1 50000");
    EXPECT_THAT(rendered("{{ s.rfind(long) }}", variables), HasSubstr("too many steps"));
}

}  // namespace
}  // namespace patchbay::text::chat_template_test
