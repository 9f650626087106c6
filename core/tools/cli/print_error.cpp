#include "cli/print_error.hpp"

#include <spdlog/pattern_formatter.h>

#include <iostream>

#include "base/printable.hpp"
#include "cli/command.hpp"

namespace patchbay::cli {
namespace {

class SafeText final : public spdlog::custom_flag_formatter {
  public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
        const std::string text = printable_message({message.payload.data(), message.payload.size()});
        out.append(text.data(), text.data() + text.size());
    }
    std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<SafeText>(); }
};

}  // namespace

void print_error(std::string_view head, std::string_view text) {
    if (!head.empty()) std::cerr << head << ": ";
    std::cerr << printable_message(text) << '\n';
}

void print_faults(std::string_view head, std::string_view text) {
    if (!head.empty()) std::cerr << head << ": ";
    std::cerr << printable_lines(text) << '\n';
}

int exit_code(std::string_view head, const Result<>& done, PrintText* print) {
    if (done) return kOk;
    print(head, done.error());
    return kFailed;
}

std::unique_ptr<spdlog::formatter> log_formatter() {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<SafeText>('*').set_pattern("%^%l%$: %*");
    return formatter;
}

}  // namespace patchbay::cli
