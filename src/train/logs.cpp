#include "train/logs.h"

#include <string>

#include "train/optimizer.h"

namespace bamtrain {

std::vector<Learned> mechanism_parameters(const Trainer& trainer) {
  std::vector<Learned> out;
  for (const Parameter& p : trainer.layout().all()) {
    if (!is_mechanism(p.group)) continue;
    std::vector<float> values(static_cast<size_t>(p.size));
    trainer.backend().download(values.data(), trainer.masters().slice(0, p.offset, p.size));
    out.push_back({&p, std::move(values)});
  }
  return out;
}

Logs::Logs(const RunConfig& c, int64_t step) : metrics_(c.out_dir + "/metrics.jsonl", step) {
  if (!c.sample.prompts.empty()) samples_.emplace(c.out_dir + "/samples.jsonl", step);
  if (c.log.tensorboard) events_.emplace(c.out_dir + "/tensorboard", step);
}

void Logs::write(const nlohmann::ordered_json& line) {
  metrics_.write(line);
  if (!events_) return;
  std::vector<Scalar> scalars;
  for (auto it = line.begin(); it != line.end(); ++it) {
    if (it->is_number_float()) scalars.push_back({it.key(), it->get<float>()});
  }
  events_->write_scalars(line["step"].get<int64_t>(), scalars);
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

void Logs::sync() {
  metrics_.sync();
  if (samples_) samples_->sync();
  if (events_) events_->sync();
}

}  // namespace bamtrain
