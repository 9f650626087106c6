#include "grammar/schema_references.hpp"

#include <map>
#include <optional>

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
    explicit References(Json& root) : root_(root) {
        const auto schema = root.find("$schema");
        const std::string draft = schema != root.end() && schema->is_string() ? schema->get<std::string>() : "";
        old_ids_ = draft.find("draft-04") != draft.npos || draft.find("draft-03") != draft.npos;
        ref_alone_ = old_ids_ || draft.find("draft-06") != draft.npos || draft.find("draft-07") != draft.npos;
    }

    void localise() {
        index(root_, "", "");
        rewrite(root_, "");
    }

  private:
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
        if (!s.is_object()) return;
        const std::string base = base_within(s, outer);
        if (base != outer || pointer.empty()) resources_.try_emplace(base, pointer);
        for (const char* keyword : {"$id", "id"})
            if (const auto id = text_of(s, keyword); id && id->find('#') != id->npos && id->back() != '#')
                places_.try_emplace(resolved(base, id->substr(0, id->find('#'))) + id->substr(id->find('#')), pointer);
        for (const char* keyword : {"$anchor", "$dynamicAnchor"})
            if (const auto name = text_of(s, keyword)) {
                places_.try_emplace(base + "#" + *name, pointer);
                if (std::string_view(keyword) == "$dynamicAnchor") dynamic_[*name] += 1;
            }
        if (s.contains("$recursiveAnchor")) recursive_ += 1;
        each_subschema(s, [&](Json& part, const std::string& at) { index(part, base, pointer + at); });
    }

    // The pointer from the root; none: elsewhere.
    std::optional<std::string> target(const std::string& ref, const std::string& base) const {
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

    void rewrite(Json& s, const std::string& outer) {
        if (!s.is_object()) return;
        const std::string base = base_within(s, outer);
        if (const auto ref = text_of(s, "$ref"))
            if (const auto to = target(*ref, base)) s["$ref"] = "#" + *to;
        if (const auto ref = text_of(s, "$dynamicRef"); ref && !s.contains("$ref")) {
            const std::string name = ref->find('#') == ref->npos ? "" : ref->substr(ref->find('#') + 1);
            const auto many = dynamic_.find(name);
            const auto to = target(*ref, base);
            if (to && (many == dynamic_.end() || many->second == 1)) replace(s, "$dynamicRef", *to);
        }
        if (const auto ref = text_of(s, "$recursiveRef"); ref && recursive_ == 0 && !s.contains("$ref"))
            if (const auto to = target(*ref, base)) replace(s, "$recursiveRef", *to);
        each_subschema(s, [&](Json& part, const std::string&) { rewrite(part, base); });
    }

    static void replace(Json& s, const char* keyword, const std::string& to) {
        s.erase(keyword);
        s["$ref"] = "#" + to;
    }

    Json& root_;
    bool old_ids_ = false, ref_alone_ = false;
    std::map<std::string, std::string> resources_, places_; // pointers by URI, the latter with a fragment
    std::map<std::string, int> dynamic_;                    // how many anchors have the name
    int recursive_ = 0;
};

}  // namespace

void localise_references(Json& root) {
    if (root.is_object()) References(root).localise();
}

}  // namespace patchbay::grammar
