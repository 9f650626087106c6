#include "grammar/structural_tag.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/exact_numbers.hpp"
#include "base/ordered_json.hpp"
#include "base/refusals.hpp"
#include "grammar/automaton.hpp"
#include "grammar/ebnf.hpp"
#include "grammar/first_match.hpp"
#include "grammar/json_schema.hpp"
#include "grammar/lark.hpp"
#include "grammar/regex.hpp"
#include "grammar/schema_parse.hpp"

namespace patchbay::grammar {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr size_t kMaxBytes = 1u << 20, kMaxTags = 256, kMaxTriggers = 64;
constexpr uint32_t kMaxFormatDepth = 32;

struct Tag {
    std::string begin;
    ExprId content_and_end = 0;
};

class Translator {
  public:
    Translator(Rules& rules, Whitespace whitespace, Work& work)
        : rules_(rules), whitespace_(whitespace), work_(work) {}

    Result<RuleId> translate(const Json& root) {
        if (!root.is_object()) return refuse("", "expected an object");
        const RuleId rule = rules_.declare("root");
        ExprId body = 0;
        if (root.contains("structures")) {
            PB_TRY(body, structures(root));
        } else if (root.contains("format")) {
            PB_TRY(body, format(root["format"], "format", {}, 0));
        } else {
            return refuse("", "expected 'structures' with 'triggers', or 'format'");
        }
        rules_.define(rule, body);
        if (!rules_.fault().empty()) return refuse("", rules_.fault());
        return rule;
    }

  private:
    static Failure refuse(const std::string& path, const Failure& why) {
        return prefixed("structural_tag", path.empty() ? why : prefixed(path, why));
    }
    static Failure refuse(const std::string& path, const std::string& what) { return refuse(path, invalid(what)); }

    static Result<std::string> text(const Json& of, const char* key, const std::string& path) {
        if (!of.contains(key) || !of[key].is_string())
            return refuse(path, std::string("expected a string '") + key + "'");
        return of[key].get<std::string>();
    }

    static Result<Texts> texts(const Json& of, const char* key, const std::string& path) {
        Texts out;
        const auto bad = [&] {
            return refuse(path, std::string("expected a list of strings '") + key + "', none empty");
        };
        if (!of.contains(key) || !of[key].is_array() || of[key].empty() || of[key].size() > kMaxTriggers) return bad();
        for (const Json& one : of[key]) {
            if (!one.is_string() || one.get_ref<const std::string&>().empty()) return bad();
            out.push_back(one.get<std::string>());
        }
        return out;
    }

    static Result<bool> flag(const Json& of, const char* key, const std::string& path) {
        if (!of.contains(key)) return false;
        if (!of[key].is_boolean()) return refuse(path, std::string("expected true or false for '") + key + "'");
        return of[key].get<bool>();
    }

    static Result<const Json*> list(const Json& of, const char* key, const std::string& path) {
        if (!of.contains(key) || !of[key].is_array() || of[key].empty() || of[key].size() > kMaxTags)
            return refuse(path, std::string("expected a list '") + key + "' of 1 to " + std::to_string(kMaxTags));
        return &of[key];
    }

    Result<ExprId> free_text(Dfa bytes) { // that is UTF-8 as well
        if (!characters_) {
            PB_TRY(characters_, regular(rules_, rules_.repeat(rules_.chars(CodePoints::all()), 0, kUnbounded), work_));
        }
        PB_TRY(Dfa both, common(bytes, *characters_, work_));
        return rules_.automaton(std::move(both));
    }

    Result<ExprId> schema(const Json& given, const std::string& path) {
        auto rule = parse_json_schema(rules_, given.is_string() ? given.get<std::string>() : given.dump(), whitespace_,
                                      work_);
        if (!rule) return refuse(path, rule.failure());
        return rules_.rule(*rule);
    }

    Result<ExprId> structures(const Json& root) {
        PB_TRY(const Json* const given, list(root, "structures", ""));
        PB_TRY(const Texts triggers, texts(root, "triggers", ""));
        std::vector<Tag> tags;
        for (size_t i = 0; i < given->size(); ++i) {
            const std::string path = "structures[" + std::to_string(i) + "]";
            const Json& one = (*given)[i];
            if (!one.is_object()) return refuse(path, "expected an object");
            PB_TRY(const std::string begin, text(one, "begin", path));
            PB_TRY(const std::string end, text(one, "end", path));
            PB_TRY(const ExprId content, schema(one.contains("schema") ? one["schema"] : Json(true), path + ".schema"));
            tags.push_back({begin, rules_.sequence({content, rules_.bytes(end)})});
        }
        return triggered(triggers, tags, {}, Count{}, "triggers");
    }

    struct Count {
        bool at_least_one = false, stop_after_first = false;
    };

