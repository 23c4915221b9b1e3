// Files of a run: metrics.jsonl ("m"), samples.jsonl ("s"), perplexity.json ("p") or starts.json
// ("r"). The report reads them all, and a resumed run all but the third. Also the result of a
// retrieval evaluation ("h"). What is accepted can be drawn.

#include "config/reader.h"
#include "record/logs.h"
#include "record/provenance.h"
#include "record/step_lines.h"
#include "report/figure.h"
#include "report/report.h"
#include "report/retrieval_maps.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;

namespace {

constexpr const char* kConfig = R"({"config_version": 2, "out_dir": "out", "seed": 1,
  "model": {"vocab": 8, "width": 8, "layers": 1, "heads": 1, "mlp": {"hidden": 8},
            "attention": {"prior": "bam", "scale": "none"}},
  "data": {"train": "train", "sequence_length": 8},
  "optimizer": {"lr": 0.1}, "train": {"steps": 4, "tokens_per_step": 8, "micro_batch": 1}})";

constexpr const char* kMetrics =
    R"({"step":1,"tokens":8,"loss":2,"lr":0.1,"grad_norm":1,"tokens_per_second":5})"
    "\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  static const RunConfig config = read_run_config_text(kConfig, "config", {});
  const Input in(data, size);
  if (in.kind == 'h') {
    const std::string result = folder.write("retrieval.json", in.rest);
    accepts([&] {
      const std::vector<HeatMap> maps = read_retrieval_maps(result);
      for (const HeatMap& map : maps) terminal_heat_map(map);
      heat_map_svg(maps, kFigureWidth);
    });
    return 0;
  }
  const char* name = in.kind == 's'   ? "samples.jsonl"
                     : in.kind == 'p' ? "perplexity.json"
                     : in.kind == 'r' ? "starts.json"
                                      : "metrics.jsonl";
  folder.write("metrics.jsonl", kMetrics);
  const std::string path = folder.write(name, in.rest);
  accepts([&] {
    RunReader reader(folder.path());
    const ReportedRun run = {"run", folder.path(), &reader.update(), config.model,
                             config.data.sequence_length};
    report_html({run}, {});
    report_plot({run});
    if (run.record->perplexity) perplexity_plot(*run.record->perplexity);
  });
  if (in.kind == 'r') {
    accepts([&] { read_starts(path); });
  } else if (in.kind != 'p') {
    accepts([&] { StepLines(path, 3, in.kind == 's' ? sample_lines() : metrics_lines()); });
  }
  folder.remove(name);
  return 0;
}
