#include "base/exact_numbers.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/refusals.hpp"

namespace patchbay {
namespace {

struct Digits { // without zeros at either end; none: 0
    std::string digits;
    long long exponent = 0; // power of ten of the last digit
    bool operator==(const Digits&) const = default;
};

Digits digits_of(std::string_view text) {
    Digits out;
    bool fraction = false;
    size_t i = 0;
    for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
        if (text[i] == '.')
            fraction = true;
        else if (text[i] != '-')
            out.digits += text[i], out.exponent -= fraction;
    }
    if (i < text.size()) {
        if (text[++i] == '+') ++i;
        long long given = 0;
        std::from_chars(text.data() + i, text.data() + text.size(), given); // the reader has refused huge ones
        out.exponent += given;
    }
    out.digits.erase(0, out.digits.find_first_not_of('0'));
    while (!out.digits.empty() && out.digits.back() == '0') out.digits.pop_back(), out.exponent += 1;
    if (out.digits.empty()) out.exponent = 0;
    return out;
}

class ExactNumbers : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit ExactNumbers(const std::vector<std::string>& within) : within_(within) {}
    std::string refused;

    bool number_float(double value, const std::string& text) override {
        if (!within_.empty() && (depth_ == 0 || std::ranges::find(within_, outermost_) == within_.end())) return true;
        if (digits_of(text) == digits_of(nlohmann::json(value).dump())) return true;
        refused = (within_.empty() ? "" : outermost_ + ": ") + "'" + member_.substr(0, 40) +
                  "': " + text.substr(0, 60) +
                  " has more digits than are kept, expected a whole number of 64 bits or at most 15 digits";
        return false;
    }
    bool key(std::string& name) override {
        member_ = name;
        if (depth_ == 1) outermost_ = name;
        return true;
    }
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(int64_t) override { return true; }
    bool number_unsigned(uint64_t) override { return true; }
    bool string(std::string&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(size_t) override { return nests(1); }
    bool end_object() override { return nests(-1); }
    bool start_array(size_t) override { return nests(1); }
    bool end_array() override { return nests(-1); }
    bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  private:
    bool nests(int by) {
        depth_ += by;
        return true;
    }

    const std::vector<std::string>& within_;
    std::string member_, outermost_; // that were read last
    int depth_ = 0;
};

}  // namespace

Result<> check_exact_numbers(std::string_view json, const std::vector<std::string>& within) {
    ExactNumbers reader(within);
    (void)nlohmann::json::sax_parse(json, &reader);
    if (!reader.refused.empty()) return invalid(reader.refused);
    return {};
}

}  // namespace patchbay