    // Free text, in which a trigger must go on as one of the tags that begin with it. ends: which end the text around;
    // the result ends with one of them, or anywhere where there is none.
    Result<ExprId> triggered(const Texts& triggers, const std::vector<Tag>& tags, const Texts& ends, Count count,
                             const std::string& path) {
        Texts all = triggers;
        all.insert(all.end(), ends.begin(), ends.end());
        auto found = FirstMatch::of(all);
        if (!found) return refuse(path, found.failure());
        std::vector<ExprId> parts;
        for (size_t i = 0; i < triggers.size(); ++i) {
            std::vector<ExprId> rest;
            for (const Tag& tag : tags)
                if (tag.begin.starts_with(triggers[i]))
                    rest.push_back(rules_.sequence(
                        {rules_.bytes(tag.begin.substr(triggers[i].size())), tag.content_and_end}));
            if (rest.empty()) return refuse(path, "no tag begins with the trigger '" + triggers[i] + "'");
            PB_TRY(const ExprId before, free_text(found->up_to(i)));
            parts.push_back(rules_.sequence({before, rules_.choice(std::move(rest))}));
        }
        for (const Tag& tag : tags)
            if (std::none_of(triggers.begin(), triggers.end(), [&](const auto& t) { return tag.begin.starts_with(t); }))
                return refuse(path, "the tag '" + tag.begin + "' begins with none of them");
        PB_TRY(const ExprId last, ending(*found, triggers.size(), ends));
        const ExprId one = rules_.choice(std::move(parts));
        if (!count.stop_after_first)
            return rules_.sequence({rules_.repeat(one, count.at_least_one ? 1 : 0, kUnbounded), last});
        PB_TRY(const ExprId after, end_of(ends));
        const ExprId stopped = rules_.sequence({one, after});
        return count.at_least_one ? stopped : rules_.choice({stopped, last});
    }

    // Free text without a trigger: to its end, or up to the first of the ends, whose numbers begin with `first`.
    Result<ExprId> ending(const FirstMatch& found, size_t first, const Texts& ends) {
        if (ends.empty()) return free_text(found.none());
        std::vector<ExprId> out;
        for (size_t i = first; i < found.texts(); ++i) {
            PB_TRY(const ExprId one, free_text(found.up_to(i)));
            out.push_back(one);
        }
        return rules_.choice(std::move(out));
    }

    Result<ExprId> end_of(const Texts& ends) {
        if (ends.empty()) return rules_.empty();
        std::vector<ExprId> out;
        for (const std::string& end : ends) out.push_back(rules_.bytes(end));
        return rules_.choice(std::move(out));
    }

    Result<ExprId> followed(ExprId what, const Texts& ends) {
        PB_TRY(const ExprId end, end_of(ends));
        return ends.empty() ? what : rules_.sequence({what, end});
    }

    // With one of the ends after it, where there are some.
    Result<ExprId> format(const Json& f, const std::string& path, const Texts& ends, uint32_t depth) {
        if (depth > kMaxFormatDepth)
            return refuse(path, "more than " + std::to_string(kMaxFormatDepth) + " nested formats");
        if (!f.is_object()) return refuse(path, "expected an object");
        PB_TRY(const std::string type, text(f, "type", path));
        if (type == "sequence") return sequence(f, path, ends, depth);
        if (type == "any_text") {
            if (f.contains("excludes")) return refuse(path, unsupported("'excludes' is not supported"));
            auto found = FirstMatch::of(ends);
            if (!found) return refuse(path, found.failure());
            return ending(*found, 0, ends);
        }
        if (type == "triggered_tags") {
            if (f.contains("excludes")) return refuse(path, unsupported("'excludes' is not supported"));
            PB_TRY(const auto tags, read_tags(f, path, depth));
            PB_TRY(const Texts triggers, texts(f, "triggers", path));
            PB_TRY(const Count count, read_count(f, path));
            return triggered(triggers, tags, ends, count, path);
        }
        if (type == "or") {
            PB_TRY(const Json* const elements, list(f, "elements", path));
            std::vector<ExprId> out;
            for (size_t i = 0; i < elements->size(); ++i) {
                PB_TRY(const ExprId one,
                       format((*elements)[i], path + ".elements[" + std::to_string(i) + "]", ends, depth + 1));
                out.push_back(one);
            }
            return rules_.choice(std::move(out));
        }
        PB_TRY(const ExprId alone, closed_format(f, type, path, depth));
        return followed(alone, ends);
    }

    // The formats that know where they end.
    Result<ExprId> closed_format(const Json& f, const std::string& type, const std::string& path, uint32_t depth) {
        if (type == "const_string") {
            PB_TRY(const std::string value, text(f, "value", path));
            return rules_.bytes(value);
        }
        if (type == "json_schema") {
            if (f.contains("style") && f["style"] != "json")
                return refuse(path, unsupported("'style' other than json is not supported"));
            return schema(f.contains("json_schema") ? f["json_schema"] : Json(true), path + ".json_schema");
        }
        if (type == "regex") {
            PB_TRY(const std::string pattern, text(f, "pattern", path));
            auto body = parse_regex(rules_, pattern, plain_regex(), work_);
            if (!body) return refuse(path, body.failure());
            return *body;
        }
        if (type == "grammar") {
            PB_TRY(const std::string source, text(f, "grammar", path));
            auto rule = is_lark(source) ? parse_lark(rules_, source, work_) : parse_ebnf(rules_, source, work_);
            if (!rule) return refuse(path, rule.failure());
            return rules_.rule(*rule);
        }
        if (type == "tag") {
            PB_TRY(const Tag tag, read_tag(f, path, depth));
            return rules_.sequence({rules_.bytes(tag.begin), tag.content_and_end});
        }
        if (type == "tags_with_separator") return separated(f, path, depth);
        return refuse(path, "type '" + type +
                                "' is not supported (supported: any_text, const_string, grammar, json_schema, or, "
                                "regex, sequence, tag, tags_with_separator, triggered_tags)");
    }

