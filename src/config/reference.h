#pragma once
// The user documentation of a run configuration's keys, generated from its schema.

#include <string>
#include <utility>
#include <vector>

namespace bamtrain {

/// Markdown, 100 columns: every key with its type, limits, default and description, by section; the
/// mechanisms with their options. docs/config.md contains this text.
std::string config_reference();

/// The same of one key, of a section with its keys, or of an option
/// ("model.attention.prior.theta"): 80 columns. Empty if there is no such name.
std::string config_entry(const std::string& path);
/// The sections and keys.
std::vector<std::string> config_paths();

/// What the prior, mix, scale, normalizer or task of that name is, how to choose it, and its
/// options: Markdown, 80 columns. Empty if there is no such name.
std::string mechanism_page(const std::string& name);
/// Names by kind: "prior", "mix", "scale", "normalizer".
std::vector<std::pair<std::string, std::vector<std::string>>> mechanisms_by_kind();
/// All of them, each once.
std::vector<std::string> mechanism_names();
/// The names of tasks, on text and to train on.
std::vector<std::string> every_task_name();

}  // namespace bamtrain
