// The fields of a JSON object of a request, read by name and type. The first fault is kept, and nothing is read after
// it; null counts as absent, unknown fields are left alone, as vLLM does. Used by what reads requests.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace patchbay::serve {

using Json = nlohmann::ordered_json;

struct Refusal {
    Failure failure;
    std::string param; // the field at fault
};

class Fields {
  public:
    // prefix: of nested objects, "stream_options."; object: outlives this.
    explicit Fields(const Json& object, std::string prefix = {}) : object_(object), prefix_(std::move(prefix)) {}

    const Json* find(std::string_view name) const; // null: absent, or null
    bool has(std::string_view name) const { return find(name); }

    // Reads into `out` where the field is there: bool, integers (checked for the range of T), float and double,
    // std::string, std::optional and std::vector of these.
    template <class T>
    void read(std::string_view name, T& out) {
        const Json* value = refusal_ ? nullptr : find(name);
        if (value) take(std::string(name), *value, out);
    }
    // A nested object; null: absent, or at fault.
    const Json* object(std::string_view name);
    // Refuses a field of another name: for objects in which an unknown field is most likely a misspelt one.
    void expect_only(std::span<const std::string> names);

    void refuse(std::string_view name, std::string text, StatusCode code = StatusCode::kInvalid);
    void keep(std::optional<Refusal> nested) { // of a nested object
        if (!refusal_) refusal_ = std::move(nested);
    }
    const std::optional<Refusal>& refusal() const { return refusal_; }

  private:
    void wrong_type(const std::string& name, const Json& got, std::string_view expected);
    void take(const std::string& name, const Json&, bool&);
    void take(const std::string& name, const Json&, std::string&);
    void take(const std::string& name, const Json&, double&);
    bool take_integer(const std::string& name, const Json&, int64_t low, uint64_t high); // whether it is one
    void take(const std::string& name, const Json& value, float& out) {
        double wide = 0;
        take(name, value, wide);
        if (!refusal_) out = static_cast<float>(wide);
    }
    template <std::integral T>
    void take(const std::string& name, const Json& value, T& out) {
        using Limits = std::numeric_limits<T>;
        if (take_integer(name, value, static_cast<int64_t>(Limits::min()), static_cast<uint64_t>(Limits::max())))
            out = value.get<T>();
    }
    template <class T>
    void take(const std::string& name, const Json& value, std::optional<T>& out) {
        T read{};
        take(name, value, read);
        if (!refusal_) out = std::move(read);
    }
    template <class T>
    void take(const std::string& name, const Json& value, std::vector<T>& out) {
        if (!value.is_array()) return wrong_type(name, value, "a list");
        out.clear();
        for (size_t i = 0; i < value.size() && !refusal_; ++i) {
            T item{};
            take(name + "[" + std::to_string(i) + "]", value[i], item);
            out.push_back(std::move(item));
        }
    }

    const Json& object_;
    const std::string prefix_;
    std::optional<Refusal> refusal_;
};

// A request's body: an object, with the limits of parse_ordered_json().
Result<Json> parse_body(const std::string&);

}  // namespace patchbay::serve
