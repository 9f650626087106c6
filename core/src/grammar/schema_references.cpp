#include "grammar/schema_references.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/refusals.hpp"
#include "grammar/schema_keywords.hpp"

namespace patchbay::grammar {
namespace {

std::string without_dots(const std::string& path) { // RFC 3986, 5.2.4
    std::vector<std::string> parts;
    size_t at = 0;
    while (at <= path.size()) {
        const size_t end = std::min(path.find('/', at), path.size());
        const std::string part = path.substr(at, end - at);
        const bool last = end == path.size();
        if (part == "..") {
            if (parts.size() > 1) parts.pop_back();
            if (last) parts.emplace_back();
        } else if (part != "." || last) {
            parts.push_back(part == "." ? "" : part);
        }
        at = end + 1;
    }
    std::string out;
    for (size_t i = 0; i < parts.size(); ++i) out += (i ? "/" : "") + parts[i];
    return out;
}

// Of URIs without fragments; a reference without a scheme is relative to the base.
std::string resolved(const std::string& base, const std::string& ref) {
    if (ref.empty()) return base;
    const size_t colon = ref.find(':');
    if (colon != ref.npos && ref.find('/') > colon) return ref;
    const size_t scheme = base.find("://");
    const size_t host = scheme == base.npos ? 0 : std::min(base.find('/', scheme + 3), base.size());
    if (ref.starts_with("//")) return base.substr(0, base.find("//")) + ref;
    if (ref[0] == '/') return base.substr(0, host) + without_dots(ref);
    const size_t slash = base.rfind('/');
    const std::string folder = slash == base.npos || slash < host ? "/" : base.substr(host, slash + 1 - host);
    return base.substr(0, host) + without_dots((scheme == base.npos && slash == base.npos ? "" : folder) + ref);
}

class References {
  public:
    explicit References(Json& root) : root_(root), draft_(draft_named(root)) {
        old_ids_ = draft_ == Draft::k4;
        ref_alone_ = draft_ && *draft_ <= Draft::k7;
    }

    Result<> localise() {
        index(root_, "", "");
        rewrite(root_, "");
        if (left_ > 0) return {};
        return invalid("the schema's $id, $anchor and $ref are too long together, with the places that they name");
    }

  private:
    static bool is_known(const std::string& keyword) {
        return std::ranges::find(known_keywords(), keyword, &Keyword::name) != known_keywords().end();
    }

    // Each name is kept with the URI and the place that it stands for, which may be as long as the schema.
    bool pays(size_t bytes) {
        left_ = bytes < left_ ? left_ - bytes : 0;
        return left_ > 0;
    }

    static std::optional<std::string> text_of(const Json& s, const char* keyword) {
        const auto at = s.find(keyword);
        if (at == s.end() || !at->is_string()) return std::nullopt;
        return at->get<std::string>();
    }

    std::string base_within(const Json& s, const std::string& base) const {
        const auto id = text_of(s, old_ids_ ? "id" : "$id");
        if (!id || id->starts_with('#') || (ref_alone_ && s.contains("$ref"))) return base;
        return resolved(base, id->substr(0, id->find('#')));
    }

    void index(Json& s, const std::string& outer, const std::string& pointer) {
        if (!s.is_object() || !pays(pointer.size() + 2 * outer.size())) return;
        if (draft_) erase_if(s, [&](const std::string& keyword) { return !is_of(*draft_, keyword); });
        const std::string base = base_within(s, outer);
        if (!pays(2 * base.size())) return;
        if (base != outer || pointer.empty()) resources_.try_emplace(base, pointer);
        for (const char* keyword : {"$id", "id"})
            if (const auto id = text_of(s, keyword); id && id->find('#') != id->npos && id->back() != '#')
                places_.try_emplace(resolved(base, id->substr(0, id->find('#'))) + id->substr(id->find('#')), pointer);
        for (const char* keyword : {"$anchor", "$dynamicAnchor"})
            if (const auto name = text_of(s, keyword)) {
                places_.try_emplace(base + "#" + *name, pointer);
                if (std::string_view(keyword) == "$dynamicAnchor") {
                    dynamic_[*name] += 1;
                    dynamic_places_.insert(base + "#" + *name);
                }
            }
        if (s.contains("$recursiveAnchor") && s["$recursiveAnchor"] == true) recursive_.insert(base);
        each_subschema(s, [&](Json& part, const std::string& at) { index(part, base, pointer + at); });
    }

