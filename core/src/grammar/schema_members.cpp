#include "grammar/schema_members.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/refusals.hpp"
#include "grammar/schema_parse.hpp"

namespace patchbay::grammar {
namespace {

constexpr size_t kMaxPatterns = 40, kMaxRegions = 64;

std::string spelled_name(const std::string& name) {
    const std::string out = JsonText::spelled(Json(name));
    return out.substr(1, out.size() - 2);
}

Dfa of_texts(const std::vector<std::string>& names) { // a tree
    std::vector<std::map<uint8_t, uint32_t>> next(1);
    std::set<uint32_t> ends;
    for (const std::string& name : names) {
        uint32_t at = 0;
        for (const char c : spelled_name(name)) {
            const auto fresh = static_cast<uint32_t>(next.size());
            const auto [to, added] = next[at].try_emplace(static_cast<uint8_t>(c), fresh);
            at = to->second;
            if (added) next.emplace_back();
        }
        ends.insert(at);
    }
    Dfa out;
    out.states.resize(next.size());
    for (uint32_t s = 0; s < next.size(); ++s) {
        for (const auto& [byte, to] : next[s]) out.states[s].edges.push_back({byte, byte, to});
        out.states[s].accepts = ends.contains(s);
    }
    return out;
}

// What one schema says of members.
struct Described {
    std::unordered_map<std::string_view, const Json*> properties;
    struct Pattern {
        std::string text;
        const Json* value;
        Dfa names;
    };
    std::vector<Pattern> patterns;
};

class Joining {
  public:
    Joining(const SchemaSources& sources, const NameAutomata& automata, Work& work)
        : sources_(sources), automata_(automata), work_(work) {}

