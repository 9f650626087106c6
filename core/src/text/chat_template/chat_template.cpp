#include "text/chat_template/chat_template.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/date_text.hpp"
#include "base/printable.hpp"
#include "text/chat_template/content_form.hpp"
#include "text/chat_template/dates.hpp"
#include "text/chat_template/evaluator.hpp"
#include "text/chat_template/none_content.hpp"
#include "text/chat_template/parser.hpp"

namespace patchbay::text {
namespace {

Failure failure_of(const std::string& name, const chat::TemplateError& error) {
    return fail(StatusCode::kInvalid,
                name + ":" + std::to_string(error.line) + ": " + printable(error.text, 1000));
}

}  // namespace

struct ChatTemplate::Parsed {
    std::string name;
    chat::Block block;
    bool takes_parts, tests_content_for_none;
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string name) {
    constexpr size_t kMaxBytes = 4u << 20;
    if (source.size() > kMaxBytes)
        return fail(StatusCode::kInvalid, name + ": " + std::to_string(source.size()) +
                                              " bytes, expected at most " + std::to_string(kMaxBytes));
    try {
        ChatTemplate out;
        chat::Block block = chat::parse_template(source);
        const bool in_parts = chat::takes_parts(block), tests_none = chat::tests_content_for_none(block);
        out.parsed_ = std::make_shared<const Parsed>(Parsed{name, std::move(block), in_parts, tests_none});
        return out;
    } catch (const chat::TemplateError& error) {
        return failure_of(name, error);
    }
}

bool ChatTemplate::takes_parts() const { return parsed_->takes_parts; }
bool ChatTemplate::tests_content_for_none() const { return parsed_->tests_content_for_none; }

Result<std::string> ChatTemplate::render(const nlohmann::ordered_json& variables, const ChatTemplateLimits& limits,
                                         std::function<std::string(const std::string&)> date) const {
    if (!date)
        date = [](const std::string& format) {
            if (format.size() > 1000) chat::refuse("strftime_now: a format has at most 1000 bytes");
            return chat::local_date(unix_now_us(), format);
        };
    try {
        chat::Budget budget(limits.steps, limits.made_bytes);
        chat::Evaluator evaluator(budget, std::move(date), limits.output_bytes);
        return evaluator.run(parsed_->block, chat::from_json(variables));
    } catch (const chat::TemplateError& error) {
        return failure_of(parsed_->name, error);
    }
}

}  // namespace patchbay::text