    Result<ExprId> sequence(const Json& f, const std::string& path, const Texts& ends, uint32_t depth) {
        PB_TRY(const Json* const elements, list(f, "elements", path));
        std::vector<ExprId> out;
        for (size_t i = 0; i < elements->size(); ++i) {
            const bool last = i + 1 == elements->size();
            // Free text before a fixed one ends where that begins.
            const Json* const next = last ? nullptr : &(*elements)[i + 1];
            const bool fixed = next && next->is_object() && next->value("type", Json()) == "const_string" &&
                               next->contains("value") && (*next)["value"].is_string() &&
                               !(*next)["value"].get_ref<const std::string&>().empty();
            const Texts until = last ? ends : fixed ? Texts{(*next)["value"].get<std::string>()} : Texts{};
            PB_TRY(const ExprId one,
                   format((*elements)[i], path + ".elements[" + std::to_string(i) + "]", until, depth + 1));
            out.push_back(one);
            if (fixed) {
                i += 1; // it is part of what ended there
                if (i + 1 == elements->size()) {
                    PB_TRY(const ExprId end, end_of(ends));
                    out.push_back(end);
                }
            }
        }
        return rules_.sequence(std::move(out));
    }

    Result<ExprId> separated(const Json& f, const std::string& path, uint32_t depth) {
        PB_TRY(const auto tags, read_tags(f, path, depth));
        PB_TRY(const std::string separator, text(f, "separator", path));
        PB_TRY(const Count count, read_count(f, path));
        std::vector<ExprId> parts;
        for (const Tag& tag : tags) parts.push_back(rules_.sequence({rules_.bytes(tag.begin), tag.content_and_end}));
        const ExprId one = rules_.choice(std::move(parts));
        ExprId out = one;
        if (!count.stop_after_first)
            out = rules_.sequence(
                {one, rules_.repeat(rules_.sequence({rules_.bytes(separator), one}), 0, kUnbounded)});
        return count.at_least_one ? out : rules_.optional(out);
    }

    static Result<Count> read_count(const Json& f, const std::string& path) {
        PB_TRY(const bool one, flag(f, "at_least_one", path));
        PB_TRY(const bool stop, flag(f, "stop_after_first", path));
        return Count{one, stop};
    }

    Result<std::vector<Tag>> read_tags(const Json& f, const std::string& path, uint32_t depth) {
        PB_TRY(const Json* const given, list(f, "tags", path));
        std::vector<Tag> out;
        for (size_t i = 0; i < given->size(); ++i) {
            PB_TRY(Tag tag, read_tag((*given)[i], path + ".tags[" + std::to_string(i) + "]", depth + 1));
            out.push_back(std::move(tag));
        }
        return out;
    }

    // {"begin": "<a>", "content": {…}, "end": "</a>"}; there may be several ends.
    Result<Tag> read_tag(const Json& f, const std::string& path, uint32_t depth) {
        if (!f.is_object()) return refuse(path, "expected an object");
        Tag out;
        PB_TRY(out.begin, text(f, "begin", path));
        Texts ends;
        if (f.contains("end") && f["end"].is_string()) {
            if (!f["end"].get_ref<const std::string&>().empty()) ends = {f["end"].get<std::string>()};
        } else {
            PB_TRY(ends, texts(f, "end", path));
        }
        if (!f.contains("content")) return refuse(path, "expected 'content'");
        PB_TRY(out.content_and_end, format(f["content"], path + ".content", ends, depth + 1));
        return out;
    }

    Rules& rules_;
    Whitespace whitespace_;
    Work& work_;
    std::optional<Dfa> characters_;
};

}  // namespace

Result<RuleId> parse_structural_tag(Rules& rules, std::string_view text, Whitespace whitespace, Work& work) {
    if (text.size() > kMaxBytes)
        return invalid("structural_tag: " + std::to_string(text.size()) + " bytes, expected at most " +
                       std::to_string(kMaxBytes));
    auto read = parse_ordered_json(text, {.members = kMaxSchemaMembers});
    if (!read) return fail(read.code(), "structural_tag: it " + read.error());
    if (const auto exact = check_exact_numbers(text); !exact) return prefixed("structural_tag", exact.failure());
    return Translator(rules, whitespace, work).translate(*read);
}

}  // namespace patchbay::grammar
