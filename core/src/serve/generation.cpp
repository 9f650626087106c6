#include "serve/generation.hpp"

#include <string>

#include "serve/error_reply.hpp"

namespace patchbay::serve {
namespace {

std::unique_ptr<Reply> reply_for(const GenerationRequest& request, const ServedModel& model, std::string id,
                                 int64_t created) {
    switch (request.kind) {
        case ReplyKind::kChat: return chat_reply(request, model, std::move(id), created);
        case ReplyKind::kEmbedding: return embedding_reply(request, model, std::move(id), created);
        case ReplyKind::kCompletion: break;
    }
    return completion_reply(request, model, std::move(id), created);
}

}  // namespace

Generation::Generation(Context context, std::shared_ptr<Exchange> exchange, GenerationRequest request, std::string id,
                       int64_t created, std::shared_ptr<void> permit)
    : context_(std::move(context)), exchange_(std::move(exchange)), request_(std::move(request)),
      reply_(reply_for(request_, *context_.model, std::move(id), created)),
      choices_(request_.prompts.size() * request_.sampling.n), permit_(std::move(permit)) {}

Generation::~Generation() {
    if (!over_) abort();
}

void Generation::start(uint32_t tenant) {
    const auto self = shared_from_this(); // the exchange keeps it from here on
    for (const Prompt& prompt : request_.prompts) {
        engine::Request request;
        request.prompt = prompt.tokens;
        request.sampling = request_.sampling;
        request.grammar = request_.grammar;
        request.token_rules = request_.token_rules;
        if (request_.kind == ReplyKind::kEmbedding) request.pooling = request_.embedding.pooling;
        request.priority = request_.priority;
        request.deadline_ns = uint64_t{1'000'000} * request_.deadline_ms; // after its arrival, as submit() says
        request.cache_salt = request_.cache_salt;
        request.cache_per_tenant = request_.cache_per_key;
        request.tenant = tenant;
        auto stream = context_.engine.submit(std::move(request), [weak = weak_from_this()] {
            if (const auto live = weak.lock()) live->wake();
        });
        if (!stream) return fail_with(stream.failure());
        streams_.push_back(*std::move(stream));
        usage_.prompt_tokens += prompt.tokens.size();
    }
    exchange_->set_callbacks([self] { self->pump(); },
                             [self] {
                                 self->abort();
                                 self->release();
                             });
    if (!over_) pump(); // what came before the callbacks were there
}

void Generation::wake() {
    if (woken_.exchange(true)) return;
    exchange_->post([self = shared_from_this()] {
        self->woken_ = false;
        self->pump();
    });
}

void Generation::pump() {
    if (over_ || (begun_ && exchange_->busy())) return; // deltas merge until what was written is sent
    events_.clear();
    for (size_t i = 0; i < streams_.size(); ++i)
        if (!take(i)) return;
    if (!events_.empty()) {
        begin();
        exchange_->write(events_);
    }
    if (ended_ == choices_.size()) finish();
}

bool Generation::take(size_t stream) {
    while (auto delta = streams_[stream]->try_next()) {
        if (delta->finish == engine::FinishReason::kError)
            return fail_with(fail(delta->error_code, delta->stop_reason)), false;
        add(static_cast<uint32_t>(stream * request_.sampling.n + delta->index), *delta);
    }
    if (const auto failure = streams_[stream]->failure()) return fail_with(*failure), false;
    return true;
}

void Generation::add(uint32_t index, const engine::RequestOutput& delta) {
    Choice& choice = choices_[index];
    choice.finish = delta.finish;
    const uint64_t made = request_.echo_only ? 0 : delta.tokens.size();
    usage_.completion_tokens += made;
    choice.usage.completion_tokens += made;
    choice.usage.prompt_tokens = request_.prompts[index / request_.sampling.n].tokens.size();
    if (delta.finish != engine::FinishReason::kNone) {
        ended_ += 1;
        choice.stop_reason = delta.stop_reason;
        choice.stop_token = delta.stop_token;
        if (delta.index == 0) usage_.cached_tokens += delta.cached_tokens;
        choice.usage.cached_tokens = delta.cached_tokens;
    }
    choice.prompt_logprobs.insert(choice.prompt_logprobs.end(), delta.prompt_logprobs.begin(),
                                  delta.prompt_logprobs.end());
    if (request_.stream) return reply_->add_events(events_, index, choices_, delta);
    choice.text += delta.text;
    choice.embedding.insert(choice.embedding.end(), delta.embedding.begin(), delta.embedding.end());
    choice.tokens.insert(choice.tokens.end(), delta.tokens.begin(), delta.tokens.end());
    choice.logprobs.insert(choice.logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
}

void Generation::begin() {
    if (begun_) return;
    begun_ = true;
    const HttpResponse head{200, "", "text/event-stream; charset=utf-8", {{"Cache-Control", "no-cache"}}};
    context_.answered(head);
    open_stream_ = context_.metrics.open_stream();
    exchange_->begin_stream(head);
}

void Generation::finish() {
    over_ = true;
    if (request_.stream) {
        if (request_.include_usage) exchange_->write(reply_->usage_event(usage_));
        exchange_->write("data: [DONE]\n\n");
        exchange_->end_stream();
        return release();
    }
    // Log-probabilities may take long to write, which is not done on a thread that serves connections.
    if (!request_.logprobs && !request_.sampling.prompt_logprobs)
        return respond({200, reply_->whole(choices_, usage_)});
    exchange_->offload([self = shared_from_this()] { // nothing is added to the choices any more
        const auto text = std::make_shared<std::string>(self->reply_->whole(self->choices_, self->usage_));
        self->exchange_->post([self, text] {
            if (self->permit_) self->respond({200, std::move(*text)}); // else the client has gone
        });
    });
}

void Generation::fail_with(const Failure& failure) {
    if (over_) return;
    over_ = true;
    abort();
    const std::string field = http_status(failure.code) == 400 ? field_named_in(failure.text) : "";
    if (!begun_) return respond(error_reply(failure, field));
    exchange_->write(events_ + "data: " + error_json(failure, field) + "\n\ndata: [DONE]\n\n");
    exchange_->end_stream();
    release();
}

void Generation::abort() {
    over_ = true;
    for (const auto& stream : streams_) context_.engine.abort(stream); // of those that have ended: nothing
}

void Generation::respond(HttpResponse response) {
    context_.answered(response);
    exchange_->respond(std::move(response));
    release();
}

void Generation::release() {
    permit_.reset();
    open_stream_.reset();
}

}  // namespace patchbay::serve
