#include "record/logs.h"

#include <fmt/format.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "record/run_lines.h"
#include "train/optimizer.h"

namespace bamtrain {

std::vector<Learned> mechanism_parameters(const Trainer& trainer, const Tensor& master_weights) {
  std::vector<Learned> out;
  for (const Parameter& p : trainer.layout().all()) {
    if (!is_mechanism(p.group)) continue;
    std::vector<float> values(static_cast<size_t>(p.size));
    trainer.backend().download(values.data(), master_weights.slice(0, p.offset, p.size));
    out.push_back({&p, std::move(values)});
  }
  return out;
}

nlohmann::ordered_json parameters_json(const std::vector<Learned>& parameters) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  size_t all = 0;
  for (const Learned& l : parameters) {
    if (l.values.size() > kMostOfALine || all + l.values.size() > kMostOfAll) continue;
    json[l.parameter->name] = l.values;
    all += l.values.size();
  }
  return json;
}

nlohmann::ordered_json attention_json(const AttentionMeans& means) {
  return {{"entropy", means.entropy},
          {"support", means.nonzero_keys},
          {"live_tiles", means.nonzero_blocks},
          {"windows", means.windows}};
}

StepLineKind metrics_lines() {
  return {false, [](const JsonObject& line) { metrics_of(line); }};
}

StepLineKind sample_lines() {
  return {true, [](const JsonObject& line) { sample_of(line); }};
}

Logs::Logs(const RunConfig& c, int64_t step, const Warn& warn)
    : metrics_(c.out_dir + "/metrics.jsonl", step, metrics_lines()) {
  const auto told = [&](const StepLines& file, const char* name) {
    const DamagedEnd& damage = file.damage();
    if (damage.lines == 0) return;
    warn(fmt::format("{}: cut off {} damaged line(s) at its end, from line {} on", name,
                     damage.lines, damage.first));
  };
  told(metrics_, "metrics.jsonl");
  if (!c.sample.prompts.empty()) {
    samples_.emplace(c.out_dir + "/samples.jsonl", step, sample_lines());
    told(*samples_, "samples.jsonl");
  }
  if (c.log.tensorboard) events_.emplace(c.out_dir + "/tensorboard", step);
}

void Logs::write(const nlohmann::ordered_json& line) {
  metrics_.write(line);
  if (!events_) return;
  std::vector<Scalar> scalars;
  std::deque<std::string> tags;  // referenced by scalars
  for (auto it = line.begin(); it != line.end(); ++it) {
    if (it->is_number_float()) scalars.push_back({it.key(), it->get<float>()});
  }
  if (line.contains("tasks")) {
    for (const auto& [result, row] : line["tasks"].items()) {
      for (const auto& [number, value] : row.items()) {  // a metric has an error next to it
        if (!row.contains(number + "_error") || !value.is_number()) continue;
        tags.push_back("tasks/" + std::string(result) + "/" + number);
        scalars.push_back({tags.back(), value.get<float>()});
      }
    }
  }
  const auto step = line["step"].get<int64_t>();
  events_->write_scalars(step, scalars);
  if (line.contains("attention")) write_attention(step, line["attention"]);
}

void Logs::write_attention(int64_t step, const nlohmann::ordered_json& attention) {
  for (const char* of : {"entropy", "support", "live_tiles"}) {
    const auto layers = attention[of].get<HeadValues>();
    for (size_t l = 0; l < layers.size(); ++l) {
      const std::string tag = fmt::format("attention/{}/layer_{}", of, l);
      const std::vector<float> heads(layers[l].begin(), layers[l].end());
      const double sum = std::accumulate(layers[l].begin(), layers[l].end(), 0.0);
      const Scalar mean[] = {{tag, static_cast<float>(sum / static_cast<double>(heads.size()))}};
      events_->write_scalars(step, mean);
      events_->write_histogram(step, tag + "/heads", heads);
    }
  }
}

void Logs::write(int64_t step, const std::vector<Learned>& parameters) {
  if (!events_) return;
  for (const Learned& l : parameters) {
    events_->write_histogram(step, group_name(l.parameter->group) + "/" + l.parameter->name,
                             l.values);
  }
}

void Logs::write_samples(const std::vector<nlohmann::ordered_json>& lines) {
  for (const nlohmann::ordered_json& line : lines) samples_->write(line);
}

void Logs::sync(const Warn& warn) {
  const auto told = [&](auto& file, const char* name) {
    if (!file.take_lost()) return;
    warn(std::string(name) +
         " was removed or truncated while the run wrote it; the run continues without the lost "
         "part");
  };
  told(metrics_, "metrics.jsonl");
  if (samples_) told(*samples_, "samples.jsonl");
  if (events_) told(*events_, "a file in tensorboard");
  metrics_.sync();
  if (samples_) samples_->sync();
  if (events_) events_->sync();
}

}  // namespace bamtrain
