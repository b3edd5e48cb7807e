// A config.json of Hugging Face's transformers: the model, and nothing about its training.

#include "model/scenario/model/model_reader.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"

namespace foretrain {

std::string import_hf(const ImportInput& input) {
  const YamlNode config = parse_config(input, "a config.json: { \"model_type\": \"llama\", … }");
  Draft draft(input);
  const YamlEntry* name = config.find("_name_or_path");
  const bool has_name = name != nullptr && name->value.is_scalar() && !name->value.scalar.empty();
  draft.set("name", has_name ? name->value.scalar : file_stem(input), config.where, "");
  draft.set("workload.train.model.name", file_stem(input), config.where, "");
  draft.assume("cluster.node", "dgx-h100", "the file describes a model alone; --set cluster.node=NAME");
  for (const YamlEntry& entry : hugging_face_model(config).entries) {
    draft.set("workload.train.model." + entry.key, entry.value, entry.where,
              entry.key == "sequence" ? "the longest; what it is trained on is shorter, as a rule" : "");
  }
  const YamlNode* vision = config.find("vision_config") != nullptr ? &config.find("vision_config")->value : nullptr;
  if (vision != nullptr && vision->find("image_size") == nullptr) {
    draft.note("Images of this model have any size; those of the scenario are assumed: vision.image_size.");
  }
  Settings settings(flat_settings(config));
  for (const char* key : {"torch_dtype", "dtype"}) {
    const ForeignSetting* type = settings.find(key);
    if (type == nullptr || type->value != "float32") continue;
    draft.set("workload.train.precision", "fp32", *type);
  }
  draft.assume("workload.train.precision", "bf16", "as such models are trained");
  draft.assume("workload.train.micro_batch", "1", "no training is described");
  draft.assume("plan.zero", "3", "weights, gradients and states divided over all GPUs");
  return finished_scenario(draft, "hf");
}

}  // namespace foretrain
