#include "report/seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace bamtrain {

namespace {

/// Whether their evaluations, if both have one, are of the same kind.
bool same_evaluation(const ReportedRun& a, const ReportedRun& b) {
  const auto &p = a.record->perplexity, &q = b.record->perplexity;
  if (!p || !q) return true;
  return p->step == q->step && p->data_fingerprint == q->data_fingerprint &&
         p->last_tokens == q->last_tokens;
}

enum class Kind { letter, digit, other };

Kind kind_of(char c) {
  const auto u = static_cast<unsigned char>(c);
  if (std::isdigit(u) != 0) return Kind::digit;
  return u >= 0x80 || std::isalpha(u) != 0 ? Kind::letter : Kind::other;
}

/// The longest common beginning of all names, in whole words, without a final "seed" or "s".
std::string common_beginning(const std::vector<std::string>& names) {
  size_t common = names[0].size();
  for (const std::string& name : names) {
    const auto end = std::mismatch(names[0].begin(), names[0].end(), name.begin(), name.end());
    common = std::min(common, static_cast<size_t>(end.first - names[0].begin()));
  }
  std::string out = names[0].substr(0, common);
  if (std::any_of(names.begin(), names.end(), [&](const auto& n) { return n == out; })) return out;
  const auto drop = [&](Kind kind) {
    while (!out.empty() && kind_of(out.back()) == kind) out.pop_back();
  };
  const bool inside = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return common > 0 && kind_of(name[common]) == kind_of(name[common - 1]);
  });
  if (inside) drop(kind_of(out.back()));
  drop(Kind::other);
  for (const std::string word : {"seed", "s"}) {
    if (!out.ends_with(word) || out.size() == word.size()) continue;
    if (kind_of(out[out.size() - word.size() - 1]) == Kind::letter) continue;
    drop(Kind::letter);
    drop(Kind::other);
  }
  return out;
}

/// The longest common end of all names, in whole words.
std::string common_end(std::vector<std::string> names) {
  for (std::string& name : names) std::reverse(name.begin(), name.end());
  std::string out = common_beginning(names);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string common_name(const Runs& runs, const std::vector<size_t>& of) {
  std::vector<std::string> names;
  for (const size_t n : of) names.push_back(runs[n].name);
  std::string begin = common_beginning(names);
  std::string end = common_end(names);
  std::string& longer = begin.size() >= end.size() ? begin : end;
  return longer.empty() ? names[0] : longer;
}

/// The part of a series' name after the run's.
std::string suffix_of(const Series& s, const ReportedRun& run) {
  return s.name.starts_with(run.name) ? s.name.substr(run.name.size()) : s.name;
}

/// The mean line of several, at the x that all have.
Series mean_of(const std::vector<const Series*>& all, bool of_losses) {
  std::map<double, std::vector<double>> values;  // by x
  for (const Series* s : all) {
    for (const Point& p : s->points) values[p.x].push_back(of_losses ? std::log(p.y) : p.y);
  }
  Series out = *all[0];
  out.points.clear();
  out.notes.clear();
  out.errors.clear();
  out.paired_errors.clear();
  const auto back = [&](double v) { return of_losses ? std::exp(v) : v; };
  const auto n = static_cast<double>(all.size());
  for (const auto& [x, of] : values) {
    if (of.size() != all.size()) continue;
    double mean = 0, squares = 0;
    for (const double v : of) mean += v / n;
    for (const double v : of) squares += (v - mean) * (v - mean);
    const double deviation = std::sqrt(squares / (n - 1));
    out.points.push_back({x, back(mean)});
    if (out.strength >= 1) out.spread.push_back({back(mean - deviation), back(mean + deviation)});
  }
  return out;
}

}  // namespace

std::vector<SeedGroup> seed_groups(const Runs& runs) {
  std::vector<SeedGroup> out;
  for (size_t n = 0; n < runs.size(); ++n) {
    const ReportedRun& run = runs[n];
    const auto fits = [&](size_t m) {
      return !run.recipe.empty() && runs[m].recipe == run.recipe && runs[m].seed != run.seed &&
             same_evaluation(runs[m], run);
    };
    const auto at = std::find_if(out.begin(), out.end(), [&](const SeedGroup& g) {
      return std::all_of(g.runs.begin(), g.runs.end(), fits);
    });
    if (at == out.end()) {
      out.push_back({run.name, {n}});
    } else {
      at->runs.push_back(n);
    }
  }
  std::multiset<std::string> names;
  for (const SeedGroup& g : out) names.insert(common_name(runs, g.runs));
  for (SeedGroup& g : out) {
    const std::string name = common_name(runs, g.runs);
    if (names.count(name) == 1) g.name = name;  // else the first run's, which is unique
  }
  return out;
}

Chart with_seeds(const Chart& chart, const Runs& runs, const std::vector<SeedGroup>& groups) {
  std::map<int, size_t> group_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const size_t n : groups[g].runs) group_of[static_cast<int>(n)] = g;
  }
  // The role of a series within its run: each group draws one line per role.
  using Role = std::tuple<size_t, std::string, bool, double>;
  const auto role_of = [&](const Series& s) {
    const std::string suffix = suffix_of(s, runs.at(static_cast<size_t>(s.style)));
    return Role{group_of.at(s.style), suffix, s.line, s.strength};
  };
  std::map<Role, std::vector<const Series*>> roles;
  for (const Series& s : chart.series) roles[role_of(s)].push_back(&s);
  Chart out = chart;
  out.series.clear();
  std::set<Role> drawn;
  for (const Series& s : chart.series) {
    const Role role = role_of(s);
    const SeedGroup& group = groups[std::get<0>(role)];
    const std::vector<const Series*>& all = roles[role];
    const bool mean = all.size() > 1 && s.line && !chart.x_measured;
    if (mean && !drawn.insert(role).second) continue;
    Series of = mean ? mean_of(all, chart.of_losses) : s;
    of.style = static_cast<int>(std::get<0>(role));
    if (all.size() > 1)
      of.name = fmt::format("{} ({} seeds){}", group.name, all.size(), std::get<1>(role));
    if (!of.points.empty()) out.series.push_back(std::move(of));
  }
  if (out.paired && groups[group_of.at(chart.series.front().style)].runs.size() > 1) {
    out.paired = false;  // the differences are from its first seed
    out.bars = kBarsOfValues;
  }
  const bool bars = std::any_of(out.series.begin(), out.series.end(), [&](const Series& s) {
    return !(out.paired ? s.paired_errors : s.errors).empty();
  });
  if (!bars) out.bars.clear();
  return out;
}

}  // namespace bamtrain
