"""A training step of architectures of other libraries, small: every stored call replays to the bit."""

import importlib.util
import json
import sys
import warnings

import pytest

from capture.libraries import import_library
from capture.session import capture_model
from capture.targets import load_target
from traces import Trace, verify
from traces.overloads import of_cpus

_TEXT = {"vocab_size": 99, "sequence": 12}
_BODY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
_SMALL = {**_BODY, **_TEXT}
_GROUPED = {**_SMALL, "num_key_value_heads": 1}
_TWO_SIDED = {
    **{"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48},
    **{"encoder_attention_heads": 2, "decoder_attention_heads": 2},
}
ARCHITECTURES = {
    "transformers:GPT2LMHeadModel": {"n_layer": 2, "n_embd": 32, "n_head": 2, **_TEXT},
    "transformers:LlamaForCausalLM": _GROUPED,
    "transformers:MixtralForCausalLM": {**_GROUPED, "num_local_experts": 3},
    "transformers:GemmaForCausalLM": {**_GROUPED, "head_dim": 16},
    "transformers:BertForSequenceClassification": _SMALL,
    "transformers:DebertaV2ForSequenceClassification": _SMALL,
    "transformers:T5ForConditionalGeneration": {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, **_TEXT},
    "transformers:BartForConditionalGeneration": {**_TWO_SIDED, **_TEXT},
    "transformers:WhisperForConditionalGeneration": {**_TWO_SIDED, "max_source_positions": 30, "sequence": 8},
    "transformers:MambaForCausalLM": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, **_TEXT},
    "transformers:RwkvForCausalLM": {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32, **_TEXT},
    "transformers:ViTForImageClassification": {**_BODY, "image_size": 32, "patch_size": 8},
    "transformers:Wav2Vec2ForSequenceClassification": {
        **{**_BODY, "num_hidden_layers": 1},
        **{"conv_dim": [16, 16], "conv_stride": [5, 4], "conv_kernel": [10, 4], "num_feat_extract_layers": 2},
        **{"num_conv_pos_embedding_groups": 2, "num_conv_pos_embeddings": 16},
    },
    "transformers:CLIPModel": {
        "text_config": {**_BODY, "vocab_size": 99},
        "vision_config": {**_BODY, "image_size": 32, "patch_size": 8},
        "projection_dim": 16,
    },
    "timm:resnet18": {},
    "timm:convnext_atto": {"depths": [1, 1, 1, 1]},
    "timm:mobilenetv3_small_050": {},
    "timm:swin_tiny_patch4_window7_224": {"depths": [1, 1, 1, 1], "embed_dim": 24},
    "timm:vit_tiny_patch16_224": {"depth": 1},
    "unet:make": {},
}
UNET = """\
import torch
from diffusers import UNet2DModel

def make(device: str = "cpu"):
    torch.manual_seed(0)
    net = UNet2DModel(sample_size=16, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=4,
                      down_block_types=("DownBlock2D", "AttnDownBlock2D"), attention_head_dim=8,
                      up_block_types=("AttnUpBlock2D", "UpBlock2D")).to(device)
    batch = torch.randn(2, 3, 16, 16).to(device), torch.tensor([3, 7]).to(device)
    return net, batch, lambda net, batch: net(*batch).sample.square().mean(), torch.optim.AdamW(net.parameters())
"""


@pytest.mark.sweep
@pytest.mark.parametrize("device", ["cpu", "sim"])
@pytest.mark.parametrize("target", ARCHITECTURES)
def test_every_call_replays_to_the_bit(tmp_path, monkeypatch, target, device):
    library = target.partition(":")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other people's code
        library = "diffusers" if library == "unet" else library
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
        import_library(library, "hf")  # beside a torchvision for another torch a file of one's own cannot
        loaded = load(target, tmp_path, monkeypatch, device)
        summary = capture_model(loaded, tmp_path / "a.trace", progress=False)
    trace = Trace.open(summary.path)
    report = verify(trace)
    assert report.passed and not report.close and report.exact > 100, report.mismatches[:5]
    assert set(report.not_comparable) <= {"uninitialised result"}
    assert summary.errors == {} and trace.manifest["steps"] == 1
    asked = {s.overload for s in trace.signatures.values()}
    assert device == "cpu" or not any(map(of_cpus, asked))


def load(target, directory, monkeypatch, device):
    if target == "unet:make":
        (directory / "unet.py").write_text(UNET)
        monkeypatch.chdir(directory)
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.delitem(sys.modules, "unet", raising=False)
        return load_target(target, device=device)
    settings = {name: json.dumps(value) for name, value in ARCHITECTURES[target].items()}
    return load_target(target, settings, batch=2, device=device)
