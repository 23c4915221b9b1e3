#include "eval/passkey_scores.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/error.h"
#include "eval/greedy_decoding.h"
#include "eval/log_likelihoods.h"
#include "eval/retrieval_scores.h"

namespace bamtrain {

namespace {

int64_t asked_of(const Passkey& passkey) {
  return passkey.options().digits - passkey.options().prefix_digits;
}

Symbols with_given(const PasskeyPrompt& p) {
  Symbols ids = p.prompt;
  ids.insert(ids.end(), p.answer.begin(), p.answer.begin() + p.given);
  return ids;
}

/// Number of correct requested digits of each prompt, with teacher forcing.
std::vector<int64_t> right_behind_right_ones(const std::vector<PasskeyPrompt>& prompts,
                                             int64_t length, const ScoredModel& model,
                                             std::optional<int64_t> document_start,
                                             const TaskShare& share, const TaskProgress& progress) {
  std::vector<EncodedRequest> requests;
  for (const PasskeyPrompt& p : prompts) {
    EncodedRequest& r = requests.emplace_back(EncodedRequest{with_given(p), 0});
    r.begin = std::ssize(r.ids);
    r.ids.insert(r.ids.end(), p.answer.begin() + p.given, p.answer.end());
  }
  std::vector<int64_t> right;
  for (const LogLikelihood& l : log_likelihoods(requests, model, document_start, share, progress)) {
    if (!std::isfinite(l.logprob)) {
      throw Error(ExitCode::nonfinite, fmt::format("passkey at length {}", length),
                  "finite log-likelihoods of its digits",
                  std::isnan(l.logprob) ? "NaN" : "infinity",
                  "try --precision fp32, then an earlier checkpoint");
    }
    right.push_back(l.right);
  }
  return right;
}

std::vector<int64_t> right_written(const std::vector<PasskeyPrompt>& prompts, int64_t asked,
                                   const ScoredModel& model, std::optional<int64_t> document_start,
                                   const TaskShare& share, const TaskProgress& progress) {
  std::vector<Symbols> read;
  for (const PasskeyPrompt& p : prompts) read.push_back(with_given(p));
  const GreedyDecodingLimits limits = {asked, model.config.outputs(), {}};
  const std::vector<Symbols> written =
      greedy_decode(read, limits, model, document_start, share, progress);
  std::vector<int64_t> right;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto digits = prompts[i].answer.end() - asked;
    int64_t count = 0;
    for (int64_t n = 0; n < asked; ++n) count += written[i][static_cast<size_t>(n)] == digits[n];
    right.push_back(count);
  }
  return right;
}

}  // namespace

std::vector<PasskeyPrompt> passkey_prompts(const Passkey& passkey, const PasskeyRequest& request,
                                           int64_t length) {
  const int64_t fillers = passkey.fillers(length);
  const char* const set = request.set == TaskSet::test ? "eval" : "select";
  const Rng stream(request.seed, fmt::format("{}.passkey.{}", set, length));
  std::vector<PasskeyPrompt> prompts;
  for (int64_t i = 0; i < request.depths * request.samples; ++i) {
    Draws draws(stream, i);
    const int64_t place = passkey_place(fillers, i / request.samples, request.depths);
    prompts.push_back(passkey.prompt(passkey.draw_key(&draws), fillers, place));
  }
  return prompts;
}

int64_t passkey_text(const Passkey& passkey, int64_t length) {
  return passkey.fixed() + passkey.fillers(length) * passkey.filler() + passkey.options().digits;
}

nlohmann::ordered_json score_passkey(const Passkey& passkey, const PasskeyRequest& request,
                                     int64_t length, const ScoredModel& model,
                                     std::optional<int64_t> document_start, const TaskShare& share,
                                     const TaskProgress& progress) {
  require(request.samples >= 1, "prompts");
  const std::vector<PasskeyPrompt> prompts = passkey_prompts(passkey, request, length);
  const int64_t asked = asked_of(passkey);
  const std::vector<int64_t> right =
      request.generate
          ? right_written(prompts, asked, model, document_start, share, progress)
          : right_behind_right_ones(prompts, length, model, document_start, share, progress);
  PromptScores exact = {"exact_match", {}}, digits = {"accuracy", {}};
  for (const int64_t n : right) {
    exact.of_prompts.push_back(n == asked ? 1 : 0);
    digits.of_prompts.push_back(static_cast<double>(n) / static_cast<double>(asked));
  }
  nlohmann::ordered_json row = {{"tokens", std::ssize(prompts[0].prompt)}};
  row.update(retrieval_row({exact, digits}, request.depths));
  return row;
}

int64_t passkey_scores_bytes(const Passkey& passkey, const PasskeyRequest& request, int64_t length,
                             const ScoredModel& model) {
  const int64_t prompts = request.depths * request.samples, text = passkey_text(passkey, length);
  const int64_t asked = asked_of(passkey);
  const int64_t reading = request.generate
                              ? greedy_decode_bytes(text + 1 - asked, prompts, asked, model)
                              : log_likelihoods_bytes(text + 1, prompts, model);
  return checked_add(reading, texts_bytes(2 * prompts, text), "samples");
}

}  // namespace bamtrain
