#include "grammar/schema_resolver.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "base/refusals.hpp"

namespace patchbay::grammar {

SchemaSource SchemaResolver::root() const {
    SchemaSource out{&root_, "#"};
    if (!resources_.empty()) out.dynamic = &*dynamic_scopes_.emplace().first;
    return out;
}

// The anchors of a resource hold where no outer one has any of their names.
Result<const DynamicAnchors*> SchemaResolver::within(const DynamicAnchors* outer, const SchemaSource& source,
                                                     const Json* resource) const {
    const auto own = resources_.find(resource);
    if (!outer || own == resources_.end()) return outer;
    DynamicAnchors both = *outer;
    both.insert(own->second.begin(), own->second.end());
    if (both.size() == outer->size()) return outer;
    const size_t size = both.size();
    const auto [at, fresh] = dynamic_scopes_.insert(std::move(both));
    if (fresh && size > anchors_left_)
        return invalid(source.path + ": too many $dynamicAnchor hold in too many ways");
    if (fresh) anchors_left_ -= size;
    return &*at;
}

Result<SchemaSource> SchemaResolver::entered(SchemaSource source) const {
    const Json& s = *source.schema;
    if (source.entered || !s.is_object()) return source;
    if (source.dynamic && s.contains("$id") && !resources_.contains(&s))
        return unsupported(source.path + ": a schema with an $id under 'not', 'oneOf' or 'if' is not supported beside "
                                         "dynamic references");
    PB_TRY(source.dynamic, within(source.dynamic, source, &s));
    if (s.contains("unevaluatedProperties") || s.contains("unevaluatedItems"))
        source.scope = &scopes_.try_emplace({&s, source.scope}, UnevaluatedScope{&s, source.scope}).first->second;
    return source;
}

Result<SchemaSource> SchemaResolver::resolve(const SchemaSource& source) const {
    auto known = resolved_.find(source.schema);
    if (known == resolved_.end()) {
        PB_TRY(Target target, look_up(source, "$ref"));
        known = resolved_.emplace(source.schema, std::move(target)).first;
    }
    SchemaSource out = source.placed(known->second.source);
    PB_TRY(out.dynamic, within(source.dynamic, source, known->second.resource));
    return out;
}

// The outermost resource on the way here that has the name decides.
Result<SchemaSource> SchemaResolver::resolve_dynamic(const SchemaSource& source, const char* keyword) const {
    PB_TRY(Target target, look_up(source, keyword));
    if (!source.dynamic) return unsupported(source.path + ": keyword '" + keyword + "' is not supported here");
    const Json& first = *target.source.schema;
    std::string name;
    if (std::string_view(keyword) == "$dynamicRef" && first.is_object() && first.contains("$dynamicAnchor") &&
        first["$dynamicAnchor"].is_string())
        name = first["$dynamicAnchor"].get<std::string>();
    if (const auto at = source.dynamic->find(name); at != source.dynamic->end()) {
        target.source.schema = at->second.schema;
        target.resource = at->second.resource;
    }
    SchemaSource out = source.placed(target.source);
    PB_TRY(out.dynamic, within(source.dynamic, source, target.resource));
    return out;
}

Result<SchemaResolver::Target> SchemaResolver::look_up(const SchemaSource& source, const char* keyword) const {
    const Json& ref = (*source.schema)[keyword];
    const auto refuse = [&](const std::string& why) {
        return invalid(source.path + "/" + keyword + ": " + ref.dump().substr(0, 80) + " " + why);
    };
    if (!ref.is_string()) return refuse("is not a string");
    const auto& text = ref.get_ref<const std::string&>();
    if (text != "#" && !text.starts_with("#/"))
        return unsupported(refuse("is not supported (only places in the schema itself)").text);
    Target out{{&root_, "#"}, &root_};
    for (size_t at = 1; at < text.size();) {
        const size_t end = std::min(text.find('/', at + 1), text.size());
        std::string name;
        for (size_t i = at + 1; i < end; ++i) {
            if (text[i] == '~' && i + 1 < end && (text[i + 1] == '0' || text[i + 1] == '1'))
                name += text[++i] == '0' ? '~' : '/';
            else if (text[i] == '%' && i + 2 < end && std::isxdigit(static_cast<uint8_t>(text[i + 1])) &&
                     std::isxdigit(static_cast<uint8_t>(text[i + 2])))
                name += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)), i += 2;
            else
                name += text[i];
        }
        const Json& here = *out.source.schema;
        const Json* next = nullptr;
        if (here.is_object() && here.contains(name)) next = &here[name];
        if (here.is_array() && name.size() < 6 && !name.empty() && name.find_first_not_of("0123456789") == name.npos &&
            std::stoul(name) < here.size())
            next = &here[std::stoul(name)];
        if (!next) return refuse("is not in the schema");
        out.source = {next, text.substr(0, std::min<size_t>(end, 500))};
        if (resources_.contains(next)) out.resource = next;
        at = end;
    }
    return out;
}

const Json& SchemaResolver::followed(const Json& schema) const {
    const Json* at = &schema;
    for (int i = 0; i < kMaxReferences && at->is_object() && at->contains("$ref"); ++i) {
        const auto target = resolve({at, "#"});
        if (!target) break;
        at = target->schema;
    }
    return *at;
}

}  // namespace patchbay::grammar
