#include "text/chat_template/chat_template.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "paths.hpp"

namespace patchbay::text {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

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
          "1b;2a;"}});
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

}  // namespace
}  // namespace patchbay::text
