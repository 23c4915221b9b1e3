#include "ops/workspace_shape.h"

#include <algorithm>

#include "ops/mechanisms/all.h"

namespace bamtrain {

bool AttentionForm::general() const { return general_path || !traits_of(normalizer.kind).fused; }
bool AttentionForm::sticks() const { return normalizer.kind == NormalizerKind::stick_breaking; }
bool AttentionForm::content() const { return reads_content(bias_of(bias)); }
bool AttentionForm::fire() const { return bias == BiasForm::fire; }

bool WorkspaceShape::any(bool (AttentionForm::*is)() const) const {
  return std::any_of(attention.begin(), attention.end(),
                     [is](const AttentionForm& form) { return (form.*is)(); });
}

bool WorkspaceShape::all_mixed() const {
  const auto mixes = [](const AttentionForm& form) { return form.mix.has_value(); };
  return !attention.empty() && std::all_of(attention.begin(), attention.end(), mixes);
}

int64_t WorkspaceShape::mix_hidden() const {
  int64_t most = 0;
  for (const AttentionForm& f : attention) most = std::max(most, f.mix ? f.mix_hidden : 0);
  return most;
}

int64_t WorkspaceShape::content_columns() const {
  int64_t most = 0;
  for (const AttentionForm& f : attention) {
    most = std::max(most, f.bias == BiasForm::contextual ? f.content_columns : 0);
  }
  return most;
}

}  // namespace bamtrain