    Result<ObjectMembers> join() {
        for (const SchemaSource& source : sources_) PB_CHECK(read(source));
        for (const SchemaSource& source : sources_) PB_CHECK(read_required(source));
        if (names_.size() > kMaxSchemaMembers || names_.size() * sources_.size() > 100'000)
            return invalid(sources_.front().path + ": more than " + std::to_string(kMaxSchemaMembers) +
                           " names of members hold together");
        PB_CHECK(work_.spend(20 * names_.size() * sources_.size() * (1 + closing_.size())));
        ObjectMembers out;
        for (const std::string& name : names_) add_named(name, out);
        PB_CHECK(add_others(out));
        return out;
    }

  private:
    void name(const std::string& n) {
        if (known_.insert(n).second) names_.push_back(n);
    }

    Result<> read(const SchemaSource& source) {
        const Json& s = *source.schema;
        Described& own = described_.emplace_back();
        for (const char* keyword : {"properties", "patternProperties"}) {
            if (!s.contains(keyword)) continue;
            if (!s[keyword].is_object()) return invalid(source.path + "/" + keyword + ": is not an object");
            PB_CHECK(work_.spend(s[keyword].size()));
            for (const auto& [key, value] : s[keyword].get_ref<const Json::object_t&>()) {
                describes_ = describes_ || value != false;
                if (std::string_view(keyword) == "properties") {
                    name(key);
                    own.properties.emplace(key, &value);
                } else {
                    PB_TRY(Dfa names, automata_.matching(key, source.path + "/patternProperties/" + key));
                    own.patterns.push_back({key, &value, std::move(names)});
                    if (++patterns_ > kMaxPatterns)
                        return invalid(source.path + "/patternProperties: more than " + std::to_string(kMaxPatterns) +
                                       " patterns");
                }
            }
        }
        for (const char* keyword : {"additionalProperties", "unevaluatedProperties"}) {
            if (!s.contains(keyword)) continue;
            (s[keyword] == false ? describes_ : allows_) = true;
            if (std::string_view(keyword) == "unevaluatedProperties") closing_.push_back(described_.size() - 1);
        }
        if (s.contains("propertyNames")) {
            PB_TRY(Dfa names, automata_.valid({source.at("propertyNames", s["propertyNames"])}));
            valid_names_.push_back(std::move(names));
        }
        return {};
    }

    Result<> read_required(const SchemaSource& source) {
        const Json& s = *source.schema;
        if (!s.contains("required")) return {};
        if (!s["required"].is_array()) return invalid(source.path + "/required: is not an array");
        PB_CHECK(work_.spend(s["required"].size()));
        for (const Json& each : s["required"]) {
            if (!each.is_string()) return invalid(source.path + "/required: is not an array of names");
            name(each.get<std::string>());
            required_.insert(each.get<std::string>());
        }
        return {};
    }

    // What a schema says of a member that neither its properties nor its patterns name. false: it may not be there.
    static bool unnamed(const SchemaSource& source, SchemaSources& value) {
        const Json& s = *source.schema;
        if (!s.contains("additionalProperties")) return true;
        if (s["additionalProperties"] == false) return false;
        value.push_back(source.at("additionalProperties", s["additionalProperties"]));
        return true;
    }

    // What schemas say of a member that nothing in their scope evaluates. By source: whether it describes the member.
    bool unevaluated(const std::vector<bool>& described, SchemaSources& value) const {
        const auto evaluates = [&](size_t i, const SchemaSource& around) {
            const SchemaSource& s = sources_[i];
            if (s.violates || !s.lies_in(around.scope)) return false;
            return described[i] || s.schema->contains("additionalProperties") ||
                   (s.scope != around.scope && s.schema->contains("unevaluatedProperties"));
        };
        bool may = true;
        for (const size_t k : closing_) {
            const SchemaSource& around = sources_[k];
            bool evaluated = false;
            for (size_t i = 0; i < sources_.size() && !evaluated; ++i) evaluated = evaluates(i, around);
            if (evaluated) continue;
            const Json& rest = (*around.schema)["unevaluatedProperties"];
            if (rest == false) may = false;
            value.push_back(around.at("unevaluatedProperties", rest));
        }
        return may;
    }

    void add_named(const std::string& n, ObjectMembers& out) {
        ObjectMembers::Member member{n, {}, required_.contains(n)};
        const std::string spelled = spelled_name(n);
        bool may = std::all_of(valid_names_.begin(), valid_names_.end(),
                               [&](const Dfa& names) { return names.matches(spelled); });
        std::vector<bool> described(sources_.size());
        for (size_t i = 0; i < sources_.size(); ++i) {
            const auto take = [&](const std::string& at, const Json& value) {
                member.value.push_back(sources_[i].at(at, value));
                described[i] = true;
                may = may && value != false;
            };
            if (const auto at = described_[i].properties.find(n); at != described_[i].properties.end())
                take("properties/" + n, *at->second);
            for (const auto& p : described_[i].patterns)
                if (p.names.matches(spelled)) take("patternProperties/" + p.text, *p.value);
            if (!described[i]) may = unnamed(sources_[i], member.value) && may;
        }
        may = unevaluated(described, member.value) && may;
        if (may)
            out.named.push_back(std::move(member));
        else
            out.impossible = out.impossible || member.required;
    }

    struct Region {
        Dfa names;
        std::vector<bool> matched; // by pattern, over all schemas
    };

    // Other names, apart by the patterns that they match.
    Result<std::vector<Region>> regions() {
        PB_TRY(Dfa free, automata_.any());
        for (const Dfa& valid : valid_names_) {
            PB_TRY(free, common(free, valid, work_));
        }
        if (!names_.empty()) {
            PB_TRY(free, without(free, of_texts(names_), work_));
        }
        std::vector<Region> out;
        out.push_back({std::move(free), {}});
        for (const Described& own : described_)
            for (const auto& pattern : own.patterns) {
                std::vector<Region> next;
                for (Region& r : out) {
                    Region in{{}, r.matched}, outside{{}, r.matched};
                    in.matched.push_back(true);
                    outside.matched.push_back(false);
                    PB_TRY(in.names, common(r.names, pattern.names, work_));
                    PB_TRY(outside.names, without(r.names, pattern.names, work_));
                    if (!in.names.empty()) next.push_back(std::move(in));
                    if (!outside.names.empty()) next.push_back(std::move(outside));
                }
                out = std::move(next);
                if (out.size() > kMaxRegions)
                    return invalid(sources_.front().path + ": keyword 'patternProperties': names match in more than " +
                                   std::to_string(kMaxRegions) + " combinations");
            }
        return out;
    }

    Result<> add_others(ObjectMembers& out) {
        const bool free = allows_ || !describes_; // names that nothing describes
        if (!free && patterns_ == 0) return {};
        PB_TRY(std::vector<Region> all, regions());
        for (Region& r : all) {
            SchemaSources value;
            bool may = true, seen = free;
            size_t n = 0;
            std::vector<bool> described(sources_.size());
            for (size_t i = 0; i < sources_.size(); ++i) {
                for (const auto& p : described_[i].patterns) {
                    if (!r.matched[n++]) continue;
                    value.push_back(sources_[i].at("patternProperties/" + p.text, *p.value));
                    may = may && *p.value != false;
                    described[i] = seen = true;
                }
                if (!described[i]) may = unnamed(sources_[i], value) && may;
            }
            may = unevaluated(described, value) && may;
            if (may && seen) out.others.push_back({std::move(r.names), std::move(value)});
        }
        return {};
    }

    const SchemaSources& sources_;
    const NameAutomata& automata_;
    Work& work_;
    std::vector<Described> described_; // by source
    std::vector<std::string> names_;
    std::set<std::string> known_, required_;
    std::vector<Dfa> valid_names_;
    std::vector<size_t> closing_; // sources with unevaluatedProperties
    size_t patterns_ = 0;
    bool describes_ = false, allows_ = false;
};

}  // namespace

Result<ObjectMembers> ObjectMembers::of(const SchemaSources& sources, const NameAutomata& automata, Work& work) {
    return Joining(sources, automata, work).join();
}

}  // namespace patchbay::grammar
