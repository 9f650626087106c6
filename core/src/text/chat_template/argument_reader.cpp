#include <string>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

const Value* ArgumentReader::find(size_t place, std::string_view name) const {
    if (place < given_.positional.size()) return &given_.positional[place];
    for (const auto& [given, value] : given_.named)
        if (given == name) return &value;
    return nullptr;
}

const Value& ArgumentReader::need(size_t place, std::string_view name) const {
    if (const Value* found = find(place, name)) return *found;
    refuse(std::string(function_) + " lacks its argument '" + std::string(name) + "'");
}

const std::string& ArgumentReader::text(size_t place, std::string_view name) const {
    const Value& v = defined(need(place, name));
    if (!v.string())
        refuse(std::string(function_) + ": " + std::string(name) + " is a string, got " + type_name(v));
    return *v.string();
}

int64_t ArgumentReader::integer(size_t place, std::string_view name, int64_t otherwise) const {
    const Value* found = find(place, name);
    return found && !found->is_none() ? whole_number(*found, std::string(function_) + ": " + std::string(name))
                                      : otherwise;
}

bool ArgumentReader::flag(size_t place, std::string_view name, bool otherwise) const {
    const Value* found = find(place, name);
    return found ? is_true(*found) : otherwise;
}

}  // namespace patchbay::text::chat
