#include "base/ordered_json.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json_file.hpp"

namespace patchbay {
namespace {

using Json = nlohmann::ordered_json;

class Builder { // what the library calls while it reads; each function says whether to go on
  public:
    explicit Builder(const OrderedJsonLimits& limits) : limits_(limits) {}

    bool null() { return add(nullptr); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(Json::number_integer_t value) { return add(value); }
    bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
    bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
    bool string(std::string& value) { return add(std::move(value)); }
    bool binary(Json::binary_t&) { return refuse("has binary data"); } // not of JSON
    bool start_object(size_t) { return open(Json::object()); }
    bool start_array(size_t) { return open(Json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(std::string& name) {
        Level& level = levels_.back();
        auto& members = level.value->get_ref<Json::object_t&>();
        if (const size_t known = level.find(members, name); known < members.size()) {
            next_ = &(members.begin() + static_cast<ptrdiff_t>(known))->second;
            return true;
        }
        if (members.size() == limits_.members)
            return refuse("has an object of more than " + std::to_string(limits_.members) + " members");
        level.remember(members, name);
        members.emplace_back(std::move(name), nullptr);
        next_ = &members.back().second;
        return true;
    }

    bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
        return refuse("is not JSON: " + json_reason(error));
    }

    Result<Json> result() {
        if (!refused_.empty()) return fail(StatusCode::kInvalid, std::move(refused_));
        return std::move(root_);
    }

  private:
    struct Level { // a list or an object that is open
        static constexpr size_t kFew = 16; // members that are looked through

        size_t find(const Json::object_t& members, const std::string& name) const { // their number: not there
            if (places.empty()) {
                const auto same = [&](const auto& member) { return member.first == name; };
                return static_cast<size_t>(std::ranges::find_if(members, same) - members.begin());
            }
            const auto known = places.find(name);
            return known == places.end() ? members.size() : known->second;
        }
        void remember(const Json::object_t& members, const std::string& name) { // as the next one
            if (members.size() < kFew) return;
            if (places.empty())
                for (const auto& member : members) places.emplace(member.first, places.size());
            places.emplace(name, members.size());
        }

        Json* value;
        std::map<std::string, size_t> places{}; // of many members: a tree, which no names can slow down
    };

    bool refuse(std::string why) {
        refused_ = std::move(why);
        return false;
    }
    Json* place(Json value) {
        if (levels_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        Json& around = *levels_.back().value;
        if (around.is_array()) {
            around.push_back(std::move(value));
            return &around.back();
        }
        *next_ = std::move(value);
        return next_;
    }
    bool add(Json value) {
        place(std::move(value));
        return true;
    }
    bool open(Json empty) {
        if (levels_.size() == limits_.depth)
            return refuse("nests lists and objects more than " + std::to_string(limits_.depth) + " deep");
        Json* const at = place(std::move(empty));
        levels_.push_back({at});
        return true;
    }
    bool close() {
        levels_.pop_back();
        return true;
    }

    const OrderedJsonLimits& limits_;
    Json root_;
    std::vector<Level> levels_;
    Json* next_ = nullptr; // the member whose value is read
    std::string refused_;
};

}  // namespace

Result<Json> parse_ordered_json(std::string_view text, const OrderedJsonLimits& limits) {
    Builder builder(limits);
    Json::sax_parse(text.begin(), text.end(), &builder);
    return builder.result();
}

}  // namespace patchbay
