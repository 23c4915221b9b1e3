#include "report/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/join.h"
#include "report/axis.h"
#include "report/seeds.h"

namespace bamtrain {

namespace {

using Lengths = std::vector<LengthPerplexity> PerplexityResult::*;

struct Extrapolation {
  int64_t trained = 0, longest = 0;
  double change = 0;  // of perplexity; not finite if the perplexity at the longest length is not
};

/// Of the group's mean losses; nullopt unless every run has the training length and a longer one.
std::optional<Extrapolation> extrapolation_of(const Runs& runs, const SeedGroup& group,
                                              Lengths lengths) {
  std::set<int64_t> trained;
  std::map<int64_t, std::vector<double>> losses;  // by length
  for (const size_t n : group.runs) {
    const auto& result = runs[n].record->perplexity;
    if (!result) return std::nullopt;
    trained.insert(result->training_length);
    for (const LengthPerplexity& p : (*result).*lengths) {
      losses[p.length].push_back(std::log(p.perplexity));
    }
  }
  std::erase_if(losses, [&](const auto& of) { return of.second.size() != group.runs.size(); });
  const int64_t T = *trained.begin();
  if (trained.size() > 1 || T <= 0 || losses.count(T) == 0) return std::nullopt;
  const int64_t longest = losses.rbegin()->first;
  const auto sum = [&](int64_t length) {
    double out = 0;
    for (const double loss : losses[length]) out += loss;
    return out;
  };
  if (longest <= T || !std::isfinite(sum(T))) return std::nullopt;
  const auto seeds = static_cast<double>(group.runs.size());
  return Extrapolation{T, longest, std::exp((sum(longest) - sum(T)) / seeds) - 1};
}

/// The protocol of the headline; null if no run has the lengths.
Lengths protocol_of(const Runs& runs, const std::vector<SeedGroup>& groups) {
  const auto has = [&](const SeedGroup& group, Lengths lengths) {
    return extrapolation_of(runs, group, lengths).has_value();
  };
  const bool last = std::all_of(groups.begin(), groups.end(), [&](const SeedGroup& g) {
    return !runs[g.runs[0]].record->perplexity || has(g, &PerplexityResult::last);
  });
  for (const Lengths lengths : {&PerplexityResult::last, &PerplexityResult::windows}) {
    if (lengths == &PerplexityResult::last && !last) continue;
    const bool any = std::any_of(groups.begin(), groups.end(),
                                 [&](const SeedGroup& g) { return has(g, lengths); });
    if (any) return lengths;
  }
  return nullptr;
}

/// "+55 %", "-0.4 %", "+1,234 %".
std::string change_text(double change) {
  const double percent = 100 * change;
  if (!std::isfinite(percent)) return "not finite";
  if (std::abs(percent) < 0.05) return "0.0\u00a0%";
  if (std::abs(percent) < 10) return fmt::format("{:+.1f}\u00a0%", percent);
  const std::string sign = percent > 0 ? "+" : "";
  const bool large = percent >= 1e6;
  return sign + number_text(large ? percent : std::round(percent), large ? 3 : 15) + "\u00a0%";
}

/// What one run, or one group of seeds, has to show.
struct Claim {
  enum class Kind { change, validation, loss, nothing } kind = Kind::nothing;
  std::string name, text;
  std::string at;  // the length or the step; said again only where it differs
  double value = 0;
};

/// The last loss of one kind of the group: the mean of its runs, if all have it at one step.
std::optional<Claim> loss_claim(const Runs& runs, const SeedGroup& group, Claim::Kind kind) {
  double sum = 0;
  std::set<int64_t> steps;
  for (const size_t n : group.runs) {
    const std::vector<HistoryLine>& lines = runs[n].record->metrics.lines();
    const auto value = [kind](const HistoryLine& m) {
      return kind == Claim::Kind::validation ? m.validation_loss : m.smoothed_loss;
    };
    const auto at = std::find_if(lines.rbegin(), lines.rend(),
                                 [&](const HistoryLine& m) { return std::isfinite(value(m)); });
    if (at == lines.rend()) return std::nullopt;
    sum += value(*at);
    steps.insert(at->step);
  }
  if (steps.size() > 1) return std::nullopt;
  const double mean = sum / static_cast<double>(group.runs.size());
  const char* const what = kind == Claim::Kind::validation ? "validation loss" : "loss";
  return Claim{kind, group.name, fmt::format("{} {:.4f}", what, mean),
               "at step " + number_text(static_cast<double>(*steps.begin()), 15), mean};
}

std::string seeds_name(const SeedGroup& group) {
  return group.runs.size() == 1 ? group.name
                                : fmt::format("{} ({} seeds)", group.name, group.runs.size());
}

void add_claims(const Runs& runs, SeedGroup group, Lengths lengths, std::vector<Claim>* out) {
  const bool single = group.runs.size() == 1;
  group.name = seeds_name(group);
  if (lengths != nullptr) {
    if (const auto e = extrapolation_of(runs, group, lengths)) {
      const double times = static_cast<double>(e->longest) / static_cast<double>(e->trained);
      out->push_back({Claim::Kind::change, group.name, change_text(e->change),
                      "at " + number_text(times, 3) + "x", e->change});
      return;
    }
  }
  for (const Claim::Kind kind : {Claim::Kind::validation, Claim::Kind::loss}) {
    if (const auto claim = loss_claim(runs, group, kind)) {
      out->push_back(*claim);
      return;
    }
  }
  if (single) {
    out->push_back({Claim::Kind::nothing, group.name, "no step logged yet", "", 0});
    return;
  }
  for (const size_t n : group.runs) add_claims(runs, {runs[n].name, {n}}, lengths, out);
}

/// The lowest and the highest of the claims of the first kind that there is.
std::vector<Claim> lowest_and_highest(std::vector<Claim> claims) {
  const auto first = std::min_element(
      claims.begin(), claims.end(), [](const Claim& a, const Claim& b) { return a.kind < b.kind; });
  const Claim::Kind kind = first->kind;
  std::erase_if(claims, [&](const Claim& p) { return p.kind != kind || !std::isfinite(p.value); });
  if (claims.empty()) return {};
  const auto [low, high] =
      std::minmax_element(claims.begin(), claims.end(),
                          [](const Claim& a, const Claim& b) { return a.value < b.value; });
  if (low == high) return {*low};
  return {*low, *high};
}

}  // namespace

std::string headline(const Runs& runs) {
  const std::vector<SeedGroup> groups = seed_groups(runs);
  const Lengths lengths = protocol_of(runs, groups);
  std::vector<Claim> claims;
  for (const SeedGroup& group : groups) add_claims(runs, group, lengths, &claims);
  const size_t count = claims.size();
  const bool many = count > kMostNamed;
  if (many) claims = lowest_and_highest(claims);
  std::vector<std::string> words;
  for (size_t i = 0; i < claims.size(); ++i) {
    const bool same = i > 0 && claims[i].at == claims[i - 1].at;
    words.push_back(claims[i].name + ": " + claims[i].text +
                    (same || claims[i].at.empty() ? "" : " " + claims[i].at));
  }
  if (!many) return join(words, "; ");
  if (words.size() < 2) {  // the others have none
    return fmt::format("{} runs{}{}", count, words.empty() ? "" : "; ", join(words));
  }
  return fmt::format("lowest and highest of {}: {}", count, join(words, "; "));
}

std::string headline_note(const Runs& runs) {
  const std::vector<SeedGroup> groups = seed_groups(runs);
  const Lengths lengths = protocol_of(runs, groups);
  if (lengths == nullptr) return "";
  std::set<int64_t> trained, tokens;
  bool seeds = false;
  for (const SeedGroup& group : groups) {
    const auto e = extrapolation_of(runs, group, lengths);
    if (!e) continue;
    trained.insert(e->trained);
    tokens.insert(runs[group.runs[0]].record->perplexity->last_tokens);
    seeds |= group.runs.size() > 1;
  }
  std::string out =
      "Perplexity at the longest measured length, relative to that at the training length";
  if (trained.size() == 1) {
    out += fmt::format(" of {}", number_text(static_cast<double>(*trained.begin()), 15));
  }
  const bool last = lengths == &PerplexityResult::last;
  out += !last               ? ", over all positions of each window."
         : tokens.size() > 1 ? ", over each window's last tokens."
                             : fmt::format(", over each window's last {} tokens.", *tokens.begin());
  return seeds ? out + " Seeds: means of losses." : out;
}

}  // namespace bamtrain