    // The pointer from the root; none: elsewhere.
    std::optional<std::string> target(const std::string& ref, const std::string& base) {
        const auto found = place_of(ref, base);
        if (!pays(base.size() + (found ? found->size() : 0))) return std::nullopt;
        return found;
    }
    std::optional<std::string> place_of(const std::string& ref, const std::string& base) const {
        const size_t hash = std::min(ref.find('#'), ref.size());
        const std::string uri = resolved(base, ref.substr(0, hash));
        const std::string fragment = hash < ref.size() ? ref.substr(hash + 1) : "";
        if (!fragment.empty() && fragment[0] != '/') {
            const auto at = places_.find(uri + "#" + fragment);
            return at == places_.end() ? std::nullopt : std::optional(at->second);
        }
        const auto at = resources_.find(uri);
        return at == resources_.end() ? std::nullopt : std::optional(at->second + fragment);
    }

    template <class Drop>
    static void erase_if(Json& s, const Drop& drop) {
        for (auto at = s.begin(); at != s.end();) at = drop(at.key()) ? s.erase(at) : std::next(at);
    }

    void rewrite(Json& s, const std::string& outer) {
        if (!s.is_object() || !pays(2 * outer.size())) return;
        const std::string base = base_within(s, outer);
        if (const auto ref = text_of(s, "$ref"))
            if (const auto to = target(*ref, base)) s["$ref"] = "#" + *to;
        if (ref_alone_ && text_of(s, "$ref")) // $defs and definitions are left, which others refer to
            erase_if(s, [](const std::string& keyword) { return keyword != "$ref" && is_known(keyword); });
        if (const auto ref = text_of(s, "$dynamicRef"))
            if (const auto to = target(*ref, base)) replace(s, "$dynamicRef", *to, leads_to_one(*ref, base));
        if (const auto ref = text_of(s, "$recursiveRef"))
            if (const auto to = target(*ref, base))
                replace(s, "$recursiveRef", *to, recursive_.empty() || !recursive_.contains(base));
        each_subschema(s, [&](Json& part, const std::string&) { rewrite(part, base); });
    }

    // Whether a $dynamicRef means the same place, wherever the schema is referred from.
    bool leads_to_one(const std::string& ref, const std::string& base) const {
        const size_t hash = std::min(ref.find('#'), ref.size());
        const std::string name = hash < ref.size() ? ref.substr(hash + 1) : "";
        const auto many = dynamic_.find(name);
        return many == dynamic_.end() || many->second == 1 ||
               !dynamic_places_.contains(resolved(base, ref.substr(0, hash)) + "#" + name);
    }

    static void replace(Json& s, const char* keyword, const std::string& to, bool as_ref) {
        if (!as_ref) {
            s[keyword] = "#" + to;
            return;
        }
        if (s.contains("$ref") && s.contains("allOf") && !s["allOf"].is_array()) return; // refused later
        s.erase(keyword);
        if (s.contains("$ref"))
            s["allOf"].push_back(Json{{"$ref", "#" + to}});
        else
            s["$ref"] = "#" + to;
    }

    Json& root_;
    size_t left_ = 16u << 20; // bytes
    const std::optional<Draft> draft_;
    bool old_ids_ = false, ref_alone_ = false;
    std::map<std::string, std::string> resources_, places_; // pointers by URI, the latter with a fragment
    std::map<std::string, int> dynamic_;                    // how many anchors have the name
    std::set<std::string> dynamic_places_;                  // URIs of $dynamicAnchor
    std::set<std::string> recursive_;                       // bases with a $recursiveAnchor
};

class DynamicIndex {
  public:
    std::map<const Json*, DynamicAnchors> of(const Json& root) {
        visit(root, root);
        if (!needed_) anchors_.clear();
        return std::move(anchors_);
    }

  private:
    static bool has_text(const Json& s, const char* keyword) { return s.contains(keyword) && s[keyword].is_string(); }

    void visit(const Json& s, const Json& around) {
        if (!s.is_object()) return;
        const bool named = has_text(s, "$id") && !s["$id"].get_ref<const std::string&>().starts_with('#');
        const bool own = &s == &around || named;
        const Json& resource = own ? s : around;
        DynamicAnchors& anchors = anchors_[&resource];
        if (has_text(s, "$dynamicAnchor"))
            anchors.try_emplace(s["$dynamicAnchor"].get<std::string>(), DynamicAnchor{&s, &resource});
        if (own && s.contains("$recursiveAnchor") && s["$recursiveAnchor"] == true)
            anchors.try_emplace("", DynamicAnchor{&s, &resource});
        needed_ = needed_ || s.contains("$dynamicRef") || s.contains("$recursiveRef");
        each_subschema(s, [&](const Json& part, const std::string&) { visit(part, resource); });
    }

    std::map<const Json*, DynamicAnchors> anchors_;
    bool needed_ = false;
};

}  // namespace

Result<> localise_references(Json& root) {
    if (!root.is_object()) return {};
    return References(root).localise();
}

std::map<const Json*, DynamicAnchors> dynamic_anchors_of(const Json& root) { return DynamicIndex().of(root); }

}  // namespace patchbay::grammar
