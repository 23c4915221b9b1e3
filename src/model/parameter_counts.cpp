#include "model/parameter_counts.h"

#include "core/with_commas.h"

namespace bamtrain {

namespace {

const char* part_of(const Parameter& p) {
  switch (p.group) {
    case ParameterGroup::embedding:
      return "embedding";
    case ParameterGroup::norm:
      return "norms";
    case ParameterGroup::prior:
      return "prior";
    case ParameterGroup::scale:
      return "scale";
    case ParameterGroup::normalizer:
      return "normalizer";
    case ParameterGroup::matrix:
    case ParameterGroup::bias:
      break;
  }
  if (p.name.find(".self_attn.") != std::string::npos) return "attention";
  return p.name.find(".mlp.") != std::string::npos ? "mlp" : "head";
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> parameter_counts(const ParameterLayout& layout) {
  std::vector<std::pair<std::string, int64_t>> parts;
  for (const char* name :
       {"embedding", "attention", "mlp", "norms", "prior", "scale", "normalizer", "head"}) {
    int64_t count = 0;
    for (const Parameter& p : layout.all()) count += part_of(p) == std::string(name) ? p.size : 0;
    if (count > 0) parts.emplace_back(name, count);
  }
  return parts;
}

int64_t count_parameters(const ParameterLayout& layout) {
  int64_t all = 0;
  for (const Parameter& p : layout.all()) all += p.size;
  return all;
}

std::string describe_parameters(const ParameterLayout& layout) {
  std::string list;
  for (const auto& [part, count] : parameter_counts(layout)) {
    list += (list.empty() ? "" : ", ") + part + " " + with_commas(count);
  }
  return with_commas(count_parameters(layout)) + " parameters: " + list;
}

}  // namespace bamtrain
